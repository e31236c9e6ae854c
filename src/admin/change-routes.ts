/*
 * What changes a rule or its keys while it runs, and the trail that this leaves: each as a function of what
 * was asked, that gives the answer or refuses.
 */
import { shown, TallygateError } from '../core/errors.js'
import type { TallySlots } from '../tally/slots.js'
import { Refusal } from './answers.js'
import { ruleNamed } from './asked.js'
import { isKnownKey, keyOfId, listedKey } from './keys.js'
import type { Changed, LiveChanges } from './live-changes.js'
import { ownFigures, type FigureParts } from './figures.js'
import { ruleStatistics, type RuleStatistics } from './rule-statistics.js'
import { readChanges } from './rule-values.js'
import { iso } from './shown-counts.js'

export interface ChangeParts extends FigureParts {
  readonly slots: TallySlots
  readonly changes: LiveChanges
}

export interface AuditEntry {
  at: string
  rule: string
  /** `change`, `forget-key`, or `file-wins`: the configuration was changed since. */
  action: string
  before: Readonly<Record<string, unknown>> | null
  after: Readonly<Record<string, unknown>> | null
}

/** Answers `PATCH /admin/rules/:name`: in force with the answer. */
export async function changeRule(
  name: string,
  body: unknown,
  parts: ChangeParts,
): Promise<RuleStatistics & Changed> {
  const { limiter, changes, slots } = parts
  const rule = ruleNamed(limiter, name)
  const asked = readChanges(rule, body)
  const changed = await changes.change(rule.name, asked).catch(refuse)
  const now = limiter.rule(rule.name)
  return { ...ruleStatistics(now, ownFigures(parts), slots), ...changed }
}

/** Answers `DELETE /admin/rules/:name/keys/:id`. A key that is not known is not said to be forgotten. */
export async function forgetKey(name: string, id: string, parts: ChangeParts): Promise<void> {
  const rule = ruleNamed(parts.limiter, name)
  const key = keyOfId(id)
  if (!(await isKnownKey(rule, key, parts))) {
    throw new Refusal(
      404,
      `rule '${rule.name}' knows no key ${shown(id)}: ids end with the process, ` +
        `and a key is forgotten when it has not asked for two windows`,
    )
  }
  await parts.changes.forget(rule, key, { id, key: listedKey(rule, key, parts)?.key ?? null })
}

/** Answers `GET /admin/audit`. */
export async function auditTrail({ changes }: ChangeParts): Promise<{ entries: AuditEntry[] }> {
  const rows = await changes.audit()
  return {
    entries: rows.map(({ atMs, rule, action, before, after }) => ({
      at: iso(atMs),
      rule,
      action,
      before,
      after,
    })),
  }
}

/** The checks of rules say what would be right; they speak of creating one. */
function refuse(error: unknown): never {
  if (!(error instanceof TallygateError)) throw error
  throw new Refusal(400, error.message.replace(/^Cannot create/, 'Cannot change'))
}

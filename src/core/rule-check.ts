/*
 * Whether a rule as somebody wrote it is right, field by field and then together. What this version does not
 * know stops the start by name, so that nothing is silently unlimited; messages name the rule, the field,
 * what was received and what would be right.
 */
import { shown, TallygateError } from './errors.js'
import { keyFault } from './key-check.js'
import { matchFault } from './match-check.js'
import { rollingLimitMax } from './plans.js'
import { ruleFields, type FieldRow } from './rule-fields.js'
import { isPlainFunction, looksLikeFunction } from './rule-functions.js'
import type { RuleOptions } from './rule-options.js'
import { nearestName } from './spelling.js'

const defaultAlgorithm = 'sliding-window'

/** The rule as it was written, once it is known to be right. */
export function checkRule(options: unknown, index: number): RuleOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${index + 1}: a rule must be a mapping of fields: received ${shown(options)}`,
    )
  }
  // Read once: what is used is what was checked, even where a getter answers differently each time.
  const given = snapshot(options)
  const title = typeof given['name'] === 'string' ? shownName(given['name']) : String(index + 1)
  return checkFields(given, title)
}

/** A copy, also of what lists and mappings in it hold where a rule can have them. */
function snapshot(options: object): Record<string, unknown> {
  const given: Record<string, unknown> = { ...options }
  const { key, match } = given
  if (Array.isArray(key)) given['key'] = listCopy(key)
  if (typeof match === 'object' && match !== null && !Array.isArray(match)) {
    const entries = Object.entries(match).map(([name, list]) => [name, listCopy(list)])
    given['match'] = Object.fromEntries(entries)
  }
  return given
}

function listCopy(value: unknown): unknown {
  return Array.isArray(value) ? Array.from(value as unknown[]) : value
}

/** Every field by itself, then those that depend on each other. */
export function checkFields(given: Record<string, unknown>, title: string): RuleOptions {
  for (const field of Object.keys(given)) {
    if (given[field] !== undefined && !Object.hasOwn(ruleFields, field)) {
      refuseField(title, field, Object.keys(ruleFields))
    }
  }
  for (const [field, row] of Object.entries(ruleFields)) checkField(title, field, row, given)
  const checked = given as unknown as RuleOptions
  checkTogether(title, checked)
  return checked
}

/** The rule less the fields that only another algorithm than its own has. */
export function withoutForeign(rule: RuleOptions): RuleOptions {
  const { algorithm = defaultAlgorithm } = rule
  const kept = Object.entries(rule).filter(([field]) => {
    const only = ruleFields[field as keyof RuleOptions]?.only
    return only === undefined || only === algorithm
  })
  return Object.fromEntries(kept) as unknown as RuleOptions
}

function checkTogether(title: string, rule: RuleOptions): void {
  const algorithm = rule.algorithm ?? defaultAlgorithm
  for (const [field, { only }] of Object.entries(ruleFields)) {
    if (
      only === undefined ||
      only === algorithm ||
      rule[field as keyof RuleOptions] === undefined
    ) {
      continue
    }
    throw new TallygateError(
      'TALLYGATE_RULE_FIELD',
      `Cannot create rule ${title}: ${field} is for algorithm ${only} alone: ` +
        `received it with ${algorithm}`,
    )
  }
  checkLimit(title, rule, algorithm)
}

/** What a function gives is checked when it has given it. */
function checkLimit(title: string, rule: RuleOptions, algorithm: string): void {
  const { limit } = rule
  if (typeof limit === 'function') {
    if (rule.burst === undefined) return
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${title}: burst must be left out where limit is a function, ` +
        `which then is the burst too: received ${rule.burst}`,
    )
  }
  if (algorithm === 'rolling-window' && limit > rollingLimitMax) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${title}: limit must be at most ${rollingLimitMax} for a ` +
        `rolling-window, which keeps each attempt: received ${limit}`,
    )
  }
  // Only a rolling-window has the field.
  if (rule.maxEntries !== undefined && limit > rule.maxEntries) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${title}: maxEntries must be at least the limit, or no key could ` +
        `reach it: received ${rule.maxEntries} with limit ${limit}`,
    )
  }
}

function checkField(title: string, field: string, row: FieldRow, given: Record<string, unknown>) {
  const value = given[field]
  if (value === undefined && row.fallback !== undefined) return
  if (row.schema.safeParse(value).success) return
  const received = value === undefined ? 'nothing' : shown(value)
  throw new TallygateError(
    'TALLYGATE_RULE_VALUE',
    `Cannot create rule ${title}: ${field} must be ${row.must}: received ${received}` +
      hint(field, value),
  )
}

/** What a reader of the message could not guess: older YAML, what is for code alone, what is wrong inside. */
function hint(field: string, value: unknown): string {
  if (typeof value === 'boolean' && field !== 'strict' && field !== 'expose') {
    return field === 'mode'
      ? ' (YAML 1.1 reads off as false: write disabled to switch a rule off)'
      : ' (YAML 1.1 reads on, yes, off and no as true and false: put the word in quotes)'
  }
  const word = typeof value === 'string' ? value : ''
  if (field === 'mode' && /^(off|no|none|disable)$/i.test(word)) return ', did you mean disabled?'
  if (field === 'mode' && /dry|log|observe|test/i.test(word)) return ', did you mean shadow?'
  const fault = faultInside(field, value)
  return fault === '' || value === undefined ? '' : ` (${fault})`
}

/** Empty where there is nothing more to say. */
function faultInside(field: string, value: unknown): string {
  if (field === 'match') return matchFault(value) ?? ''
  if (field !== 'key' && field !== 'limit') return ''
  if (looksLikeFunction(value)) return 'a function is for rules in code, not for a file'
  if (field === 'key') return keyFault(value) ?? ''
  const isAsync = typeof value === 'function' && !isPlainFunction(value)
  return isAsync ? 'a decision is made at once: not by an async function' : ''
}

/** What the field is called elsewhere. */
const synonyms = new Map([
  ['max', 'limit'],
  ['points', 'limit'],
  ['requests', 'limit'],
  ['duration', 'window'],
  ['interval', 'window'],
  ['period', 'window'],
  ['windowms', 'window'],
])

/** @throws TallygateError that names the nearest known field, or all. */
export function refuseField(title: string, field: string, known: readonly string[]): never {
  const near = synonyms.get(field.toLowerCase()) ?? nearestName(field, known)
  const advice = near === null ? `known fields are ${known.join(', ')}` : `did you mean ${near}?`
  throw new TallygateError(
    'TALLYGATE_RULE_FIELD',
    `Cannot create rule ${title}: unknown field ${shownName(field)}: ${advice}`,
  )
}

/** A name as messages show it. */
export function shownName(name: string): string {
  return `'${shown(name).slice(1, -1)}'`
}

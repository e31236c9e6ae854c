/*
 * What of a rule may be changed while it runs, in the words of a configuration: how a change is checked, and
 * how two states are compared. A window is written in its shortest exact spelling, so that 60s is 1m.
 */
import { formatDuration } from '../core/duration.js'
import { ruleFields } from '../core/rule-fields.js'
import type { CompiledRule } from '../core/rule.js'
import type { RuleChanges } from '../limiter/limiter.js'
import { overrideFields, type OverrideField, type OverrideValue } from '../sqlite/rule-changes.js'
import { Refusal } from './answers.js'
import { readObject, refuseName } from './asked.js'

/** null for a limit that is a function. */
export type RuleValues = Readonly<Record<OverrideField, OverrideValue | null>>

export function valuesOf(rule: CompiledRule): RuleValues {
  return {
    limit: rule.plans === null ? rule.limit : null,
    window: formatDuration(rule.windowMs),
    mode: rule.mode,
  }
}

/** The fields in which two states differ. */
export function differing(before: RuleValues, after: RuleValues): OverrideField[] {
  return overrideFields.filter((field) => before[field] !== after[field])
}

/** Some fields of a state. */
export function picked(
  values: RuleValues,
  fields: readonly OverrideField[],
): Partial<Record<OverrideField, OverrideValue | null>> {
  return Object.fromEntries(fields.map((field) => [field, values[field]]))
}

/** The changes that a body asks for; their values are checked where they are made. */
export function readChanges(rule: CompiledRule, body: unknown): RuleChanges {
  const changes = readObject(body, overrideFields, (name) => {
    if (!Object.hasOwn(ruleFields, name)) return refuseName('field', name, overrideFields)
    throw new Refusal(400, `${name} stays as configured: only limit, window and mode change live`)
  })
  if (Object.keys(changes).length === 0) {
    throw new Refusal(400, 'the body must have one of limit, window, mode: received none of them')
  }
  if (changes['limit'] !== undefined && rule.plans !== null) {
    throw new Refusal(
      409,
      `the limit of '${rule.name}' is a function in code, one number for each plan: change it there`,
    )
  }
  return changes
}

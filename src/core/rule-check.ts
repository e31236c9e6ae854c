/*
 * Whether a rule as somebody wrote it is right, field by field and then together. What this version does not
 * know stops the start by name, so that nothing is silently unlimited; messages name the rule, the field,
 * what was received and what would be right.
 */
import { shown, TallygateError } from './errors.js'
import { laterFields, ruleFields, type FieldRow, type RuleOptions } from './rule-fields.js'
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
  const given: Record<string, unknown> = { ...options }
  const title = typeof given['name'] === 'string' ? shownName(given['name']) : String(index + 1)
  return checkFields(given, title)
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
  if (algorithm === 'rolling-window' && rule.limit > rollingLimitMax) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${title}: limit must be at most ${rollingLimitMax} for a ` +
        `rolling-window, which keeps each attempt: received ${rule.limit}`,
    )
  }
  // Only a rolling-window has the field.
  if (rule.maxEntries !== undefined && rule.limit > rule.maxEntries) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${title}: maxEntries must be at least the limit, or no key could ` +
        `reach it: received ${rule.maxEntries} with limit ${rule.limit}`,
    )
  }
}

const rollingLimitMax = 10_000

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

/** What a reader of the message could not guess: older YAML, fields still to come. */
function hint(field: string, value: unknown): string {
  if (typeof value === 'boolean' && field !== 'strict' && field !== 'expose') {
    return field === 'mode'
      ? ' (YAML 1.1 reads off as false: write disabled to switch a rule off)'
      : ' (YAML 1.1 reads on, yes, off and no as true and false: put the word in quotes)'
  }
  const word = typeof value === 'string' ? value : ''
  if (field === 'mode' && /^(off|no|none|disable)$/i.test(word)) return ', did you mean disabled?'
  if (field === 'mode' && /dry|log|observe|test/i.test(word)) return ', did you mean shadow?'
  const isLater =
    (field === 'key' &&
      (typeof value === 'function' || Array.isArray(value) || word.startsWith('header:'))) ||
    (field === 'limit' && typeof value === 'function')
  return isLater ? ', which this version does not support yet' : ''
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
  const advice = laterFields.includes(field)
    ? 'this version does not support it yet'
    : near === null
      ? `known fields are ${known.join(', ')}`
      : `did you mean ${near}?`
  throw new TallygateError(
    'TALLYGATE_RULE_FIELD',
    `Cannot create rule ${title}: unknown field ${shownName(field)}: ${advice}`,
  )
}

/** A name as messages show it. */
export function shownName(name: string): string {
  return `'${shown(name).slice(1, -1)}'`
}

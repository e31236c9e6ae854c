/*
 * A rule as the request path reads it: frozen, plain, validated once. What this version does not know stops
 * the start by name, so that nothing is silently unlimited.
 */
import type { Algorithm } from './algorithm.js'
import { algorithms, laterAlgorithms } from './algorithms/index.js'
import type { Mode } from './decision.js'
import { parseDuration } from './duration.js'
import { shown, TallygateError } from './errors.js'
import {
  laterFields,
  ruleFields,
  type FieldRow,
  type KeyKind,
  type RuleOptions,
} from './rule-fields.js'
import { nearestName } from './spelling.js'

/** A rule made ready: every option resolved, nothing left to look up. */
export interface CompiledRule {
  /** Position in the configuration; tables and counters have one slot for each. */
  readonly index: number
  readonly name: string
  readonly key: KeyKind
  readonly limit: number
  readonly windowMs: number
  readonly algorithm: Algorithm
  readonly strict: boolean
  /** null: every request. */
  readonly function: string | null
  readonly mode: Mode
  readonly near: number
  readonly absent: 'address' | 'skip'
  readonly maxKeys: number
  readonly ipv6Prefix: number
  readonly expose: boolean
}

/**
 * Makes a list of rules ready.
 *
 * @throws TallygateError naming the rule, the field, what was received and what would be right.
 */
export function compileRules(list: unknown): CompiledRule[] {
  if (!Array.isArray(list) || list.length === 0) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create a limiter: rules must be a list of one or more rules: received ${shown(list)}`,
    )
  }
  // Not list.map, which passes over holes.
  const rules = Array.from(list, (options: unknown, index) => compileRule(options, index))
  for (const rule of rules) {
    const first = rules.find((other) => other.name === rule.name)
    if (first === rule || first === undefined) continue
    throw new TallygateError(
      'TALLYGATE_RULE_NAME',
      `Cannot create rule '${rule.name}': names must be unique: ` +
        `received it for rules ${first.index + 1} and ${rule.index + 1}`,
    )
  }
  return rules
}

/** Makes one rule ready; `index` is its position in the configuration. */
export function compileRule(options: unknown, index: number): CompiledRule {
  const checked = checkRule(options, index)
  const key = checked.key ?? 'global'
  return Object.freeze<CompiledRule>({
    index,
    name: checked.name,
    key,
    limit: checked.limit,
    windowMs: parseDuration(checked.window) as number,
    algorithm: algorithms.get(checked.algorithm ?? 'sliding-window') as Algorithm,
    strict: checked.strict ?? false,
    function: checked.function ?? null,
    mode: checked.mode ?? 'enforce',
    near: checked.near ?? 0.8,
    absent: checked.absent ?? (key === 'session' ? 'address' : 'skip'),
    maxKeys: checked.maxKeys ?? 1_000_000,
    ipv6Prefix: checked.ipv6Prefix ?? 64,
    expose: checked.expose ?? key !== 'global',
  })
}

function checkRule(options: unknown, index: number): RuleOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${index + 1}: a rule must be a mapping of fields: received ${shown(options)}`,
    )
  }
  // Read once: what is used is what was checked, even where a getter answers differently each time.
  const given: Record<string, unknown> = { ...options }
  const title = typeof given['name'] === 'string' ? shownName(given['name']) : String(index + 1)
  for (const field of Object.keys(given)) {
    if (given[field] !== undefined && !Object.hasOwn(ruleFields, field)) refuseField(title, field)
  }
  for (const [field, row] of Object.entries(ruleFields)) checkField(title, field, row, given)
  return given as unknown as RuleOptions
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
    (field === 'algorithm' && laterAlgorithms.includes(word)) ||
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

function refuseField(title: string, field: string): never {
  const known = Object.keys(ruleFields)
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

function shownName(name: string): string {
  return `'${shown(name).slice(1, -1)}'`
}

export type { KeyKind, RuleOptions } from './rule-fields.js'

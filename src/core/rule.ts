/*
 * A rule as the request path reads it: frozen, plain, validated once. What this version does not know stops
 * the start by name, so that nothing is silently unlimited.
 */
import type { Algorithm } from './algorithm.js'
import { algorithms } from './algorithms/index.js'
import type { Mode } from './decision.js'
import { formatDuration, parseDuration } from './duration.js'
import { shown, TallygateError } from './errors.js'
import {
  laterFields,
  ruleFields,
  type CandidateOptions,
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
  /** What usage is measured against: the limit, or a token bucket's `burst`. */
  readonly capacity: number
  readonly windowMs: number
  readonly algorithm: Algorithm
  /** Rolling window: least time between two attempts of a key; 0 for none. */
  readonly minIntervalMs: number
  /** Exponential: a record older than this is forgotten; Infinity for never. */
  readonly maxAgeMs: number
  /** Rolling window: most entries of all keys together. */
  readonly maxEntries: number
  readonly strict: boolean
  /** null: every request. */
  readonly function: string | null
  readonly mode: Mode
  readonly near: number
  /** Usage above which a verdict is `near`. */
  readonly nearUsage: number
  readonly absent: 'address' | 'skip'
  readonly maxKeys: number
  readonly ipv6Prefix: number
  readonly expose: boolean
  /** Judged beside this rule, in shadow; their indices follow those of all rules. */
  readonly candidates: readonly CompiledRule[]
  /** The name of the rule that this is a candidate of; null for a rule itself. */
  readonly candidateOf: string | null
  /** A candidate's name beside its rule's: `300/1m`, or `300/1m/rolling-window`. */
  readonly label: string
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
  let candidateCount = 0
  const rules = Array.from(list, (options: unknown, index) => {
    const rule = compileRule(options, index, list.length + candidateCount)
    candidateCount += rule.candidates.length
    return rule
  })
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

/**
 * Makes one rule ready, its candidates too.
 *
 * @param index its position in the configuration.
 * @param firstCandidate the index of its first candidate; the others follow.
 */
export function compileRule(options: unknown, index: number, firstCandidate = 0): CompiledRule {
  const checked = checkRule(options, index)
  const own = compileOwn(checked, index)
  const candidates = (checked.candidates ?? []).map((candidate, position) =>
    compileCandidate(checked, candidate, firstCandidate + position),
  )
  checkLabels(own.name, candidates)
  return Object.freeze({ ...own, candidates })
}

/** A label names a candidate's series: two of one name would make the whole scrape unreadable. */
function checkLabels(name: string, candidates: readonly CompiledRule[]): void {
  const labels = candidates.map(({ label }) => label)
  const twice = labels.find((label, position) => labels.indexOf(label) !== position)
  if (twice === undefined) return
  throw new TallygateError(
    'TALLYGATE_RULE_VALUE',
    `Cannot create rule ${shownName(name)}: candidates must differ: received ${twice} twice`,
  )
}

function compileOwn(checked: RuleOptions, index: number): CompiledRule {
  const key = checked.key ?? 'global'
  const near = checked.near ?? 0.8
  const capacity = checked.burst ?? checked.limit
  return {
    index,
    name: checked.name,
    key,
    limit: checked.limit,
    capacity,
    windowMs: parseDuration(checked.window) as number,
    algorithm: algorithms.get(checked.algorithm ?? 'sliding-window') as Algorithm,
    minIntervalMs: parseDuration(checked.minInterval ?? 0) as number,
    maxAgeMs: checked.maxAge === undefined ? Infinity : (parseDuration(checked.maxAge) as number),
    maxEntries: checked.maxEntries ?? 1_000_000,
    strict: checked.strict ?? false,
    function: checked.function ?? null,
    mode: checked.mode ?? 'enforce',
    near,
    nearUsage: near * capacity * nearTolerance,
    absent: checked.absent ?? (key === 'session' ? 'address' : 'skip'),
    maxKeys: checked.maxKeys ?? 1_000_000,
    ipv6Prefix: checked.ipv6Prefix ?? 64,
    expose: checked.expose ?? key !== 'global',
    candidates: [],
    candidateOf: null,
    label: '',
  }
}

/** 0.29 · 100 is 28.999999999999996 in doubles, and 29 of 100 is not above 29 %. */
const nearTolerance = 1 + 2 ** -50

/** The rule with what the candidate states in place of its own, in shadow. */
function compileCandidate(
  rule: RuleOptions,
  candidate: CandidateOptions,
  index: number,
): CompiledRule {
  const title = `${shownName(rule.name)}, candidate ${shown(candidate)}`
  for (const field of Object.keys(candidate)) {
    if (!candidateFields.includes(field)) refuseField(title, field, candidateFields)
  }
  const { window = rule.window, algorithm = rule.algorithm ?? 'sliding-window' } = candidate
  const isSameAlgorithm = algorithm === (rule.algorithm ?? 'sliding-window')
  const stated = { ...rule, limit: candidate.limit, window, algorithm, mode: 'shadow' as const }
  // A field that only the rule's algorithm has says nothing of another one.
  for (const [field, { only }] of Object.entries(ruleFields)) {
    if (only !== undefined && !isSameAlgorithm) delete stated[field as keyof RuleOptions]
  }
  delete stated.burst
  delete stated.candidates
  const compiled = compileOwn(checkFields(stated, title), index)
  const parts = [candidate.limit, formatDuration(compiled.windowMs)]
  const label = [...parts, ...(isSameAlgorithm ? [] : [algorithm])].join('/')
  return Object.freeze({ ...compiled, candidateOf: rule.name, label })
}

const candidateFields = ['limit', 'window', 'algorithm']

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
  return checkFields(given, title)
}

/** Every field by itself, then those that depend on each other. */
function checkFields(given: Record<string, unknown>, title: string): RuleOptions {
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

function checkTogether(title: string, rule: RuleOptions): void {
  const algorithm = rule.algorithm ?? 'sliding-window'
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

function refuseField(title: string, field: string, known: readonly string[]): never {
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

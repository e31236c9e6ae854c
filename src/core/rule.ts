/*
 * A rule as the request path reads it: frozen, plain, validated once. What this version does not know stops
 * the start by name, so that nothing is silently unlimited.
 */
import type { Algorithm } from './algorithm.js'
import { algorithms } from './algorithms/index.js'
import type { Mode } from './decision.js'
import { formatDuration, parseDuration } from './duration.js'
import { shown, TallygateError } from './errors.js'
import { keyNameOf, keyPartsOf, type KeyPart } from './key-parts.js'
import { RequestMatch } from './match.js'
import { limitFields, Plans } from './plans.js'
import { checkFields, checkRule, refuseField, shownName, withoutForeign } from './rule-check.js'
import type { CandidateOptions, RuleOptions } from './rule-options.js'

/** A rule made ready: every option resolved, nothing left to look up. */
export interface CompiledRule {
  /** Position in the configuration; tables and counters have one slot for each. */
  readonly index: number
  readonly name: string
  /** As it is shown: `global`, `ip`, `session`, `header:x-api-key`, `function`, `ip+session`. */
  readonly key: string
  /** What the key is made of; none for everybody together. */
  readonly keyParts: readonly KeyPart[]
  /** Cost units a window; of a rule with plans see there. */
  readonly limit: number
  /** Where the limit is a function: the rule once more for each number that it gave. Else null. */
  readonly plans: Plans | null
  /** The rule itself, for one of its plans; null for a rule. */
  readonly planOf: CompiledRule | null
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
  /** null: every request. */
  readonly match: RequestMatch | null
  /**
   * Whether it has one limit, asks of no request what it is, and counts everybody, the address or the
   * session: nearly all rules, which the request path decides without asking further.
   */
  readonly isPlain: boolean
  readonly mode: Mode
  readonly near: number
  /** Usage above which a verdict is `near`. */
  readonly nearUsage: number
  readonly absent: 'address' | 'skip'
  readonly maxKeys: number
  readonly ipv6Prefix: number
  readonly expose: boolean
  /** Whether the state of its keys is to survive a restart, where there is a database. */
  readonly persist: boolean
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
  const keyParts = keyPartsOf(checked.key ?? 'global')
  const key = keyNameOf(keyParts)
  const near = checked.near ?? 0.8
  const plans = typeof checked.limit === 'function' ? new Plans(checked.limit) : null
  const limit = typeof checked.limit === 'function' ? limitBeforePlans : checked.limit
  const match = checked.match === undefined ? null : new RequestMatch(checked.match)
  const windowMs = parseDuration(checked.window) as number
  return {
    index,
    name: checked.name,
    key,
    keyParts,
    ...limitFields(limit, checked.burst ?? limit, near),
    plans,
    planOf: null,
    windowMs,
    algorithm: algorithms.get(checked.algorithm ?? 'sliding-window') as Algorithm,
    minIntervalMs: parseDuration(checked.minInterval ?? 0) as number,
    maxAgeMs: checked.maxAge === undefined ? Infinity : (parseDuration(checked.maxAge) as number),
    maxEntries: checked.maxEntries ?? 1_000_000,
    strict: checked.strict ?? false,
    function: checked.function ?? null,
    match,
    isPlain: match === null && plans === null && plainKeys.has(key),
    mode: checked.mode ?? 'enforce',
    near,
    absent: checked.absent ?? (key === 'session' ? 'address' : 'skip'),
    maxKeys: checked.maxKeys ?? 1_000_000,
    ipv6Prefix: checked.ipv6Prefix ?? 64,
    expose: checked.expose ?? key !== 'global',
    persist: checked.persist ?? windowMs >= persistedWindowMsMin,
    candidates: [],
    candidateOf: null,
    label: '',
  }
}

const plainKeys: ReadonlySet<string> = new Set(['global', 'ip', 'session'])

/** A shorter window is over soon after a restart. */
const persistedWindowMsMin = 3_600_000

/** Decides nothing; keys kept from another limit are swept by it, late rather than early. */
const limitBeforePlans = 1

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
  if (typeof candidate.limit === 'function') {
    throw new TallygateError(
      'TALLYGATE_RULE_VALUE',
      `Cannot create rule ${title}: limit must be a whole number: received a function`,
    )
  }
  const { window = rule.window, algorithm = rule.algorithm ?? 'sliding-window' } = candidate
  const isSameAlgorithm = algorithm === (rule.algorithm ?? 'sliding-window')
  const own = { limit: candidate.limit, window, algorithm, mode: 'shadow' as const, persist: false }
  const judged = { ...rule, ...own }
  const stated = isSameAlgorithm ? judged : withoutForeign(judged)
  delete stated.burst
  delete stated.candidates
  const compiled = compileOwn(checkFields({ ...stated }, title), index)
  const parts = [candidate.limit, formatDuration(compiled.windowMs)]
  const label = [...parts, ...(isSameAlgorithm ? [] : [algorithm])].join('/')
  return Object.freeze({ ...compiled, candidateOf: rule.name, label })
}

const candidateFields = ['limit', 'window', 'algorithm']

export type { KeyOption, RuleOptions } from './rule-options.js'

/*
 * `tallygate/limiter`: the limiter alone, with no Express, SQLite or Prometheus loaded.
 *
 * @example
 * const limiter = createLimiter({ rules: [{ name: 'ip', key: 'ip', limit: 5, window: '1m' }] })
 * limiter.decide({ ip: '203.0.113.7' }).allowed // true
 */
import { systemClock, type Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { shown, TallygateError } from '../core/errors.js'
import type { Facts } from '../core/facts.js'
import { nearestName } from '../core/spelling.js'
import { compileRules, type RuleOptions } from '../core/rule.js'
import { MemoryStore } from '../stores/memory/memory-store.js'
import { RuleLimiter, type AttemptOptions, type RuleChanges } from './limiter.js'

export interface LimiterOptions {
  rules: readonly RuleOptions[]
  /** Time source; the system's unless said. Tests hand in `manualClock` of `tallygate/testing`. */
  clock?: Clock | undefined
}

/** A limiter whose state is in this process: every answer is there at once. */
export interface Limiter {
  /**
   * Decides one attempt: takes from every rule that applies, or from none.
   *
   * @throws RangeError where `cost` is no whole number from 0.
   */
  decide(facts: Facts, options?: AttemptOptions): Decision
  /** What `decide` would answer; takes nothing and leaves no trace. */
  peek(facts: Facts, options?: AttemptOptions): Decision
  /** Forgets one key of a rule. */
  reset(rule: string, facts: Facts): void
  /** Gives back (`delta` < 0) or adds (`delta` > 0) in the current window; usage never below 0. */
  adjust(rule: string, facts: Facts, delta: number): void
  /** Changes a rule live: `limit`, `mode`, `near` keep the state, a new `window` starts afresh. */
  configure(rule: string, changes: RuleChanges): void
  close(): void
}

/**
 * Makes a limiter of rules, its state in this process.
 *
 * @throws TallygateError naming the rule, the field, what was received and what would be right.
 */
export function createLimiter(options: LimiterOptions): Limiter {
  if (typeof options !== 'object' || options === null) {
    throw new TallygateError(
      'TALLYGATE_OPTION',
      `Cannot create a limiter: options must be an object: received ${shown(options)}`,
    )
  }
  const known = ['rules', 'clock']
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.includes(name)) continue
    const near = nearestName(name, known)
    throw new TallygateError(
      'TALLYGATE_OPTION',
      `Cannot create a limiter: unknown option '${name}': ` +
        (near === null ? `known options are ${known.join(', ')}` : `did you mean ${near}?`),
    )
  }
  const { clock = systemClock } = options
  if (typeof (clock as Clock | null)?.monotonicMs !== 'function') {
    throw new TallygateError(
      'TALLYGATE_OPTION',
      `Cannot create a limiter: clock must have the method monotonicMs: received ${shown(clock)}`,
    )
  }
  const rules = compileRules(options.rules)
  const store = new MemoryStore(rules, clock)
  // A MemoryStore answers at once, so none of these results is ever a promise.
  return new RuleLimiter(options.rules, rules, store, null) as Limiter
}

export { TallygateError } from '../core/errors.js'
export type { Clock } from '../core/clock.js'
export type { Decision, Mode, Outcome, RuleVerdict, Verdict } from '../core/decision.js'
export type { Facts } from '../core/facts.js'
export type { CandidateOptions, RuleOptions } from '../core/rule-options.js'
export type { AttemptOptions, RuleChanges } from './limiter.js'

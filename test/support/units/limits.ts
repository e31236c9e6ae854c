/*
 * Small makers for the tests of rules: a clock at a multiple of every window that is used, rules with the
 * fields a test does not care about filled in, and a count of how many of a burst pass.
 */
import type { Measure } from '../../../src/core/algorithm.js'
import type { Key } from '../../../src/core/key.js'
import type { CompiledRule } from '../../../src/core/rule.js'
import type { DecisionObserver } from '../../../src/core/observer.js'
import { verdictOf } from '../../../src/core/verdict.js'
import type { RuleOptions } from '../../../src/core/rule.js'
import type { Facts } from '../../../src/core/facts.js'
import {
  createLimiter,
  type AttemptOptions,
  type Decision,
  type Limiter,
} from '../../../src/limiter/index.js'
import { manualClock, type ManualClock } from '../../../src/testing/index.js'

/** A multiple of a second, a minute, an hour, a day and of 100 days: t = 0 of the scenarios. */
export const epochMs = 20_400 * 86_400_000

export const someone: Facts = { ip: '203.0.113.7' }

export function ipRule(fields: Partial<RuleOptions> = {}): RuleOptions {
  return { name: 'ip', key: 'ip', limit: 5, window: '1m', ...fields }
}

export interface Bench {
  readonly limiter: Limiter
  readonly clock: ManualClock
  /** Sets the clock to seconds from t = 0. */
  readonly at: (seconds: number) => void
}

export function benchOf(...rules: RuleOptions[]): Bench {
  const clock = manualClock(epochMs)
  const limiter = createLimiter({ rules, clock })
  return { limiter, clock, at: (seconds) => clock.set(epochMs + seconds * 1000) }
}

export function burst(
  limiter: Limiter,
  count: number,
  facts: Facts = someone,
  options?: AttemptOptions,
): Decision[] {
  return Array.from({ length: count }, () => limiter.decide(facts, options))
}

export function passedOf(decisions: readonly Decision[]): number {
  return decisions.filter((decision) => decision.allowed).length
}

/** The message of what a call throws; fails the test where it throws nothing. */
export function messageOf(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('nothing was thrown')
}

/** Told of each rule by itself what it made of an attempt. */
export function observerOf(
  judged: (
    rule: CompiledRule,
    verdict: number,
    key: Key,
    cost: number,
    measure: Measure,
    nowMs: number,
  ) => void,
): DecisionObserver {
  return {
    decided({ rules, keys, cost }, measures, nowMs) {
      for (const [index, rule] of rules.entries()) {
        const measure = measures[index] as Measure
        judged(rule, verdictOf(rule, measure), keys[index] as Key, cost, measure, nowMs)
      }
    },
  }
}

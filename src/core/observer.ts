/*
 * Who wants to know what the limiter decided: metrics, tallies, the heaviest keys. Called on the request
 * path for every attempt, so an observer adds to slots it has already and does nothing else.
 */
import type { Measure } from './algorithm.js'
import type { Key } from './key.js'
import type { CompiledRule } from './rule.js'

export interface DecisionObserver {
  /**
   * @param rule one of the configuration, or a candidate: see its `candidateOf`.
   * @param verdict index into `verdicts`.
   * @param nowMs the rules' clock at the attempt.
   */
  judged(rule: CompiledRule, verdict: number, key: Key, measure: Measure, nowMs: number): void
}

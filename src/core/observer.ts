/*
 * Who wants to know what the limiter decided: metrics, tallies, the heaviest keys. Called on the request
 * path, once for every attempt, so an observer adds to slots it has already and does nothing else.
 */
import type { Measure } from './algorithm.js'
import type { Question } from './facts.js'

export interface DecisionObserver {
  /**
   * @param question its rules are of the configuration, or candidates: see their `candidateOf`.
   * @param measures one for each rule; see `verdictOf`.
   * @param nowMs the rules' clock at the attempt.
   */
  decided(question: Question, measures: readonly Measure[], nowMs: number): void
}

/*
 * A rule's verdict on an attempt, from what it measured.
 */
import type { Measure } from './algorithm.js'
import type { CompiledRule } from './rule.js'

/** Index into `verdicts`: over if the rule itself declines, near if usage with the attempt is high. */
export function verdictOf(rule: CompiledRule, measure: Measure): number {
  if (!measure.allowed) return 2
  return measure.usageWith > rule.nearUsage ? 1 : 0
}

/*
 * How counts lie in a row of slots: first one for each outcome of a request, then for each rule one for
 * each verdict. Everything that counts, keeps or shows tallies reads this layout from here.
 *
 *   [ allowed | declined | exempt | rule 0: within | near | over | rule 1: within | … ]
 */
import { outcomes, verdicts } from '../core/decision.js'

export class TallySlots {
  readonly ruleNames: readonly string[]
  readonly slotCount: number

  constructor(ruleNames: readonly string[]) {
    this.ruleNames = ruleNames
    this.slotCount = outcomes.length + ruleNames.length * verdicts.length
  }

  /** @param rule index of the rule. @param verdict index into `verdicts`. */
  ofVerdict(rule: number, verdict: number): number {
    return outcomes.length + rule * verdicts.length + verdict
  }

  blank(): Float64Array {
    return new Float64Array(this.slotCount)
  }

  /** All requests of a row, whatever became of them. */
  requestsIn(counts: Float64Array): number {
    return outcomes.reduce((sum, _, outcome) => sum + (counts[outcome] ?? 0), 0)
  }
}

/** Adds one row to another, slot by slot. */
export function addInto(target: Float64Array, counts: Float64Array): void {
  for (let slot = 0; slot < target.length; slot++) {
    target[slot] = (target[slot] as number) + (counts[slot] ?? 0)
  }
}

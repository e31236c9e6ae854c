/*
 * The one rule that dialects without names tell of: the Decision's choice, made among the rules that may
 * be told and over all attempts of the request. Of those that declined the one with the longest wait, else
 * the one with the least share of its quota left; by name where two are level, so that neither the order
 * of the rules nor that of the attempts changes the answer.
 */
import type { RuleVerdict } from '../../core/decision.js'
import type { CompiledRule } from '../../core/rule.js'
import { hasDeclined, isTold, waitMsOf, type Reported } from './dialect.js'

export interface Telling {
  readonly rule: CompiledRule
  readonly verdict: RuleVerdict
  /** Until the rule allows what it declined, else until its quota is whole; Infinity where never. */
  readonly waitMs: number
}

/** null where no rule may be told. */
export function tellingRule(attempts: readonly Reported[]): Telling | null {
  let best: CompiledRule | null = null
  let bestVerdict: RuleVerdict | null = null
  let bestTurn = 0
  for (let turn = 0; turn < attempts.length; turn++) {
    const { question, decision } = attempts[turn] as Reported
    let entry = 0
    for (const rule of question.rules) {
      // Candidates have no entry of their own in a decision.
      if (rule.candidateOf !== null) continue
      const verdict = decision.verdicts[entry++] as RuleVerdict
      if (!isTold(attempts, turn, rule, verdict)) continue
      if (
        bestVerdict !== null &&
        !goesBefore(attempts[turn], verdict, attempts[bestTurn], bestVerdict)
      ) {
        continue
      }
      best = rule
      bestVerdict = verdict
      bestTurn = turn
    }
  }
  if (best === null || bestVerdict === null) return null
  return { rule: best, verdict: bestVerdict, waitMs: waitMsOf(attempts[bestTurn], bestVerdict) }
}

function goesBefore(
  reported: Reported | undefined,
  verdict: RuleVerdict,
  bestReported: Reported | undefined,
  best: RuleVerdict,
): boolean {
  const declined = hasDeclined(reported, verdict)
  if (declined !== hasDeclined(bestReported, best)) return declined
  const rank = declined ? verdict.retryAfterMs : verdict.usage / verdict.limit
  const bestRank = declined ? best.retryAfterMs : best.usage / best.limit
  return rank > bestRank || (rank === bestRank && verdict.rule < best.rule)
}

/*
 * An attempt as the store measured it, put into the words of the public answer: which rule to tell the
 * client about, how long to wait, what each rule says.
 */
import type { Measure } from '../core/algorithm.js'
import { verdicts, type Decision, type RuleVerdict } from '../core/decision.js'
import type { CompiledRule } from '../core/rule.js'
import type { Attempt } from '../stores/store.js'

/** The public answer that an attempt makes. */
export function decisionOf(attempt: Attempt): Decision {
  const shownIndex = tellingRule(attempt)
  const measure = attempt.measures[shownIndex]
  const rule = attempt.rules[shownIndex]
  return {
    allowed: attempt.allowed,
    rule: rule?.name ?? null,
    limit: rule?.limit ?? Infinity,
    remaining: measure?.remaining ?? Infinity,
    retryAfterMs: attempt.allowed ? 0 : longestWait(attempt),
    resetMs: measure?.resetMs ?? 0,
    cost: attempt.cost,
    verdicts: attempt.rules.map((of, index) =>
      verdictEntry(of, attempt.measures[index] as Measure),
    ),
  }
}

/** Index into `verdicts`: over if the rule itself declines, near if usage with the attempt is high. */
export function verdictOf(rule: CompiledRule, measure: Measure): number {
  if (!measure.allowed) return 2
  return measure.usageWith > rule.near * rule.limit * nearTolerance ? 1 : 0
}

/** 0.29 · 100 is 28.999999999999996 in doubles, and 29 of 100 is not above 29 %. */
const nearTolerance = 1 + 2 ** -50

function verdictEntry(rule: CompiledRule, measure: Measure): RuleVerdict {
  return {
    rule: rule.name,
    mode: rule.mode,
    verdict: verdicts[verdictOf(rule, measure)] as RuleVerdict['verdict'],
    allowed: measure.allowed,
    limit: rule.limit,
    usage: measure.usage,
    remaining: measure.remaining,
    retryAfterMs: measure.allowed ? 0 : measure.retryAfterMs,
    resetMs: measure.resetMs,
  }
}

/** Milliseconds until every enforced rule would allow the same attempt. */
export function longestWait(attempt: Attempt): number {
  let longestMs = 0
  for (const [index, rule] of attempt.rules.entries()) {
    const waitMs = attempt.measures[index]?.retryAfterMs ?? 0
    if (rule.mode === 'enforce' && waitMs > longestMs) longestMs = waitMs
  }
  return longestMs
}

/** The enforced rule that declined with the longest wait, else the one with the least share left; or −1. */
function tellingRule(attempt: Attempt): number {
  let best = -1
  let bestRank = -Infinity
  for (const [index, rule] of attempt.rules.entries()) {
    const measure = attempt.measures[index] as Measure
    if (rule.mode !== 'enforce' || (!attempt.allowed && measure.allowed)) continue
    const rank = attempt.allowed ? measure.usage / rule.limit : measure.retryAfterMs
    // By name where two are level: the order of the rules changes nothing.
    const isFirstByName = rank === bestRank && rule.name < (attempt.rules[best]?.name ?? '')
    if (best === -1 || rank > bestRank || isFirstByName) {
      best = index
      bestRank = rank
    }
  }
  return best
}

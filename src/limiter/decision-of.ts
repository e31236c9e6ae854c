/*
 * What a store found, put into the words of the public answer: which rule to tell the client about, how
 * long to wait, what each rule says.
 */
import type { Measure } from '../core/algorithm.js'
import { verdicts, type Decision, type RuleVerdict } from '../core/decision.js'
import { verdictOf } from '../core/verdict.js'
import type { CompiledRule } from '../core/rule.js'
import type { Findings, Question } from '../stores/store.js'

export function decisionOf(question: Question, findings: Findings): Decision {
  const { rules, cost } = question
  const { allowed, measures } = findings
  const telling = tellingRule(rules, findings)
  const rule = rules[telling]
  const measure = measures[telling] as Measure
  return {
    allowed,
    rule: rule === undefined ? null : rule.name,
    limit: rule === undefined ? Infinity : rule.capacity,
    remaining: rule === undefined ? Infinity : measure.remaining,
    retryAfterMs: allowed ? 0 : longestWait(rules, measures),
    resetMs: rule === undefined ? 0 : measure.resetMs,
    cost,
    verdicts: verdictsOf(rules, measures),
  }
}

function verdictsOf(rules: readonly CompiledRule[], measures: readonly Measure[]): RuleVerdict[] {
  // Its length at once: a list that is pushed to gets room for seventeen.
  const entries = Array<RuleVerdict>(rules.length)
  let count = 0
  for (let index = 0; index < rules.length; index++) {
    const rule = rules[index] as CompiledRule
    if (rule.candidateOf !== null) continue
    entries[count++] = verdictEntry(rule, measures[index] as Measure)
  }
  if (count < rules.length) entries.length = count
  return entries
}

function verdictEntry(rule: CompiledRule, measure: Measure): RuleVerdict {
  return {
    rule: rule.name,
    mode: rule.mode,
    verdict: verdicts[verdictOf(rule, measure)] as RuleVerdict['verdict'],
    allowed: measure.allowed,
    limit: rule.capacity,
    usage: measure.usage,
    remaining: measure.remaining,
    retryAfterMs: measure.allowed ? 0 : measure.retryAfterMs,
    resetMs: measure.resetMs,
  }
}

/** Milliseconds until every enforced rule would allow the same attempt. */
function longestWait(rules: readonly CompiledRule[], measures: readonly Measure[]): number {
  let longestMs = 0
  for (let index = 0; index < rules.length; index++) {
    const waitMs = measures[index]?.retryAfterMs ?? 0
    if (rules[index]?.mode === 'enforce' && waitMs > longestMs) longestMs = waitMs
  }
  return longestMs
}

/** The enforced rule that declined with the longest wait, else the one with the least share left; or −1. */
function tellingRule(rules: readonly CompiledRule[], { allowed, measures }: Findings): number {
  let best = -1
  let bestRank = -Infinity
  for (let index = 0; index < rules.length; index++) {
    const rule = rules[index] as CompiledRule
    const measure = measures[index] as Measure
    if (rule.mode !== 'enforce' || (!allowed && measure.allowed)) continue
    const rank = allowed ? measure.usage / rule.capacity : measure.retryAfterMs
    // By name where two are level: the order of the rules changes nothing.
    const isFirstByName = rank === bestRank && rule.name < (rules[best]?.name ?? '')
    if (best === -1 || rank > bestRank || isFirstByName) {
      best = index
      bestRank = rank
    }
  }
  return best
}

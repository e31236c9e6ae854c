/*
 * What every dialect of the RateLimit fields has in common: what it is told, where it writes, and which
 * rules it may name: every enforced rule that applied and is exposed, and any that declined. A dialect is
 * pure text from rules and measures; it knows no HTTP, so a later draft is one more file beside this one.
 * No key, hashed or not, is ever in a field. On the way of every request: no closures here.
 */
import type { Decision, RuleVerdict } from '../../core/decision.js'
import type { Question } from '../../core/facts.js'
import type { CompiledRule } from '../../core/rule.js'

/** An attempt of a request, as far as the fields tell of it. */
export interface Reported {
  readonly question: Question
  readonly decision: Decision
  /** It was allowed and given back; `decision` is how its rules stand now, and none of them declined. */
  readonly isGivenBack?: boolean
}

/** Where fields are written to: a response, or whatever else holds some. */
export interface Fields {
  setHeader(name: string, value: string): unknown
  removeHeader(name: string): unknown
}

/** Writes the fields over all attempts of a request; a later attempt writes over what earlier ones said. */
export type Dialect = (attempts: readonly Reported[], fields: Fields) => void

/** Whether the fields name this rule for the attempt at `turn`. */
export function isTold(
  attempts: readonly Reported[],
  turn: number,
  rule: CompiledRule,
  verdict: RuleVerdict,
): boolean {
  if (rule.mode !== 'enforce') return false
  if (!rule.expose && !hasDeclined(attempts[turn], verdict)) return false
  return !isAskedAgain(attempts, turn, rule.index)
}

/** Whether a rule declined its attempt, which is more than that it would decline now. */
export function hasDeclined(reported: Reported | undefined, verdict: RuleVerdict): boolean {
  return !verdict.allowed && reported?.isGivenBack !== true
}

/** How long a told rule lets wait: until it allows what it declined, else until its quota is whole. */
export function waitMsOf(reported: Reported | undefined, verdict: RuleVerdict): number {
  return hasDeclined(reported, verdict) ? verdict.retryAfterMs : verdict.resetMs
}

/** Whether a later attempt of the request asked the rule once more: its latest word counts. */
function isAskedAgain(attempts: readonly Reported[], turn: number, index: number): boolean {
  for (let later = turn + 1; later < attempts.length; later++) {
    // By index: a live change between two attempts makes another rule of the same place.
    for (const rule of (attempts[later] as Reported).question.rules) {
      if (rule.index === index) return true
    }
  }
  return false
}

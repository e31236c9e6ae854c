/*
 * The RateLimit fields of the IETF drafts 08 to 11 (draft-ietf-httpapi-ratelimit-headers):
 *
 *   RateLimit-Policy: "ip";q=400;w=60, "session";q=200;w=60
 *   RateLimit: "ip";r=398;t=71, "session";r=199;t=71
 *
 * Every enforced rule that applied and is exposed is named, and any that declined. Seconds are whole and
 * rounded up. No key, hashed or not, is ever in a header. Pure text from rules and measures, so that a
 * later draft touches this file alone.
 */
import type { RuleVerdict } from '../core/decision.js'
import type { CompiledRule } from '../core/rule.js'
import type { Attempt } from '../limiter/limiter.js'

export interface RateLimitFields {
  policy: string
  state: string
}

/** An attempt, as far as the fields tell of it. */
export type Reported = Pick<Attempt, 'question' | 'decision'>

/** Both fields over all attempts of a request, or null where no rule is to be named. */
export function rateLimitFields(attempts: readonly Reported[]): RateLimitFields | null {
  let policy = ''
  let state = ''
  for (let turn = 0; turn < attempts.length; turn++) {
    const { question, decision } = attempts[turn] as Reported
    let entry = 0
    for (const rule of question.rules) {
      // Candidates have no entry of their own in a decision.
      if (rule.candidateOf !== null) continue
      const verdict = decision.verdicts[entry++] as RuleVerdict
      if (rule.mode !== 'enforce' || !(rule.expose || !verdict.allowed)) continue
      if (isAskedAgain(rule, attempts, turn)) continue
      const separator = policy === '' ? '' : ', '
      policy += separator + policyItem(rule)
      state += separator + stateItem(verdict)
    }
  }
  return policy === '' ? null : { policy, state }
}

/** Whether a later attempt of the request asked the rule once more: its latest word counts. */
function isAskedAgain(rule: CompiledRule, attempts: readonly Reported[], turn: number): boolean {
  for (let later = turn + 1; later < attempts.length; later++) {
    if (attempts[later]?.question.rules.includes(rule) === true) return true
  }
  return false
}

/** Whole seconds, rounded up, at least 1; null where the wait has no end. */
export function retryAfterSeconds(retryAfterMs: number): number | null {
  return retryAfterMs === Infinity ? null : Math.max(1, Math.ceil(retryAfterMs / 1000))
}

function policyItem(rule: CompiledRule): string {
  const window = rule.windowMs % 1000 === 0 ? `;w=${rule.windowMs / 1000}` : ''
  return `"${rule.name}";q=${rule.limit}${window}`
}

function stateItem({ rule, allowed, remaining, resetMs, retryAfterMs }: RuleVerdict): string {
  const waitMs = allowed ? resetMs : retryAfterMs
  const time = waitMs === Infinity ? '' : `;t=${Math.ceil(waitMs / 1000)}`
  return `"${rule}";r=${remaining}${time}`
}

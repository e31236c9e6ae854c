/*
 * The RateLimit fields of the IETF drafts up to 06, which tell of one rule:
 *
 *   RateLimit-Limit: 400
 *   RateLimit-Remaining: 398
 *   RateLimit-Reset: 71
 *   RateLimit-Policy: 400;w=60
 *
 * The reset is a span in whole seconds, rounded up, and is left out where there is no end to the wait. A
 * policy must have its window and a window whole seconds, so for any other window that field is left out.
 */
import type { CompiledRule } from '../../core/rule.js'
import type { Dialect } from './dialect.js'
import { wholeSeconds } from './seconds.js'
import { tellingRule } from './telling-rule.js'

interface RuleText {
  readonly limit: string
  readonly policy: string | null
}

export function draft6(): Dialect {
  // A live change makes a new compiled rule, so what is kept here is never out of date.
  const texts = new WeakMap<CompiledRule, RuleText>()
  return function writeDraft6(attempts, fields) {
    const telling = tellingRule(attempts)
    if (telling === null) return
    const { rule, verdict, waitMs } = telling
    const { limit, policy } = texts.get(rule) ?? textOf(rule, texts)
    fields.setHeader('RateLimit-Limit', limit)
    fields.setHeader('RateLimit-Remaining', String(verdict.remaining))
    // Removed, not only left out: an earlier attempt of the request may have set it for another rule.
    if (waitMs === Infinity) fields.removeHeader('RateLimit-Reset')
    else fields.setHeader('RateLimit-Reset', String(wholeSeconds(waitMs)))
    if (policy === null) fields.removeHeader('RateLimit-Policy')
    else fields.setHeader('RateLimit-Policy', policy)
  }
}

function textOf(rule: CompiledRule, texts: WeakMap<CompiledRule, RuleText>): RuleText {
  const isWhole = rule.windowMs % 1000 === 0
  const policy = isWhole ? `${rule.limit};w=${rule.windowMs / 1000}` : null
  // What remains is of the capacity: a token bucket's burst, else the limit.
  const text = { limit: String(rule.capacity), policy }
  texts.set(rule, text)
  return text
}

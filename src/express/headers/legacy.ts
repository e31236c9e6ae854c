/*
 * The fields from before there was a draft, as many services have them; they tell of one rule:
 *
 *   X-RateLimit-Limit: 400
 *   X-RateLimit-Remaining: 398
 *   X-RateLimit-Reset: 1700000038
 *
 * The reset is a moment in whole seconds since the epoch, rounded up, by the wall clock, because clients
 * compare it with theirs; it is left out where there is no end to the wait.
 */
import type { Clock } from '../../core/clock.js'
import type { Dialect } from './dialect.js'
import { tellingRule } from './telling-rule.js'

/** Ten digits, the year 2286: a longer number would be read as milliseconds. */
const momentMax = 9_999_999_999

export function legacy(clock: Clock): Dialect {
  return function writeLegacy(attempts, fields) {
    const telling = tellingRule(attempts)
    if (telling === null) return
    const { verdict, waitMs } = telling
    fields.setHeader('X-RateLimit-Limit', String(verdict.limit))
    fields.setHeader('X-RateLimit-Remaining', String(verdict.remaining))
    // Removed, not only left out: an earlier attempt of the request may have set it for another rule.
    if (waitMs === Infinity) return void fields.removeHeader('X-RateLimit-Reset')
    const moment = Math.min(Math.ceil((clock.wallMs() + waitMs) / 1000), momentMax)
    fields.setHeader('X-RateLimit-Reset', String(moment))
  }
}

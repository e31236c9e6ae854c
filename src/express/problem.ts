/*
 * The answer to a declined request: 429 with a problem document (RFC 9457, of the type that the RateLimit
 * draft registers), Retry-After, and no caching. It says which rule, how much it allows, and when to come
 * back; it never says whom the rule counted.
 */
import type { ServerResponse } from 'node:http'
import type { Measure } from '../core/algorithm.js'
import { formatDuration } from '../core/duration.js'
import { longestWait } from '../limiter/decision-of.js'
import type { CompiledRule } from '../core/rule.js'
import type { Attempt } from '../stores/store.js'
import { retryAfterSeconds } from './headers.js'

export const quotaExceeded = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

/** Ends the response with what the declined attempt says. */
export function sendDeclined(response: ServerResponse, attempt: Attempt): void {
  const waitMs = longestWait(attempt)
  const seconds = retryAfterSeconds(waitMs)
  const body = JSON.stringify({
    type: quotaExceeded,
    title: 'Too many requests',
    status: 429,
    detail: detailOf(attempt, seconds),
    'violated-policies': declining(attempt).map(({ rule }) => rule.name),
    retryAfterMs: waitMs === Infinity ? null : waitMs,
  })
  response.statusCode = 429
  if (seconds !== null) response.setHeader('Retry-After', String(seconds))
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Content-Type', 'application/problem+json')
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

function detailOf(attempt: Attempt, seconds: number | null): string {
  const [worst] = declining(attempt).toSorted(
    (a, b) => b.measure.retryAfterMs - a.measure.retryAfterMs,
  )
  if (worst === undefined) return 'declined'
  const { name, limit, windowMs } = worst.rule
  const requests = limit === 1 ? 'request' : 'requests'
  const advice = seconds === null ? 'this one can never pass' : `retry in ${seconds} s`
  return `${name} allows ${limit} ${requests} in ${formatDuration(windowMs)}; ${advice}`
}

/** The enforced rules that declined, in the order of the configuration. */
function declining(attempt: Attempt): { rule: CompiledRule; measure: Measure }[] {
  return attempt.rules.flatMap((rule, index) => {
    const measure = attempt.measures[index] as Measure
    return rule.mode === 'enforce' && !measure.allowed ? [{ rule, measure }] : []
  })
}

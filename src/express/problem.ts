/*
 * The answer to a declined request: 429 with Retry-After and no caching, and a problem document (RFC 9457,
 * of the type that the RateLimit draft registers). It says which rule, how much it allows, and when to come
 * back; it never says whom the rule counted. What earlier middleware set stays, but for what is said here.
 */
import type { ServerResponse } from 'node:http'
import type { Decision, RuleVerdict } from '../core/decision.js'
import { formatDuration } from '../core/duration.js'
import type { Attempt } from '../limiter/limiter.js'
import { retryAfterSeconds } from './headers/seconds.js'

export const quotaExceeded = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

/** Everything but the body, so that another body may take the document's place. */
export function markDeclined(response: ServerResponse, retryAfterMs: number): void {
  const seconds = retryAfterSeconds(retryAfterMs)
  response.statusCode = 429
  response.setHeader('Cache-Control', 'no-store')
  if (seconds === null) return
  response.setHeader('Retry-After', String(seconds))
  exposeRetryAfter(response)
}

/** Ends a response that was marked with what the declined attempt says. */
export function sendProblem(
  response: ServerResponse,
  attempt: Attempt,
  retryAfterMs: number,
): void {
  const document = quotaProblem(detailOf(attempt, retryAfterMs), attempt.decision, retryAfterMs)
  const body = JSON.stringify(document)
  response.setHeader('Content-Type', 'application/problem+json')
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

/** The problem document of a declined request. */
export function quotaProblem(detail: string, { verdicts }: Decision, retryAfterMs: number): object {
  return {
    type: quotaExceeded,
    title: 'Too many requests',
    status: 429,
    detail,
    'violated-policies': verdicts.filter(isDeclining).map(({ rule }) => rule),
    retryAfterMs: retryAfterMs === Infinity ? null : retryAfterMs,
  }
}

/** Which rule declined, how much it allows, and when to come back. */
export function detailOf({ question, decision }: Attempt, retryAfterMs: number): string {
  const rule = question.rules.find(({ name }) => name === decision.rule)
  if (rule === undefined) return 'declined'
  const seconds = retryAfterSeconds(retryAfterMs)
  const requests = rule.limit === 1 ? 'request' : 'requests'
  const advice = seconds === null ? 'this one can never pass' : `retry in ${seconds} s`
  return `${rule.name} allows ${rule.limit} ${requests} in ${formatDuration(rule.windowMs)}; ${advice}`
}

const exposing = 'Access-Control-Expose-Headers'

/** A page that CORS middleware in front lets read the answer may also read when to come back. */
function exposeRetryAfter(response: ServerResponse): void {
  if (!response.hasHeader('Access-Control-Allow-Origin')) return
  const exposed = String(response.getHeader(exposing) ?? '')
  if (/(^|[\s,])retry-after($|[\s,])/i.test(exposed)) return
  response.setHeader(exposing, exposed === '' ? 'Retry-After' : `${exposed}, Retry-After`)
}

function isDeclining({ mode, allowed }: RuleVerdict): boolean {
  return mode === 'enforce' && !allowed
}

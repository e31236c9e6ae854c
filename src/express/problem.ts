/*
 * The answer to a declined request: 429 with a problem document (RFC 9457, of the type that the RateLimit
 * draft registers), Retry-After, and no caching. It says which rule, how much it allows, and when to come
 * back; it never says whom the rule counted.
 */
import type { ServerResponse } from 'node:http'
import type { RuleVerdict } from '../core/decision.js'
import { formatDuration } from '../core/duration.js'
import type { Attempt } from '../limiter/limiter.js'
import { retryAfterSeconds } from './headers.js'

export const quotaExceeded = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

/** Ends the response with what the declined attempt says. */
export function sendDeclined(response: ServerResponse, attempt: Attempt): void {
  const { retryAfterMs } = attempt.decision
  const seconds = retryAfterSeconds(retryAfterMs)
  const declining = attempt.decision.verdicts.filter(isDeclining)
  const body = JSON.stringify({
    type: quotaExceeded,
    title: 'Too many requests',
    status: 429,
    detail: detailOf(attempt, declining, seconds),
    'violated-policies': declining.map(({ rule }) => rule),
    retryAfterMs: retryAfterMs === Infinity ? null : retryAfterMs,
  })
  response.statusCode = 429
  if (seconds !== null) response.setHeader('Retry-After', String(seconds))
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Content-Type', 'application/problem+json')
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

function detailOf(
  { question, decision }: Attempt,
  declining: readonly RuleVerdict[],
  seconds: number | null,
): string {
  const name = decision.rule ?? declining[0]?.rule
  const rule = question.rules.find((each) => each.name === name)
  if (rule === undefined) return 'declined'
  const requests = rule.limit === 1 ? 'request' : 'requests'
  const advice = seconds === null ? 'this one can never pass' : `retry in ${seconds} s`
  return `${rule.name} allows ${rule.limit} ${requests} in ${formatDuration(rule.windowMs)}; ${advice}`
}

function isDeclining({ mode, allowed }: RuleVerdict): boolean {
  return mode === 'enforce' && !allowed
}

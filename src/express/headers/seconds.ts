/*
 * How spans of time stand in header fields: whole seconds, rounded up, so that a client that waits as long
 * as it is told never comes too early. Milliseconds in; the caller leaves a wait without end out.
 */

/** The largest integer of a structured field (RFC 9651): 15 digits. A full bucket may take longer to refill. */
const secondsMax = 999_999_999_999_999

/** Whole seconds of a finite span, rounded up. */
export function wholeSeconds(spanMs: number): number {
  return Math.min(Math.ceil(spanMs / 1000), secondsMax)
}

/** What `Retry-After` says: whole seconds, at least 1; null where the wait has no end. */
export function retryAfterSeconds(retryAfterMs: number): number | null {
  return retryAfterMs === Infinity ? null : Math.max(1, wholeSeconds(retryAfterMs))
}

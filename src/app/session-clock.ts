/*
 * The time by which sessions end: the wall clock's, because cookies and rows name an instant, also to other
 * processes and after a restart. But a wall clock may be set to a wrong time for a while, and a session
 * that is deleted then is gone. So where it steps, a session has ended only by both times, the new one and
 * the one that would be without the step, until the step has lasted for ten minutes.
 *
 * A step forward that stays costs sessions its length; one back lets them live longer by as much.
 */
import type { Clock } from '../core/clock.js'

/** Far above what slewing does between two requests, far below what ends anybody's session. */
const stepMsMin = 5_000
const believedAfterMs = 600_000

/** @returns milliseconds since the epoch. */
export function sessionClock(clock: Clock): () => number {
  let offsetMs = clock.wallMs() - clock.monotonicMs()
  let stepSinceMs: number | null = null
  return () => {
    const monotonicMs = clock.monotonicMs()
    const wallMs = clock.wallMs()
    const isStepped = Math.abs(wallMs - monotonicMs - offsetMs) >= stepMsMin
    stepSinceMs = isStepped ? (stepSinceMs ?? monotonicMs) : null
    if (stepSinceMs !== null && monotonicMs - stepSinceMs < believedAfterMs) {
      return Math.min(wallMs, monotonicMs + offsetMs)
    }
    offsetMs = wallMs - monotonicMs
    stepSinceMs = null
    return wallMs
  }
}

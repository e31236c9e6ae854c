/*
 * `tallygate/testing`: what a test of limits needs. No timer runs and nothing sleeps.
 */
import type { Clock } from '../core/clock.js'

export interface ManualClock extends Clock {
  /** Lets time pass, in both readings. */
  advance(spanMs: number): void
  /** Sets both readings to a time since the epoch; it may lie in the past. */
  set(timeMs: number): void
}

/**
 * A clock that stands still until it is told otherwise.
 *
 * @param startMs milliseconds since the epoch.
 * @example
 * const clock = manualClock(1_760_000_000_000)
 * clock.advance(60_000)
 */
export function manualClock(startMs = 0): ManualClock {
  let nowMs = startMs
  return {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    advance(spanMs) {
      nowMs += spanMs
    },
    set(timeMs) {
      nowMs = timeMs
    },
  }
}

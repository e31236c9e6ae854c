/*
 * The only contact with time. Rules read a monotonic clock, so that a step of the system's clock neither
 * frees nor locks out anybody; the calendar of the tallies reads the wall clock, as people do. Both are
 * milliseconds since the epoch and may be fractional. Nothing else in `src` calls Date.now or
 * performance.now; tests hand in a clock of their own.
 */

export interface Clock {
  /** Milliseconds that never run backwards within a process; anchored to the epoch at its start. */
  monotonicMs(): number
  /** Milliseconds since the epoch, as the system tells them; may step either way. */
  wallMs(): number
}

/** Read once: as a getter it costs half as much as the clock itself. */
const { timeOrigin } = performance

/** Tells this process from another that had its number before. */
export const processStartMs: number = timeOrigin

export const systemClock: Clock = {
  monotonicMs: () => timeOrigin + performance.now(),
  wallMs: () => Date.now(),
}

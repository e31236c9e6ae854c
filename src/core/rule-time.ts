/*
 * Time as one rule sees it: the reading of the clock, and the window that it lies in, worked out when the
 * window changes and not for every attempt (a remainder of doubles costs as much as a decision).
 *
 * A key has a time of its own, its last counted attempt, and that never runs backwards by a little: a
 * reading behind it by up to two windows counts as no time passed, and `lagMs` says how far behind the
 * clock is. Further back the key starts afresh: what lies ahead counts for nothing. So a step of the clock
 * never throws, frees at most one window's quota a key, and locks nobody out for more than four windows.
 */

export class RuleTime {
  /** The last reading of the clock, in milliseconds since the epoch, possibly fractional. */
  clockMs = NaN
  /** The time of the key that is being asked about: the clock's, or its own where that is ahead. */
  nowMs = NaN
  /** How far the clock is behind `nowMs`; waits are longer by it. */
  lagMs = 0
  /** Start of the window that `nowMs` lies in. */
  startMs = 0
  /** How far into it `nowMs` lies, exactly. */
  elapsedMs = 0
  readonly windowMs: number
  #clockStartMs = 0

  constructor(windowMs: number) {
    this.windowMs = windowMs
  }

  /** Takes a reading of the clock, for a key that is not behind or ahead of it. */
  read(clockMs: number): void {
    this.clockMs = clockMs
    const elapsedMs = clockMs - this.#clockStartMs
    if (!(elapsedMs >= 0 && elapsedMs < this.windowMs)) {
      this.#clockStartMs = startOf(clockMs, this.windowMs)
    }
    this.#follow()
  }

  /** Goes over to the time of a key whose last counted attempt was at `lastMs`. */
  alignTo(lastMs: number): void {
    if (lastMs > this.clockMs && lastMs - this.clockMs <= 2 * this.windowMs) {
      this.nowMs = lastMs
      this.lagMs = lastMs - this.clockMs
      this.startMs = startOf(lastMs, this.windowMs)
      this.elapsedMs = lastMs - this.startMs
    } else {
      this.alignToClock()
    }
  }

  /** Goes over to the time of a key that has none of its own. */
  alignToClock(): void {
    if (this.lagMs !== 0) this.#follow()
  }

  #follow(): void {
    this.nowMs = this.clockMs
    this.lagMs = 0
    this.startMs = this.#clockStartMs
    this.elapsedMs = this.clockMs - this.#clockStartMs
  }
}

/** Start of the window that a time lies in. A remainder of doubles is exact, a quotient is not. */
export function startOf(timeMs: number, windowMs: number): number {
  const restMs = timeMs % windowMs
  // Before the epoch, where a clock may be set, the remainder is negative.
  return timeMs - (restMs < 0 ? restMs + windowMs : restMs)
}

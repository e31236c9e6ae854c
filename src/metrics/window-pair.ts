/*
 * The current window of a rule and the last closed one, as whatever is kept of each. Windows start at
 * multiples of their length since the epoch, by the rules' clock.
 *
 * A reading of the clock behind by up to two windows counts in the current window; further back, or NaN,
 * starts afresh. Windows that passed without a reading are empty.
 */
import { startOf } from '../core/rule-time.js'

/** Where a reading stands: in the current window, in the one after it, or in neither, so that both are over. */
export type Turn = 'current' | 'next' | 'afresh'

/** @param elapsedMs since the start of the current window. */
export function turnAt(elapsedMs: number, windowMs: number): Turn {
  if (elapsedMs < windowMs && elapsedMs >= -2 * windowMs) return 'current'
  return elapsedMs >= windowMs && elapsedMs < 2 * windowMs ? 'next' : 'afresh'
}

export class WindowPair<Kept extends { clear(): void }> {
  current: Kept
  last: Kept
  readonly #windowMs: number
  #startMs = -Infinity

  constructor(windowMs: number, make: () => Kept) {
    this.#windowMs = windowMs
    this.current = make()
    this.last = make()
  }

  /** Goes over to the window of a reading. */
  follow(nowMs: number): void {
    const turn = turnAt(nowMs - this.#startMs, this.#windowMs)
    if (turn === 'current') return
    const next = this.last
    this.last = this.current
    this.current = next
    next.clear()
    if (turn === 'afresh') this.last.clear()
    this.#startMs = startOf(nowMs, this.#windowMs)
  }
}

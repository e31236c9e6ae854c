/*
 * What a limit declined in its rule's current window and in the last closed one: how often, and how many
 * different keys. One for each rule and each candidate, made at its first decline; windows are the rule's,
 * for its candidates too, and start at multiples of their length since the epoch, by the rules' clock.
 *
 * A reading of the clock behind by up to two windows counts in the current window; further back, or NaN,
 * starts afresh. Costs nothing where nothing is declined. Bytes: two sketches, 24 KB.
 */
import type { KeyWords } from '../core/key-id.js'
import { startOf } from '../core/rule-time.js'
import { DistinctKeys } from './distinct-keys.js'

/** Over both windows together. */
export interface Declines {
  /** Attempts that the limit declined. */
  readonly over: number
  /** Different keys that made them: exact up to 512 in a window, beyond that within some per cent. */
  readonly keysOver: number
}

export const noDeclines: Declines = { over: 0, keysOver: 0 }

interface DeclinedWindow {
  over: number
  readonly keys: DistinctKeys
}

export class DeclinedKeys {
  readonly windowMs: number
  /** Start of the current window. */
  #startMs = -Infinity
  #current: DeclinedWindow = { over: 0, keys: new DistinctKeys() }
  #last: DeclinedWindow = { over: 0, keys: new DistinctKeys() }

  constructor(windowMs: number) {
    this.windowMs = windowMs
  }

  /** @param nowMs the rules' clock at the attempt. */
  count(key: KeyWords, nowMs: number): void {
    this.#follow(nowMs)
    this.#current.over++
    this.#current.keys.add(key)
  }

  read(nowMs: number): Declines {
    this.#follow(nowMs)
    return {
      over: this.#current.over + this.#last.over,
      keysOver: this.#current.keys.countWith(this.#last.keys),
    }
  }

  #follow(nowMs: number): void {
    const elapsedMs = nowMs - this.#startMs
    if (elapsedMs < this.windowMs && elapsedMs >= -2 * this.windowMs) return
    const isNext = elapsedMs >= this.windowMs && elapsedMs < 2 * this.windowMs
    const next = this.#last
    this.#last = this.#current
    this.#current = next
    clear(next)
    if (!isNext) clear(this.#last)
    this.#startMs = startOf(nowMs, this.windowMs)
  }
}

function clear(window: DeclinedWindow): void {
  window.over = 0
  window.keys.clear()
}

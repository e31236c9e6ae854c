/*
 * What a limit declined in its rule's current window and in the last closed one: how often, and how many
 * different keys. One for each rule and each candidate, made at its first decline; windows are the rule's,
 * for its candidates too, see `WindowPair`.
 *
 * Costs nothing where nothing is declined. Bytes: two sketches, 24 KB.
 */
import type { KeyWords } from '../core/key-id.js'
import { DistinctKeys } from './distinct-keys.js'
import { WindowPair } from './window-pair.js'

/** Over both windows together. */
export interface Declines {
  /** Attempts that the limit declined. */
  readonly over: number
  /** Different keys that made them: exact up to 512 in a window, beyond that within some per cent. */
  readonly keysOver: number
}

export const noDeclines: Declines = { over: 0, keysOver: 0 }

export class DeclinedKeys {
  readonly windowMs: number
  readonly #windows: WindowPair<DeclinedWindow>

  constructor(windowMs: number) {
    this.windowMs = windowMs
    this.#windows = new WindowPair(windowMs, () => new DeclinedWindow())
  }

  /** @param nowMs the rules' clock at the attempt. */
  count(key: KeyWords, nowMs: number): void {
    this.#windows.follow(nowMs)
    const { current } = this.#windows
    current.over++
    current.keys.add(key)
  }

  read(nowMs: number): Declines {
    this.#windows.follow(nowMs)
    const { current, last } = this.#windows
    return { over: current.over + last.over, keysOver: current.keys.countWith(last.keys) }
  }
}

class DeclinedWindow {
  over = 0
  readonly keys = new DistinctKeys()

  clear(): void {
    this.over = 0
    this.keys.clear()
  }
}

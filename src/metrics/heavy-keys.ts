/*
 * The heaviest and the most declined keys of one rule, in its current window and the last closed one, see
 * `WindowPair`. Each has two sketches: of all attempts, and of those over the limit alone, so that a key
 * declined often is not lost among heavier ones that are allowed. See `SpaceSaving` for what a sketch guarantees; the lists here keep it
 * for both windows together: requests − countErrorMax ≤ true ≤ requests, and `over` is never too high.
 *
 * Bytes: four sketches, 80 KB, and at most 300 KB of texts. Cost: a hit takes about 10 ns, 25 ns where 400
 * keys take turns, a declined one twice that; none allocates. A window turns in 2 microseconds; a list
 * visits 1,024 slots, in less than half a millisecond.
 */
import type { Key } from '../core/key.js'
import { keyIdOf, type KeyWords } from '../core/key-id.js'
import { noSlot, SpaceSaving } from './space-saving.js'
import { WindowPair } from './window-pair.js'

/** One entry of a list, over both windows together. */
export interface HeavyKey {
  /** 16 hexadecimal digits of a seeded hash: opaque, the same until the process ends. */
  readonly id: string
  /** The address; null where none is kept, and for keys of any other kind. */
  readonly key: string | null
  /** Attempts of the key, at most. */
  readonly requests: number
  /** Those of them that were over the limit, at least. */
  readonly over: number
  /** By how much `requests` may be too high; 0 until more than 8 keys share a set. */
  readonly countErrorMax: number
}

/** What one window knows; `declined` counts only attempts that were over. */
class Sketches {
  readonly attempts = new SpaceSaving()
  readonly declined = new SpaceSaving()

  clear(): void {
    this.attempts.clear()
    this.declined.clear()
  }
}

export class HeavyKeys {
  readonly windowMs: number
  readonly #windows: WindowPair<Sketches>

  constructor(windowMs: number) {
    this.windowMs = windowMs
    this.#windows = new WindowPair(windowMs, () => new Sketches())
  }

  /** @param nowMs the rules' clock at the attempt. */
  count(key: Key, isOver: boolean, nowMs: number): void {
    this.#windows.follow(nowMs)
    this.#windows.current.attempts.count(key, isOver)
    if (isOver) this.#windows.current.declined.count(key, true)
  }

  /** Attempts of all keys in both windows, exactly. */
  attempts(nowMs: number): number {
    this.#windows.follow(nowMs)
    return this.#windows.current.attempts.attempts + this.#windows.last.attempts.attempts
  }

  /**
   * The keys that made the most attempts, those first that certainly made most (requests − countErrorMax):
   * a key that passes by once in a flood inherits a high count and is certain of one.
   */
  heaviest(nowMs: number, limit: number): HeavyKey[] {
    return this.#list('attempts', nowMs, limit)
  }

  /** The keys that were over the limit most often, by `over`. */
  mostDeclined(nowMs: number, limit: number): HeavyKey[] {
    return this.#list('declined', nowMs, limit)
  }

  /**
   * The heaviest keys, to be read beside those of other processes: with the most attempts that a key which
   * is not among them can have made.
   */
  listed(nowMs: number, limit: number): { keys: HeavyKey[]; unlistedMax: number } {
    const all = this.#list('attempts', nowMs, Infinity)
    const [current, last] = [this.#windows.current.attempts, this.#windows.last.attempts]
    const unlisted = current.unlistedMax() + last.unlistedMax()
    const left = all.slice(limit).map(({ requests }) => requests)
    return { keys: all.slice(0, limit), unlistedMax: Math.max(unlisted, ...left) }
  }

  /** What is known of one key; null where neither list has it. */
  entry({ low, high }: KeyWords, nowMs: number): HeavyKey | null {
    this.#windows.follow(nowMs)
    const isListed = [this.#windows.current, this.#windows.last].some(
      ({ attempts, declined }) =>
        attempts.find(low, high) !== noSlot || declined.find(low, high) !== noSlot,
    )
    return isListed ? entryOf(this.#lookUp(low, high)) : null
  }

  /**
   * Share of a window's attempts that one key made, at least: of the last closed window, or, where that
   * had no attempts, of the current one; 0 where neither had any. The current window comes second because
   * of its first few attempts one key often makes all.
   */
  largestRatio(nowMs: number): number {
    this.#windows.follow(nowMs)
    const { attempts } =
      this.#windows.last.attempts.attempts > 0 ? this.#windows.last : this.#windows.current
    return attempts.attempts > 0 ? attempts.largest() / attempts.attempts : 0
  }

  #list(sketch: 'attempts' | 'declined', nowMs: number, limit: number): HeavyKey[] {
    this.#windows.follow(nowMs)
    const found: Found[] = []
    const current = this.#windows.current[sketch]
    current.forEachKey((low, high) => found.push(this.#lookUp(low, high)))
    this.#windows.last[sketch].forEachKey((low, high) => {
      if (current.find(low, high) === noSlot) found.push(this.#lookUp(low, high))
    })
    const rank = sketch === 'attempts' ? 'atLeast' : 'over'
    found.sort(
      (a, b) =>
        b[rank] - a[rank] || (a.high >>> 0) - (b.high >>> 0) || (a.low >>> 0) - (b.low >>> 0),
    )
    return found.slice(0, limit).map(entryOf)
  }

  #lookUp(low: number, high: number): Found {
    const found: Found = { low, high, text: null, atLeast: 0, atMost: 0, over: 0 }
    addWindow(found, this.#windows.current)
    addWindow(found, this.#windows.last)
    return found
  }
}

/** What is known of one key. */
interface Found {
  readonly low: number
  readonly high: number
  text: string | null
  atLeast: number
  atMost: number
  over: number
}

/** A key may be in either sketch, in both or in none; each bound is the tightest that they allow. */
function addWindow(found: Found, { attempts, declined }: Sketches): void {
  const { low, high } = found
  const slot = attempts.find(low, high)
  const overSlot = declined.find(low, high)
  const isListed = slot !== noSlot
  const isOverListed = overSlot !== noSlot
  const over = Math.max(
    isListed ? attempts.overOf(slot) : 0,
    isOverListed ? declined.atLeastOf(overSlot) : 0,
  )
  found.over += over
  found.atLeast += isListed ? Math.max(attempts.atLeastOf(slot), over) : over
  found.atMost += isListed ? attempts.atMostOf(slot) : attempts.ceiling(high)
  if (isListed) found.text ??= attempts.textOf(slot)
  if (isOverListed) found.text ??= declined.textOf(overSlot)
}

function entryOf({ low, high, text, atLeast, atMost, over }: Found): HeavyKey {
  const id = keyIdOf({ low, high })
  return { id, key: text, requests: atMost, over, countErrorMax: atMost - atLeast }
}

/*
 * The heaviest keys of a stream, in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi, "Efficient
 * Computation of Frequent and Top-k Elements in Data Streams", 2005) in 64 sets of 8 ways. A key belongs
 * to the set that its hash chooses; a new key in a full set replaces the least counted way and inherits
 * its count, as an error. Attempts are counted, not their cost. What always holds, since `clear`:
 *
 * - a listed key made at least count − error attempts and at most count; one that is not listed made at
 *   most `ceiling`, the least count of its set (0 while the set has a free way);
 * - so a key that made more than an eighth of its set's attempts is listed, whatever flood passes by;
 * - the counts of a set add up to its attempts, and `over` is exact since the key came in: never too high.
 *
 * Counts are doubles, exact to 2^53. Bytes: 16 KB of typed arrays, 4 KB of references, and texts of at most
 * 64 characters, 512 times 150 bytes at worst. Cost: a hit compares a word or a few, adds, and allocates
 * nothing; a miss in a full set compares eight counts more.
 */
import { keyKinds, type Key } from '../core/key.js'

const setCount = 64
const wayCount = 8
const slotCount = setCount * wayCount
const textLengthMax = 64
const textCountMin = 8
export const noSlot = -1

export class SpaceSaving {
  /** The words of the hash; a low word of 0 marks a free way. */
  readonly #lows = new Int32Array(slotCount)
  readonly #highs = new Int32Array(slotCount)
  readonly #errors = new Float64Array(slotCount)
  readonly #overs = new Float64Array(slotCount)
  /** One slot more than there are keys, for all attempts: a field would be a new object at every count. */
  readonly #counts = new Float64Array(slotCount + 1)
  readonly #texts: (string | null)[] = Array.from({ length: slotCount }, () => null)

  /** The search begins at a way of the key's own: with 100 keys that takes 12 ns, from the first way 17. */
  count(key: Key, isOver: boolean): void {
    const { low, high } = key
    const lows = this.#lows
    const counts = this.#counts
    counts[slotCount] = (counts[slotCount] as number) + 1
    const first = firstSlotOf(high)
    for (let step = 0; step < wayCount; step++) {
      const slot = first + ((low + step) & (wayCount - 1))
      const ownLow = lows[slot] as number
      if (ownLow === low && this.#highs[slot] === high) {
        this.#hit(slot, key, isOver)
        return
      }
      // Ways fill up in this order and are never freed singly: behind a free one there is nothing.
      if (ownLow === 0) {
        lows[slot] = low
        this.#highs[slot] = high
        this.#hit(slot, key, isOver)
        return
      }
    }
    this.#replace(first, low, high, isOver)
  }

  #hit(slot: number, key: Key, isOver: boolean): void {
    this.#counts[slot] = (this.#counts[slot] as number) + 1
    if (isOver) this.#overs[slot] = (this.#overs[slot] as number) + 1
    if (this.#texts[slot] === null && this.#isWorthText(slot) && mayBeShown(key)) {
      this.#texts[slot] = flatCopy(key.text)
    }
  }

  /** A copy costs as much as some ten attempts: a key that replaced another must have come so often. */
  #isWorthText(slot: number): boolean {
    return this.#errors[slot] === 0 || this.atLeastOf(slot) >= textCountMin
  }

  /** A key that only passes by leaves no text. */
  #replace(first: number, low: number, high: number, isOver: boolean): void {
    const counts = this.#counts
    let least = first
    for (let slot = first + 1; slot < first + wayCount; slot++) {
      if ((counts[slot] as number) < (counts[least] as number)) least = slot
    }
    const error = counts[least] as number
    this.#lows[least] = low
    this.#highs[least] = high
    this.#errors[least] = error
    counts[least] = error + 1
    this.#overs[least] = isOver ? 1 : 0
    this.#texts[least] = null
  }

  /** Forgets everything, in a few fills; a high word says nothing where the low one is 0. */
  clear(): void {
    if (this.attempts === 0) return
    this.#lows.fill(0)
    this.#counts.fill(0)
    this.#errors.fill(0)
    this.#overs.fill(0)
    this.#texts.fill(null)
  }

  /** Of all keys, listed or not; exact. */
  get attempts(): number {
    return this.#counts[slotCount] as number
  }

  /** Where a key is listed, or `noSlot`. */
  find(low: number, high: number): number {
    const first = firstSlotOf(high)
    for (let slot = first; slot < first + wayCount; slot++) {
      if (this.#lows[slot] === low && this.#highs[slot] === high) return slot
    }
    return noSlot
  }

  /** The most attempts that a key of that high word can have made without being listed. */
  ceiling(high: number): number {
    const first = firstSlotOf(high)
    return Math.min(...this.#counts.subarray(first, first + wayCount))
  }

  /** The most attempts that any key can have made without being listed. */
  unlistedMax(): number {
    let most = 0
    for (let high = 0; high < setCount; high++) most = Math.max(most, this.ceiling(high))
    return most
  }

  /** The most attempts that are certainly of one key. */
  largest(): number {
    let largest = 0
    for (let slot = 0; slot < slotCount; slot++) {
      largest = Math.max(largest, this.atLeastOf(slot))
    }
    return largest
  }

  /** Calls back with the two words of each listed key. */
  forEachKey(callback: (low: number, high: number) => void): void {
    for (let slot = 0; slot < slotCount; slot++) {
      const low = this.#lows[slot] as number
      if (low !== 0) callback(low, this.#highs[slot] as number)
    }
  }

  /** count − error: what the key of that slot certainly made. */
  atLeastOf(slot: number): number {
    return (this.#counts[slot] as number) - (this.#errors[slot] as number)
  }

  /** count: what it can have made. */
  atMostOf(slot: number): number {
    return this.#counts[slot] as number
  }

  /** How many of its attempts were over, at least: those since it came in. */
  overOf(slot: number): number {
    return this.#overs[slot] as number
  }

  textOf(slot: number): string | null {
    return this.#texts[slot] ?? null
  }
}

function firstSlotOf(high: number): number {
  return (high & (setCount - 1)) * wayCount
}

/** Addresses alone: any other text may be a secret, a session's id or an API key. */
function mayBeShown({ kind, text }: Key): boolean {
  return kind === keyKinds.address && text.length <= textLengthMax
}

/** A slice would keep alive what it was cut from. Through UTF-16, because UTF-8 has no half surrogate pairs. */
function flatCopy(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}

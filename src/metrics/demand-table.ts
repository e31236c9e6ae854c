/*
 * How much each key asked for in one window, and how many keys asked for how much: a table of hashed keys
 * with their sums, and beside it the number of keys in each bucket, kept up to date with every attempt, so
 * that a window closes by reading some thirty numbers and no pass over keys.
 *
 * Bounded: up to 65,536 keys are all counted. Beyond, every second key is dropped, by one more bit of its
 * seeded hash, which nobody outside can choose: then each stands for two, four and so on.
 *
 *   entries  dense, in the order of arrival, six words each: [ sum · · | low | high | bucket | slot ]
 *   index    slot → entry, a linear probe from the low word; a slot is free unless its entry names it back,
 *            so that clearing is forgetting how many entries there are
 *
 * Bytes: 32 a key, at most 2.1 MB. Cost: one probe and two additions; nothing is allocated but to grow.
 */
import { bucketOf, demandBounds } from './demand-bounds.js'

export const demandKeysMax = 65_536
const demandKeysAtStart = 64
const entryWords = 6
const LOW = 2
const HIGH = 3
const BUCKET = 4
const SLOT = 5

export class DemandTable {
  /** Keys counted, by bucket; each stands for `weight` keys. */
  readonly bucketKeys = new Float64Array(demandBounds.length)
  /** The greatest sum of a counted key. */
  max = 0
  #keyCount = 0
  /** Keys are counted whose hash has so many zero bits on top. */
  #level = 0
  #capacity = 0
  #words = new Int32Array(0)
  /** Over the same memory: the sum of an entry is the double of its first two words. */
  #doubles = new Float64Array(0)
  #index = new Uint32Array(0)

  constructor() {
    this.#resize(demandKeysAtStart)
  }

  /** How many keys each counted one stands for. */
  get weight(): number {
    return 2 ** this.#level
  }

  /** Adds to what a key asked for. */
  add(low: number, high: number, cost: number): void {
    if (!this.#isCounted(high)) return
    let slot = this.#find(low, high)
    if (this.#entryAt(slot) === none) {
      if (this.#keyCount === this.#capacity) {
        this.#makeRoom()
        if (!this.#isCounted(high)) return
        slot = this.#find(low, high)
      }
      this.#insert(slot, low, high)
    }
    this.#raise(this.#index[slot] as number, cost)
  }

  /** Begins another window; fewer keys than a quarter of the room are all counted twice as finely. */
  clear(): void {
    if (this.#keyCount < demandKeysMax / 4 && this.#level > 0) this.#level--
    this.#keyCount = 0
    this.bucketKeys.fill(0)
    this.max = 0
  }

  #isCounted(high: number): boolean {
    // A shift by 32 is none.
    return this.#level === 0 || high >>> (32 - this.#level) === 0
  }

  /** The slot of a key, or the free one where it belongs. */
  #find(low: number, high: number): number {
    const words = this.#words
    const mask = this.#index.length - 1
    for (let slot = low & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#entryAt(slot)
      if (entry === none) return slot
      const at = entry * entryWords
      if (words[at + LOW] === low && words[at + HIGH] === high) return slot
    }
  }

  #entryAt(slot: number): number {
    const entry = this.#index[slot] as number
    if (entry >= this.#keyCount) return none
    return this.#words[entry * entryWords + SLOT] === slot ? entry : none
  }

  #insert(slot: number, low: number, high: number): void {
    const entry = this.#keyCount++
    const at = entry * entryWords
    this.#index[slot] = entry
    this.#words[at + LOW] = low
    this.#words[at + HIGH] = high
    this.#words[at + BUCKET] = 0
    this.#words[at + SLOT] = slot
    this.#doubles[at / 2] = 0
    this.bucketKeys[0] = (this.bucketKeys[0] as number) + 1
  }

  #raise(entry: number, cost: number): void {
    const at = entry * entryWords
    const sum = (this.#doubles[at / 2] as number) + cost
    this.#doubles[at / 2] = sum
    if (sum > this.max) this.max = sum
    const before = this.#words[at + BUCKET] as number
    if (sum <= (demandBounds[before] as number)) return
    const after = bucketOf(sum, before)
    this.#words[at + BUCKET] = after
    this.bucketKeys[before] = (this.bucketKeys[before] as number) - 1
    this.bucketKeys[after] = (this.bucketKeys[after] as number) + 1
  }

  #makeRoom(): void {
    if (this.#capacity < demandKeysMax) this.#resize(2 * this.#capacity)
    else this.#level++
    this.#refill()
  }

  #resize(capacity: number): void {
    const before = this.#words
    this.#capacity = capacity
    this.#words = new Int32Array(capacity * entryWords)
    this.#words.set(before)
    this.#doubles = new Float64Array(this.#words.buffer)
    this.#index = new Uint32Array(2 * capacity)
  }

  /** Puts all entries that are still counted in anew. The greatest sum stays, whoever's it is. */
  #refill(): void {
    const count = this.#keyCount
    this.#keyCount = 0
    this.bucketKeys.fill(0)
    for (let entry = 0; entry < count; entry++) {
      const at = entry * entryWords
      const low = this.#words[at + LOW] as number
      const high = this.#words[at + HIGH] as number
      const sum = this.#doubles[at / 2] as number
      if (!this.#isCounted(high)) continue
      // Entries only ever move forward, so none is written over before it is read.
      this.#insert(this.#find(low, high), low, high)
      this.#raise(this.#keyCount - 1, sum)
    }
  }
}

const none = -1

/*
 * A piece of a key table: slots in buckets of eight, each slot the two words of a key's hash and the row of
 * its state, in typed arrays. A key lives in one of two buckets that follow from its hash; where both are
 * full, a neighbour that fits into its own other bucket makes way. So slots fill to more than 90 % before the
 * piece has to grow, and a look-up reads two short runs of memory.
 *
 *   hashes  [ low | high ] eight times a bucket: 64 bytes, a line of the cache; low is 0 where free
 *   words  [ state of each slot ] `doubles` lies over the same memory; `halves` beside
 */
import type { Algorithm, KeyState } from '../../core/algorithm.js'
import type { EntryPool } from '../../core/entry-pool.js'

export const bucketSize = 8
export const noSlot = -1

const perWord = 2 ** -32
/** 2^32 over the golden ratio, made odd: Knuth's multiplicative hashing. */
const spreader = 0x9e3779b1

export class Segment implements KeyState {
  readonly words: Uint32Array
  readonly doubles: Float64Array
  readonly halves: Uint16Array
  readonly entries: EntryPool | null
  readonly #hashes: Uint32Array
  readonly slotCount: number
  /** How many leading bits of the high word all keys here share. */
  readonly depth: number
  readonly #wordCount: number
  readonly #bucketCount: number
  used = 0

  /** @param slotCount a multiple of eight, at least 16. */
  constructor(
    slotCount: number,
    { wordCount, hasHalf }: Algorithm,
    depth: number,
    entries: EntryPool | null,
  ) {
    this.slotCount = slotCount
    this.depth = depth
    this.entries = entries
    // One buffer for all: each is one more thing for the collector to trace, and there are thousands.
    const stateWords = slotCount * wordCount
    const halfCount = hasHalf ? slotCount : 0
    const hashBytes = 8 * slotCount
    const buffer = new ArrayBuffer(hashBytes + 4 * stateWords + 2 * halfCount)
    this.#hashes = new Uint32Array(buffer, 0, 2 * slotCount)
    this.words = new Uint32Array(buffer, hashBytes, stateWords)
    this.doubles = new Float64Array(buffer, hashBytes, stateWords / 2)
    this.halves = new Uint16Array(buffer, hashBytes + 4 * stateWords, halfCount)
    this.#wordCount = wordCount
    this.#bucketCount = slotCount / bucketSize
  }

  /** The slot of a key, or `noSlot`. */
  find(low: number, high: number): number {
    const hashes = this.#hashes
    let at = this.#firstBucket(low) * 2
    for (let end = at + bucketSize * 2; at < end; at += 2) {
      if (hashes[at] === low && hashes[at + 1] === high) return at >>> 1
    }
    at = this.#secondBucket(high) * 2
    for (let end = at + bucketSize * 2; at < end; at += 2) {
      if (hashes[at] === low && hashes[at + 1] === high) return at >>> 1
    }
    return noSlot
  }

  /** The first word of the hash in a slot; 0 where it is free. */
  lowOf(slot: number): number {
    return this.#hashes[2 * slot] as number
  }

  highOf(slot: number): number {
    return this.#hashes[2 * slot + 1] as number
  }

  /** Puts a key that is not here into a free slot, its state as it was left: zeros. `noSlot`: it is full. */
  insert(low: number, high: number): number {
    const first = this.#firstBucket(low)
    const second = this.#secondBucket(high)
    // The first wherever it can be: there it is found at once.
    let slot = this.#freeIn(first)
    if (slot === noSlot) slot = this.#freeIn(second)
    if (slot === noSlot) slot = this.#makeWay(first, second)
    if (slot === noSlot) return noSlot
    this.#write(slot, low, high)
    this.used++
    return slot
  }

  /** Some slot in use; only asked of a segment that holds a key. */
  firstUsed(): number {
    let slot = 0
    while (this.lowOf(slot) === 0) slot++
    return slot
  }

  /** Frees a slot and clears its state. */
  remove(slot: number): void {
    this.#write(slot, 0, 0)
    this.#clearState(slot)
    this.used--
  }

  /** Copies a slot of another segment here; false where there is no room for it. */
  adopt(from: Segment, slot: number): boolean {
    const own = this.insert(from.lowOf(slot), from.highOf(slot))
    if (own === noSlot) return false
    this.#copyState(from, slot, own)
    return true
  }

  /** The two slots at which the buckets of a key begin. */
  bucketsOf(low: number, high: number): [first: number, second: number] {
    return [this.#firstBucket(low), this.#secondBucket(high)]
  }

  /** Both buckets are full: a key that has room in its other bucket moves there. */
  #makeWay(first: number, second: number): number {
    for (const bucket of first === second ? [first] : [first, second]) {
      for (let slot = bucket; slot < bucket + bucketSize; slot++) {
        const low = this.lowOf(slot)
        const high = this.highOf(slot)
        const [one, two] = this.bucketsOf(low, high)
        const target = this.#freeIn(one === bucket ? two : one)
        if (target === noSlot) continue
        this.#write(target, low, high)
        this.#copyState(this, slot, target)
        this.#clearState(slot)
        return slot
      }
    }
    return noSlot
  }

  /** The slot at which a key's first bucket begins: its word as a share of all there are. */
  #firstBucket(low: number): number {
    return Math.floor(low * this.#bucketCount * perWord) * bucketSize
  }

  /** Of the other word, spread first: its leading bits choose the segment and are the same here. */
  #secondBucket(high: number): number {
    const spread = Math.imul(high, spreader) >>> 0
    return Math.floor(spread * this.#bucketCount * perWord) * bucketSize
  }

  #write(slot: number, low: number, high: number): void {
    this.#hashes[2 * slot] = low
    this.#hashes[2 * slot + 1] = high
  }

  #copyState(from: Segment, slot: number, target: number): void {
    const count = this.#wordCount
    for (let word = 0; word < count; word++) {
      this.words[target * count + word] = from.words[slot * count + word] as number
    }
    if (this.halves.length > 0) this.halves[target] = from.halves[slot] as number
  }

  #clearState(slot: number): void {
    const count = this.#wordCount
    for (let word = slot * count; word < (slot + 1) * count; word++) this.words[word] = 0
    if (this.halves.length > 0) this.halves[slot] = 0
  }

  #freeIn(bucket: number): number {
    for (let slot = bucket; slot < bucket + bucketSize; slot++) {
      if (this.lowOf(slot) === 0) return slot
    }
    return noSlot
  }
}

/*
 * How many different keys there were, in bounded memory: exactly up to 512, by a table of their hashes;
 * beyond that estimated by a HyperLogLog of 4,096 registers (Flajolet and others, 2007, with the estimator
 * of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017), with a standard error
 * of 1.6 %. Two of them together count the keys of either.
 *
 * Bytes: 12 KB. Cost: a probe and a maximum, some 20 ns; nothing is allocated.
 */
import type { KeyWords } from '../core/key-id.js'

export const exactKeysMax = 512
/** Twice as many, so that a probe is short. */
const slotCount = 2 * exactKeysMax
const registerBits = 12
const registerCount = 2 ** registerBits
/** A register keeps the rank of the first bit set in a word: 1 to 32, the low word being never 0. */
const rankMax = 32

export class DistinctKeys {
  /** A low word of 0 marks a free slot. */
  readonly #lows = new Int32Array(slotCount)
  readonly #highs = new Int32Array(slotCount)
  /** One more than the table holds, once it is too small: then only the registers count. */
  #exactCount = 0
  readonly #registers = new Uint8Array(registerCount)

  add({ low, high }: KeyWords): void {
    if (this.#exactCount <= exactKeysMax && !this.#insert(low, high)) return
    const register = high >>> (32 - registerBits)
    const rank = Math.clz32(low) + 1
    if (rank > (this.#registers[register] as number)) this.#registers[register] = rank
  }

  clear(): void {
    if (this.#exactCount === 0) return
    this.#lows.fill(0)
    this.#registers.fill(0)
    this.#exactCount = 0
  }

  /** How many keys were in this or in the other: exact while both are. */
  countWith(other: DistinctKeys): number {
    if (this.#exactCount > exactKeysMax || other.#exactCount > exactKeysMax) {
      return Math.round(estimate(this.#registers, other.#registers))
    }
    let count = this.#exactCount
    for (let slot = 0; slot < slotCount; slot++) {
      const low = other.#lows[slot] as number
      if (low === 0) continue
      if (this.#lows[this.#find(low, other.#highs[slot] as number)] === 0) count++
    }
    return count
  }

  /** Whether the key is new, or there is no more room to know. */
  #insert(low: number, high: number): boolean {
    const slot = this.#find(low, high)
    if (this.#lows[slot] !== 0) return false
    this.#exactCount++
    if (this.#exactCount > exactKeysMax) return true
    this.#lows[slot] = low
    this.#highs[slot] = high
    return true
  }

  /** The slot of a key, or the free one where it belongs. */
  #find(low: number, high: number): number {
    let slot = low & (slotCount - 1)
    while (this.#lows[slot] !== 0 && !(this.#lows[slot] === low && this.#highs[slot] === high)) {
      slot = (slot + 1) & (slotCount - 1)
    }
    return slot
  }
}

/** Ertl's improved estimator, on the larger of each two registers. */
function estimate(one: Uint8Array, other: Uint8Array): number {
  const counts = new Float64Array(rankMax + 1)
  for (let register = 0; register < registerCount; register++) {
    const rank = Math.max(one[register] as number, other[register] as number)
    counts[rank] = (counts[rank] as number) + 1
  }
  // No register goes beyond the last rank, so the term for saturated ones is 0.
  let sum = 0
  for (let rank = rankMax; rank >= 1; rank--) sum = 0.5 * (sum + (counts[rank] as number))
  sum += registerCount * sigma((counts[0] as number) / registerCount)
  return registerCount ** 2 / (2 * Math.LN2 * sum)
}

/** x + x² + 2·x⁴ + 4·x⁸ + …, of the share of registers that are empty. */
function sigma(share: number): number {
  if (share === 1) return Infinity
  let sum = share
  for (let power = share * share, weight = 1; ; power *= power, weight *= 2) {
    const before = sum
    sum += power * weight
    if (sum === before) return sum
  }
}

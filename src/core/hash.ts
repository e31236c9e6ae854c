/*
 * A seeded hash of 64 bits for keys, in two words. Its multipliers are drawn at random, for a process or for
 * a database file, so nobody outside can craft keys that collide: for any two different keys, both of up to
 * 64 characters, the two sums are equal with a chance of at most 2^-34 over the seed (multilinear hashing;
 * Lemire and Kaser, "Strongly universal string hashing is fast", 2012), for keys of ASCII text 2^-52. Mixing
 * at the end spreads the sums over all bits and loses nothing, because it can be undone.
 *
 * Cost: two multiplications and additions a character, no allocation.
 */
import { createHash, randomBytes } from 'node:crypto'

export const hashedLengthMax = 64

export class KeyHasher {
  /** The words of the last hash, as signed integers. `low` is never 0, by which tables know a free row. */
  low = 0
  high = 0
  readonly #first: Int32Array
  readonly #second: Int32Array

  /** @param seed 544 random bytes; drawn unless given, as a saved state does. */
  constructor(seed: Buffer = drawHashSeed()) {
    const end = seed.byteOffset + hashSeedBytes
    const words = new Int32Array(seed.buffer.slice(seed.byteOffset, end))
    this.#first = words.slice(0, words.length / 2)
    this.#second = words.slice(words.length / 2)
  }

  /**
   * Hashes a key, into `low` and `high`; the same text under another kind is another key.
   *
   * @param kind a small whole number.
   */
  hash(kind: number, text: string): void {
    const isLong = text.length > hashedLengthMax
    const hashed = isLong ? digestOf(text) : text
    const { length } = hashed
    const first = this.#first
    const second = this.#second
    // The length takes part, or a key and the same key with a zero character at its end would be one.
    // So does whether it is a digest, or a short key that is spelt like one and the long key would be one.
    const head = kind * 256 + (isLong ? digestMark : 0) + length + 1
    let low = Math.imul(first[0] as number, head) + (first[1] as number)
    let high = Math.imul(second[0] as number, head) + (second[1] as number)
    for (let index = 0; index < length; index++) {
      const code = hashed.charCodeAt(index) + 1
      low = (low + Math.imul(first[index + 2] as number, code)) | 0
      high = (high + Math.imul(second[index + 2] as number, code)) | 0
    }
    // Each word takes part in the other, then each is mixed in a way that can be undone.
    low = mix(low ^ ((high >>> 15) | (high << 17)))
    high = mix(high ^ low)
    this.low = low === 0 ? 1 : low
    this.high = high
  }
}

/** More than any length, less than the step between two kinds. */
const digestMark = 128
export const hashSeedBytes = (hashedLengthMax + 4) * 2 * 4

export function drawHashSeed(): Buffer {
  return randomBytes(hashSeedBytes)
}

/** Longer texts are replaced by a digest; as UTF-16, because UTF-8 has no half surrogate pairs. */
function digestOf(text: string): string {
  return createHash('sha256').update(text, 'utf16le').digest('base64url')
}

/** The finishing steps of MurmurHash3: a permutation of 32-bit words. */
function mix(word: number): number {
  let mixed = word ^ (word >>> 16)
  mixed = Math.imul(mixed, 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed, 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}

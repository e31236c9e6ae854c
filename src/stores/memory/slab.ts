/*
 * A piece of memory of a key table: rows in buckets of 128 bytes, two lines of the cache that are fetched
 * together. A row is the two words of a key's hash and then its state; what a bucket has left over is not
 * used. One buffer, seen as words and as doubles.
 *
 *   bucket   [ low high state state state state ] five times, where the state takes four words
 */
import type { Algorithm, KeyState } from '../../core/algorithm.js'
import type { EntryPool } from '../../core/entry-pool.js'

/** Words of 32 bits. */
export const bucketWords = 32
export const hashWords = 2

/** The C library puts 16 bytes of its own before a large piece, which then begins a page. */
const bytesToLine = 48

export class Slab implements KeyState {
  readonly words: Uint32Array
  /** The same words, signed, as hashes are. */
  readonly hashes: Int32Array
  readonly doubles: Float64Array
  readonly entries: EntryPool | null
  /** Where it begins in the table, in words. */
  readonly firstWord: number
  readonly bucketCount: number
  readonly byteCount: number

  constructor(firstBucket: number, bucketCount: number, entries: EntryPool | null) {
    const wordCount = bucketCount * bucketWords
    // Not for sharing: V8 takes the bytes of other buffers for a reason to collect, and did so every 64 MB
    // of growth, for 5 to 9 ms each (bench/stall.ts). Resident memory shows them, `external` does not.
    const buffer = new SharedArrayBuffer(bytesToLine + 4 * wordCount)
    this.firstWord = firstBucket * bucketWords
    this.bucketCount = bucketCount
    this.byteCount = buffer.byteLength
    this.words = new Uint32Array(buffer, bytesToLine, wordCount)
    this.hashes = new Int32Array(buffer, bytesToLine, wordCount)
    this.doubles = new Float64Array(buffer, bytesToLine, wordCount / 2)
    this.entries = entries
  }

  /** Where a word lies in the table. */
  placeOf(word: number): number {
    return this.firstWord + word
  }
}

/** Words of a row. */
export function rowWordsOf({ wordCount }: Algorithm): number {
  return hashWords + wordCount
}

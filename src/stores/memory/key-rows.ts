/*
 * Rows of state under hashes of 64 bits, by linear hashing (W. Litwin, 1980): the table grows by one bucket
 * at a time, whose keys come out of the bucket that comes next in turn. So growing to any size moves a
 * handful of keys at once, memory follows the number of keys, and it shrinks the same way. A JavaScript Map
 * would throw at 2^24 keys and stall for a second long before.
 *
 * A key lives in one of two buckets that follow from the two words of its hash; where both are full, a
 * neighbour that fits into its own other bucket makes way (cuckoo hashing). So nearly nine rows of ten are
 * used, and a look-up reads one or two buckets.
 *
 * Addresses:  a word's lowest bits, as many as `mask` has, less the topmost of them for buckets still to come
 */
import type { Algorithm } from '../../core/algorithm.js'
import type { EntryPool } from '../../core/entry-pool.js'
import type { ChunkChanges } from './chunk-changes.js'
import { bucketWords, hashWords, rowWordsOf, Slab } from './slab.js'

const bucketCountAtStart = 4
const slabBits = 12
/** Buckets of a slab: half a megabyte. */
const slabSize = 1 << slabBits
const slabMask = slabSize - 1
const slabWordBits = slabBits + Math.log2(bucketWords)
const slabWordMask = slabSize * bucketWords - 1
/** Share of the rows in use above which the table grows, and below which it shrinks when asked to. */
const fullRatio = 0.88
const emptyRatio = 0.4
/** How many neighbours deep room is sought: through some hundred rows, which are never all full. */
const wayDepth = 2
const none = -1

export class KeyRows {
  /** Where the last `find` or `insert` ended: the slab, and the index of the first word of state. */
  slab: Slab
  at = 0
  bucketCount = bucketCountAtStart
  /** Told of every row that is moved or removed; null where nobody wants to know. */
  changes: ChunkChanges | null = null
  /** Rows in use. */
  used = 0
  readonly rowsPerBucket: number
  readonly #rowWords: number
  /** From the first word of a bucket to behind its last row. */
  readonly #rowsEnd: number
  readonly #entries: EntryPool | null
  readonly #slabs: Slab[]
  /** One less than a power of two, at least as many as the buckets and less than twice as many. */
  #mask = 2 * bucketCountAtStart - 1
  #usedMax = 0

  constructor(algorithm: Algorithm, entries: EntryPool | null) {
    this.#entries = entries
    this.#rowWords = rowWordsOf(algorithm)
    this.rowsPerBucket = Math.floor(bucketWords / this.#rowWords)
    this.#rowsEnd = this.rowsPerBucket * this.#rowWords
    this.slab = new Slab(0, bucketCountAtStart, entries)
    this.#slabs = [this.slab]
    this.#resized()
  }

  /** Whether the key is here; then `slab` and `at` say where. */
  find(low: number, high: number): boolean {
    const first = this.bucketOf(low)
    if (this.#findIn(first, low, high)) return true
    if (!this.#findIn(this.bucketOf(high), low, high)) return false
    this.#bringHome(first)
    return true
  }

  /** Makes a row, its state all zeros, for a key that is not here; `slab` and `at` say where. */
  insert(low: number, high: number): void {
    if (this.used >= this.#usedMax) this.#grow()
    let row = this.#roomFor(low, high)
    // Both buckets and all they could give to are full, with a chance of next to nothing.
    for (; row === none; row = this.#roomFor(low, high)) this.#grow()
    const { slab } = this
    slab.hashes[row] = low
    slab.hashes[row + 1] = high
    this.at = row + hashWords
    this.used++
  }

  /** Grows to the size that so many keys need, at once: each by itself would have others make way. */
  reserve(keyCount: number): void {
    while (this.#usedMax < keyCount) this.#grow()
  }

  /** The bucket that a word of a hash leads to. */
  bucketOf(word: number): number {
    const bucket = word & this.#mask
    return bucket < this.bucketCount ? bucket : bucket & (this.#mask >>> 1)
  }

  /** Goes to a row, by its bucket and its number there; whether a key is in it. */
  visit(bucket: number, number: number): boolean {
    return this.visitAt(bucket * bucketWords + number * this.#rowWords)
  }

  /** Goes to a row, by where in the table it begins; whether a key is in it. */
  visitAt(place: number): boolean {
    const slab = this.#slabs[place >>> slabWordBits] as Slab
    const row = place & slabWordMask
    this.slab = slab
    this.at = row + hashWords
    return slab.hashes[row] !== 0
  }

  /** Whether the row that was gone to is that key's. */
  isAt(low: number, high: number): boolean {
    const { hashes } = this.slab
    return hashes[this.at - 2] === low && hashes[this.at - 1] === high
  }

  /** Frees the row that was gone to, and clears its state. */
  remove(): void {
    this.#clear(this.slab, this.at - hashWords)
    this.changes?.mark(this.slab.placeOf(this.at))
    this.used--
  }

  /** Words of all buckets. */
  get wordCount(): number {
    return this.bucketCount * bucketWords
  }

  /** Memory taken for rows, in bytes. */
  get byteCount(): number {
    return this.#slabs.reduce((sum, { byteCount }) => sum + byteCount, 0)
  }

  /** Whether so few rows are in use that memory should be given back. */
  get isSparse(): boolean {
    const rowCount = this.bucketCount * this.rowsPerBucket
    return this.bucketCount > bucketCountAtStart && this.used < emptyRatio * rowCount
  }

  /** Empties the last bucket into the one it came from; false where that has no room for all. */
  shrink(): boolean {
    const last = this.bucketCount - 1
    const mask = last < (this.#mask + 1) / 2 ? this.#mask >>> 1 : this.#mask
    const target = last & (mask >>> 1)
    for (let turn = 0; this.#freeRows(target) < this.#usedRows(last); turn++) {
      if (turn === this.rowsPerBucket || this.#makeWay(target) === none) return false
    }
    this.bucketCount = last
    this.#mask = mask
    const from = this.#slabs[last >>> slabBits] as Slab
    const start = (last & slabMask) * bucketWords
    for (let row = start; row < start + this.#rowsEnd; row += this.#rowWords) {
      if (from.hashes[row] === 0) continue
      this.#move(from, row, this.#freeIn(target))
    }
    this.#resized()
    return true
  }

  #findIn(bucket: number, low: number, high: number): boolean {
    const slab = this.#slabs[bucket >>> slabBits] as Slab
    const { hashes } = slab
    let row = (bucket & slabMask) * bucketWords
    for (const end = row + this.#rowsEnd; row < end; row += this.#rowWords) {
      if (hashes[row] !== low || hashes[row + 1] !== high) continue
      this.slab = slab
      this.at = row + hashWords
      return true
    }
    return false
  }

  /** Moves the row that was found to the key's first bucket, if there is room by now: found at once then. */
  #bringHome(first: number): void {
    const { slab, at } = this
    const target = this.#freeIn(first)
    if (target === none) return
    this.#move(slab, at - hashWords, target)
    this.at = target + hashWords
  }

  /** A free row for a key, in `slab`; `none` where no room could be made. */
  #roomFor(low: number, high: number): number {
    const first = this.bucketOf(low)
    const second = this.bucketOf(high)
    // The first wherever it can be: there it is found at once.
    let row = this.#freeIn(first)
    if (row === none) row = this.#freeIn(second)
    if (row === none) row = this.#makeWay(first)
    return row === none ? this.#makeWay(second) : row
  }

  /** A free row of a bucket, in `slab`, or `none`. */
  #freeIn(bucket: number): number {
    const slab = this.#slabs[bucket >>> slabBits] as Slab
    let row = (bucket & slabMask) * bucketWords
    for (const end = row + this.#rowsEnd; row < end; row += this.#rowWords) {
      if (slab.hashes[row] !== 0) continue
      this.slab = slab
      return row
    }
    return none
  }

  /** Frees a row of a bucket, see below: the nearest way there is. */
  #makeWay(bucket: number): number {
    let row = none
    for (let depth = 0; row === none && depth <= wayDepth; depth++) {
      row = this.#makeWayBy(bucket, depth)
    }
    return row
  }

  /** Moves a key of a bucket to its other bucket, where one made way in the same manner if depth is not 0. */
  #makeWayBy(bucket: number, depth: number): number {
    const slab = this.#slabs[bucket >>> slabBits] as Slab
    const start = (bucket & slabMask) * bucketWords
    for (let row = start; row < start + this.#rowsEnd; row += this.#rowWords) {
      const low = slab.hashes[row] as number
      if (low === 0) continue
      const first = this.bucketOf(low)
      const other = first === bucket ? this.bucketOf(slab.hashes[row + 1] as number) : first
      if (other === bucket) continue
      const target = depth === 0 ? this.#freeIn(other) : this.#makeWayBy(other, depth - 1)
      if (target === none) continue
      this.#move(slab, row, target)
      this.slab = slab
      return row
    }
    return none
  }

  /** Adds a bucket, and moves there what now belongs there. */
  #grow(): void {
    const added = this.bucketCount
    const from = added & (this.#mask >>> 1)
    this.#makeSpace(added)
    this.bucketCount++
    this.changes?.cover(this.wordCount)
    const slab = this.#slabs[from >>> slabBits] as Slab
    const start = (from & slabMask) * bucketWords
    for (let row = start; row < start + this.#rowsEnd; row += this.#rowWords) {
      const low = slab.hashes[row] as number
      if (low === 0) continue
      const stays =
        this.bucketOf(low) === from || this.bucketOf(slab.hashes[row + 1] as number) === from
      if (!stays) this.#move(slab, row, this.#freeIn(added))
    }
    if (this.bucketCount > this.#mask) this.#mask = 2 * this.#mask + 1
    this.#resized()
  }

  /** Sees to it that a bucket has memory. The first slab is enlarged until it has the size of all others. */
  #makeSpace(bucket: number): void {
    const last = this.#slabs.at(-1) as Slab
    if (bucket < (this.#slabs.length - 1) * slabSize + last.bucketCount) return
    if (last.bucketCount === slabSize) {
      this.#slabs.push(new Slab(this.#slabs.length * slabSize, slabSize, this.#entries))
      return
    }
    const larger = new Slab(0, 2 * last.bucketCount, this.#entries)
    larger.words.set(last.words)
    this.#slabs[0] = larger
  }

  #resized(): void {
    this.#usedMax = Math.floor(fullRatio * this.bucketCount * this.rowsPerBucket)
    const slabCount = Math.ceil(this.bucketCount / slabSize)
    // One to spare, so that a table at the edge does not make and drop it by turns.
    if (this.#slabs.length > slabCount + 1) this.#slabs.length = slabCount
  }

  /** Moves a row to a free one in `slab`. */
  #move(from: Slab, row: number, target: number): void {
    const to = this.slab.words
    for (let word = 0; word < this.#rowWords; word++) {
      to[target + word] = from.words[row + word] as number
    }
    this.#clear(from, row)
    this.changes?.moved(from.placeOf(row), this.slab.placeOf(target))
  }

  #clear({ words }: Slab, row: number): void {
    for (let word = row; word < row + this.#rowWords; word++) words[word] = 0
  }

  #usedRows(bucket: number): number {
    return this.rowsPerBucket - this.#freeRows(bucket)
  }

  #freeRows(bucket: number): number {
    const { hashes } = this.#slabs[bucket >>> slabBits] as Slab
    const start = (bucket & slabMask) * bucketWords
    let free = 0
    for (let row = start; row < start + this.#rowsEnd; row += this.#rowWords) {
      if (hashes[row] === 0) free++
    }
    return free
  }
}

/*
 * Entries for logs whose length differs from key to key: each a time, a cost and a link to the next, in
 * chunks of memory that are added and never moved, so that growing stalls nothing. Freed entries are
 * linked into a list and used again. Entry 0 is never given out: it stands for "none".
 *
 *   entry    [ time · · | cost | next ]      together, because a walk along a log waits for memory
 */

const chunkBits = 14
const chunkSize = 1 << chunkBits
const chunkMask = chunkSize - 1

/** One piece of memory, seen as doubles and as words. */
interface Chunk {
  readonly doubles: Float64Array
  readonly words: Uint32Array
}

const entryDoubles = 2
const entryWords = 4
const COST = 2
const NEXT = 3

export const noEntry = 0

export class EntryPool {
  #chunks: Chunk[] = []
  /** Entries in use. */
  #count = 0
  #firstFree = noEntry
  #everUsed = 1

  get count(): number {
    return this.#count
  }

  /** A fresh entry with no successor. The caller sees to the bound by `count`. */
  add(timeMs: number, cost: number): number {
    const entry = this.#take()
    const { doubles, words } = this.#chunkOf(entry)
    const index = entry & chunkMask
    doubles[index * entryDoubles] = timeMs
    words[index * entryWords + COST] = cost
    words[index * entryWords + NEXT] = noEntry
    this.#count++
    return entry
  }

  free(entry: number): void {
    this.setNext(entry, this.#firstFree)
    this.#firstFree = entry
    this.#count--
  }

  timeOf(entry: number): number {
    return this.#chunkOf(entry).doubles[(entry & chunkMask) * entryDoubles] as number
  }

  costOf(entry: number): number {
    return this.#chunkOf(entry).words[(entry & chunkMask) * entryWords + COST] as number
  }

  nextOf(entry: number): number {
    return this.#chunkOf(entry).words[(entry & chunkMask) * entryWords + NEXT] as number
  }

  setCost(entry: number, cost: number): void {
    this.#chunkOf(entry).words[(entry & chunkMask) * entryWords + COST] = cost
  }

  setNext(entry: number, next: number): void {
    this.#chunkOf(entry).words[(entry & chunkMask) * entryWords + NEXT] = next
  }

  #take(): number {
    const free = this.#firstFree
    if (free !== noEntry) {
      this.#firstFree = this.nextOf(free)
      return free
    }
    const entry = this.#everUsed++
    if (entry >>> chunkBits >= this.#chunks.length) this.#chunks.push(newChunk())
    return entry
  }

  #chunkOf(entry: number): Chunk {
    return this.#chunks[entry >>> chunkBits] as Chunk
  }
}

function newChunk(): Chunk {
  const doubles = new Float64Array(chunkSize * entryDoubles)
  return { doubles, words: new Uint32Array(doubles.buffer) }
}

/*
 * Entries for logs whose length differs from key to key: each a time, a cost and a link to the next, in
 * chunks of typed arrays that are added and never moved, so that growing stalls nothing. Freed entries are
 * linked into a list and used again. Entry 0 is never given out: it stands for "none".
 */

const chunkBits = 14
const chunkSize = 1 << chunkBits
const chunkMask = chunkSize - 1

interface Chunk {
  readonly times: Float64Array
  readonly costs: Uint32Array
  readonly nexts: Uint32Array
}

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
    const { times, costs, nexts } = this.#chunkOf(entry)
    const index = entry & chunkMask
    times[index] = timeMs
    costs[index] = cost
    nexts[index] = noEntry
    this.#count++
    return entry
  }

  free(entry: number): void {
    this.setNext(entry, this.#firstFree)
    this.#firstFree = entry
    this.#count--
  }

  timeOf(entry: number): number {
    return this.#chunkOf(entry).times[entry & chunkMask] as number
  }

  costOf(entry: number): number {
    return this.#chunkOf(entry).costs[entry & chunkMask] as number
  }

  nextOf(entry: number): number {
    return this.#chunkOf(entry).nexts[entry & chunkMask] as number
  }

  setCost(entry: number, cost: number): void {
    this.#chunkOf(entry).costs[entry & chunkMask] = cost
  }

  setNext(entry: number, next: number): void {
    this.#chunkOf(entry).nexts[entry & chunkMask] = next
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
  return {
    times: new Float64Array(chunkSize),
    costs: new Uint32Array(chunkSize),
    nexts: new Uint32Array(chunkSize),
  }
}

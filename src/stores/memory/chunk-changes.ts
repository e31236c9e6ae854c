/*
 * Which chunks of a table have changed since they were saved. A chunk is a range of the table's words, a
 * power of two of them: the least that is saved at a time. On the request path a change is one look-up and
 * one store.
 *
 * Chunks are saved in rounds, one after the other, while rows move from chunk to chunk. All that has changed
 * before a round is due in it. A row that leaves a chunk that is still due takes that along to where it goes,
 * so that at the end of a round each row that was there at its start has been saved in it, or has not changed.
 */

/** Changed since the last look, and before it. */
const fresh = 1
const older = 2
/** The same in each of four flags. */
const freshInFour = 0x01010101
const none = -1

/** Whether there are changes to be saved, and whether more are being made. */
export type ChangesSeen = 'none' | 'waiting' | 'coming'

export class ChunkChanges {
  /** Words of a chunk are two to the power of this. */
  readonly #bits: number
  #flags = new Uint8Array(16)
  /** 1 where a chunk is due in this round. */
  #due = new Uint8Array(16)
  /** Both once more, four at a time. */
  #flagFours = new Uint32Array(this.#flags.buffer)
  #dueFours = new Uint32Array(this.#due.buffer)
  /** The round goes on from here, and begins again at the start while anything is due. */
  #hand = 0

  /** For a table of so many words, none of them saved. */
  constructor(bits: number, wordCount: number) {
    this.#bits = bits
    this.cover(wordCount)
    this.markAll(wordCount)
  }

  /** A row was written or removed, at this place of the table. */
  mark(place: number): void {
    const chunk = place >>> this.#bits
    this.#flags[chunk] = (this.#flags[chunk] as number) | fresh
  }

  /** A row was moved. */
  moved(from: number, to: number): void {
    this.mark(from)
    this.mark(to)
    if (this.#due[from >>> this.#bits] === 1) this.#due[to >>> this.#bits] = 1
  }

  /** Something in the chunk that was due is not saved. */
  putBack(chunk: number): void {
    this.#flags[chunk] = older
    this.#due[chunk] = 1
  }

  markAll(wordCount: number): void {
    this.#flags.fill(older, 0, this.countOf(wordCount))
  }

  /** Makes room for the chunks of a table that has grown to so many words. */
  cover(wordCount: number): void {
    const count = this.countOf(wordCount)
    if (count <= this.#flags.length) return
    let length = this.#flags.length
    while (length < count) length *= 2
    this.#flags = longer(this.#flags, length)
    this.#due = longer(this.#due, length)
    this.#flagFours = new Uint32Array(this.#flags.buffer)
    this.#dueFours = new Uint32Array(this.#due.buffer)
  }

  /** How many chunks so many words are. */
  countOf(wordCount: number): number {
    return Math.ceil(wordCount / 2 ** this.#bits)
  }

  /** Looks what has changed in so many chunks; what has not since the last look is waiting. */
  look(chunkCount: number): ChangesSeen {
    const fours = this.#flagFours
    let [all, coming] = [0, 0]
    for (let index = 0; 4 * index < chunkCount; index++) {
      const flags = fours[index] as number
      if (flags === 0) continue
      const isFresh = flags & freshInFour
      all |= flags
      coming |= isFresh
      fours[index] = (flags & ~freshInFour) | (isFresh << 1)
    }
    if (all === 0) return 'none'
    return coming === 0 ? 'waiting' : 'coming'
  }

  /** Begins a round for a table of so many chunks. */
  restart(chunkCount: number): void {
    // The rows of chunks that a table has no longer have moved.
    this.#flags.fill(0, chunkCount)
    this.#due.fill(0, chunkCount)
    for (let index = 0; 4 * index < chunkCount; index++) {
      const flags = this.#flagFours[index] as number
      if (flags !== 0) {
        const isChanged = (flags | (flags >>> 1)) & freshInFour
        this.#dueFours[index] = (this.#dueFours[index] as number) | isChanged
      }
    }
    this.#hand = 0
  }

  /** The chunk to save next; -1 where the round is at its end. */
  next(chunkCount: number): number {
    let chunk = this.#due.indexOf(1, this.#hand)
    if (chunk === none || chunk >= chunkCount) chunk = this.#due.indexOf(1)
    if (chunk === none || chunk >= chunkCount) return none
    this.#hand = chunk
    return chunk
  }

  /** Whether everything of so many chunks is saved as it is now. */
  isQuiet(chunkCount: number): boolean {
    return this.#flags.subarray(0, chunkCount).every((flags) => flags === 0)
  }

  /** A chunk is being saved as it is now. */
  clear(chunk: number): void {
    this.#flags[chunk] = 0
    this.#due[chunk] = 0
  }
}

function longer(flags: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(length)
  copy.set(flags)
  return copy
}

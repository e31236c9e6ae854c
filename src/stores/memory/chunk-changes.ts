/*
 * Which chunks of a table have changed since they were saved. A chunk is a range of the table's words, a
 * power of two of them: the least that is saved at a time. On the request path a change is one look-up and
 * one store.
 *
 * Chunks are saved in rounds, one after the other, while rows move from chunk to chunk. All that has changed
 * before a round is due in it. A row that leaves a chunk that is still due takes that along to where it goes,
 * so that at the end of a round each row that was there at its start has been saved in it, or has not changed.
 */
const changed = 1
const due = 2
const none = -1
/** `changed` in each of four flags. */
const changedInFour = 0x01010101

export class ChunkChanges {
  /** Words of a chunk are two to the power of this. */
  readonly #bits: number
  #flags = new Uint8Array(16)
  /** The same, four at a time. */
  #fours = new Uint32Array(this.#flags.buffer)
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
    this.#flags[chunk] = (this.#flags[chunk] as number) | changed
  }

  /** A row was moved. */
  moved(from: number, to: number): void {
    this.mark(from)
    this.mark(to)
    const isDue = ((this.#flags[from >>> this.#bits] as number) & due) !== 0
    if (isDue) this.putBack(to >>> this.#bits)
  }

  /** Something in the chunk that was due is not saved. */
  putBack(chunk: number): void {
    this.#flags[chunk] = changed | due
  }

  markAll(wordCount: number): void {
    this.#flags.fill(changed, 0, this.countOf(wordCount))
  }

  /** Makes room for the chunks of a table that has grown to so many words. */
  cover(wordCount: number): void {
    if (this.countOf(wordCount) <= this.#flags.length) return
    const larger = new Uint8Array(2 * this.#flags.length)
    larger.set(this.#flags)
    this.#flags = larger
    this.#fours = new Uint32Array(larger.buffer)
    this.cover(wordCount)
  }

  /** How many chunks so many words are. */
  countOf(wordCount: number): number {
    return Math.ceil(wordCount / 2 ** this.#bits)
  }

  /** Begins a round for a table of so many chunks. */
  restart(chunkCount: number): void {
    // The rows of chunks that a table has no longer have moved.
    this.#flags.fill(0, chunkCount)
    const fours = this.#fours
    for (let index = 0; 4 * index < chunkCount; index++) {
      const flags = fours[index] as number
      if (flags !== 0) fours[index] = flags | ((flags & changedInFour) << 1)
    }
    this.#hand = 0
  }

  /** The chunk to save next; -1 where the round is at its end. */
  next(chunkCount: number): number {
    let chunk = this.#flags.indexOf(changed | due, this.#hand)
    if (chunk === none || chunk >= chunkCount) chunk = this.#flags.indexOf(changed | due)
    if (chunk === none || chunk >= chunkCount) return none
    this.#hand = chunk
    return chunk
  }

  /** Whether everything of so many chunks is saved as it is now. */
  isQuiet(chunkCount: number): boolean {
    const chunk = this.#flags.indexOf(changed)
    return (chunk === none || chunk >= chunkCount) && this.next(chunkCount) === none
  }

  /** A chunk is being saved as it is now. */
  clear(chunk: number): void {
    this.#flags[chunk] = 0
  }
}

/*
 * Words of 32 bits, one after the other, in memory that another thread can read. It is made once and written
 * anew each time: what was written before must have been read by then.
 */

const wordCountAtStart = 16_384

export class WordBuffer {
  words = blank(wordCountAtStart)
  /** Words written. */
  length = 0

  clear(): void {
    this.length = 0
  }

  /** Makes sure that so many more can be written, at `length` on. */
  reserve(count: number): void {
    if (this.length + count <= this.words.length) return
    const larger = blank(2 * (this.length + count))
    larger.set(this.words.subarray(0, this.length))
    this.words = larger
  }
}

/** Shared: it is not copied on its way, and V8 takes other buffers for a reason to collect. */
function blank(wordCount: number): Uint32Array {
  return new Uint32Array(new SharedArrayBuffer(4 * wordCount))
}

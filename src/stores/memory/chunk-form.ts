/*
 * How a chunk of a table is written, as words in the order of the machine:
 *
 *   [ form ] then for each row   [ low high | state ]                       as it lies in the table
 *   or, of a rule with logs      [ low high | entries 0 state … ] [ time · cost ] …     oldest first
 *
 * `form` tells the version and how many words a state has; what another one wrote is not read.
 */
import type { Algorithm } from '../../core/algorithm.js'

const version = 1
/** A double and a word. */
export const entryWords = 3

export function formOf({ wordCount }: Algorithm): number {
  return version + (wordCount << 8)
}

/** A double as two words, either way. */
export class DoubleWords {
  readonly #double = new Float64Array(1)
  readonly #words = new Uint32Array(this.#double.buffer)

  write(double: number, words: Uint32Array, at: number): void {
    this.#double[0] = double
    words[at] = this.#words[0] as number
    words[at + 1] = this.#words[1] as number
  }

  read(words: Uint32Array, at: number): number {
    this.#words[0] = words[at] as number
    this.#words[1] = words[at + 1] as number
    return this.#double[0] as number
  }
}

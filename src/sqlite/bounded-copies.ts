/*
 * Copies of rows in memory, bounded in number and in size: what was used least recently goes first.
 */

export interface CopiesMax {
  readonly count: number
  /** Of all copies together. */
  readonly characters: number
}

export class BoundedCopies<T> {
  readonly #max: CopiesMax
  readonly #sizeOf: (copy: T) => number
  /** In the order of their last use. */
  readonly #copies = new Map<string, T>()
  #characters = 0

  constructor(max: CopiesMax, sizeOf: (copy: T) => number) {
    this.#max = max
    this.#sizeOf = sizeOf
  }

  get(id: string): T | undefined {
    const copy = this.#copies.get(id)
    if (copy !== undefined) {
      this.#copies.delete(id)
      this.#copies.set(id, copy)
    }
    return copy
  }

  set(id: string, copy: T): void {
    this.delete(id)
    this.#copies.set(id, copy)
    this.#characters += id.length + this.#sizeOf(copy)
    for (const [oldest] of this.#copies) {
      const { count, characters } = this.#max
      if (this.#copies.size <= count && this.#characters <= characters) break
      this.delete(oldest)
    }
  }

  clear(): void {
    this.#copies.clear()
    this.#characters = 0
  }

  [Symbol.iterator](): IterableIterator<[string, T]> {
    return this.#copies.entries()
  }

  delete(id: string): void {
    const copy = this.#copies.get(id)
    if (copy === undefined) return
    this.#copies.delete(id)
    this.#characters -= id.length + this.#sizeOf(copy)
  }
}

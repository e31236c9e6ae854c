/*
 * How long requests wait for the database: a moment, and only while it answers in time. One late answer is
 * enough to know: until it has come, nobody waits for another.
 */
import { within } from './within.js'

export class Patience {
  readonly #timeMs: number
  /** Answers that were given up and have not come back. */
  #lateCount = 0

  constructor(timeMs: number) {
    this.#timeMs = timeMs
  }

  /** Whether an answer is overdue: what would be asked now would be waited for in vain. */
  get isOver(): boolean {
    return this.#lateCount > 0
  }

  /** The answer, or 'late' where it takes longer; it goes on all the same. It must not reject. */
  async inTime<T>(answer: Promise<T>): Promise<T | 'late'> {
    if (this.isOver) return 'late'
    const found = await within(answer, this.#timeMs)
    if (found === 'late') {
      this.#lateCount++
      void answer.then(() => this.#lateCount--)
    }
    return found
  }
}

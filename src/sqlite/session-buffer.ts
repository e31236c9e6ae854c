/*
 * Session rows that no request waits for: while the database does not take a write, because another process
 * holds the file, the disk is full or the file is gone, sessions wait in a bounded copy in memory and are
 * read from there. Writing is tried again once a second, not with every request. No failure reaches a
 * request; what is lost, when the copy is full, is the session that has waited longest.
 */
import type { SessionRows } from './sessions.js'

interface Waiting {
  readonly data: string
  readonly expiresMs: number
}

const waitingCountMax = 10_000

export interface SessionBufferOptions {
  readonly rows: SessionRows
  readonly wallMs: () => number
  /** Told when writing begins to fail, and with null when it is well again. */
  readonly onFailure: (error: unknown) => void
}

export class SessionBuffer implements SessionRows {
  readonly #options: SessionBufferOptions
  /** null: the session is to be deleted. */
  readonly #waiting = new Map<string, Waiting | null>()
  #isFailing = false
  #lastCount = 0

  constructor(options: SessionBufferOptions) {
    this.#options = options
  }

  async get(id: string): Promise<string | null> {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) {
      return waiting === null || waiting.expiresMs <= this.#options.wallMs() ? null : waiting.data
    }
    try {
      return await this.#options.rows.get(id)
    } catch (error) {
      // Without its session a request is one of nobody's, which the limits know how to count.
      this.#fail(error)
      return null
    }
  }

  set(id: string, data: string, expiresMs: number): Promise<void> {
    return this.#write(id, { data, expiresMs })
  }

  async extend(id: string, data: string, expiresMs: number): Promise<void> {
    if ((await this.get(id)) !== null) await this.#write(id, { data, expiresMs })
  }

  delete(id: string): Promise<void> {
    return this.#write(id, null)
  }

  /** The last count that was had, where none can be had now. */
  async count(): Promise<number> {
    try {
      this.#lastCount = await this.#options.rows.count()
    } catch (error) {
      this.#fail(error)
    }
    return this.#lastCount
  }

  sweep(): Promise<number> {
    return this.#options.rows.sweep()
  }

  /** Writes what waits, until the first failure; to be called about once a second. */
  async flush(): Promise<void> {
    try {
      for (const [id, waiting] of this.#waiting) {
        await this.#put(id, waiting)
        // Unless it has changed meanwhile.
        if (this.#waiting.get(id) === waiting) this.#waiting.delete(id)
      }
      if (this.#isFailing) this.#options.onFailure(null)
      this.#isFailing = false
    } catch (error) {
      this.#fail(error)
    }
  }

  async #write(id: string, value: Waiting | null): Promise<void> {
    // What waits for the same session must not overtake it.
    if (!this.#isFailing && !this.#waiting.has(id)) {
      try {
        await this.#put(id, value)
        return
      } catch (error) {
        this.#fail(error)
      }
    }
    this.#waiting.delete(id)
    this.#waiting.set(id, value)
    if (this.#waiting.size > waitingCountMax) {
      for (const [oldest] of this.#waiting) {
        this.#waiting.delete(oldest)
        break
      }
    }
  }

  #put(id: string, value: Waiting | null): Promise<void> {
    const { rows } = this.#options
    return value === null ? rows.delete(id) : rows.set(id, value.data, value.expiresMs)
  }

  #fail(error: unknown): void {
    if (!this.#isFailing) this.#options.onFailure(error)
    this.#isFailing = true
  }
}

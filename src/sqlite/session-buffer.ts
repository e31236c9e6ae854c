/*
 * Session rows that no request waits for: while the database does not take a write, because another process
 * holds the file, the disk is full or the file is gone, sessions wait in a bounded copy in memory and are
 * read from there. Writing is tried again once a second, not with every request. No failure reaches a
 * request; what is lost, when the copy is full, is the session that has waited longest.
 *
 * Extensions wait for the next flush even while all is well: one write a second for a session in use.
 * Changes of one session reach the rows one after the other, in order.
 */
import type { SessionRows } from './sessions.js'

interface Waiting {
  readonly data: string
  readonly expiresMs: number
  /** When a session that exists was changed: it counts if it lived then. null: the session is new. */
  readonly changedMs: number | null
}

const waitingCountMax = 10_000

export interface SessionBufferOptions {
  readonly rows: SessionRows
  readonly wallMs: () => number
  /** Told when writing begins to fail, and with null when it is well again. */
  readonly onFailure: (error: unknown) => void
}

export class SessionBuffer {
  readonly #options: SessionBufferOptions
  /** null: the session is to be deleted. */
  readonly #waiting = new Map<string, Waiting | null>()
  /** Sessions that are being written; each promise says whether that was done. */
  readonly #writing = new Map<string, Promise<boolean>>()
  #isFailing = false
  #lastCount = 0

  constructor(options: SessionBufferOptions) {
    this.#options = options
  }

  /** The data of a session that has not expired, else null. */
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

  /** Writes a new session, or one whatever became of it. */
  set(id: string, data: string, expiresMs: number): Promise<void> {
    return this.#write(id, { data, expiresMs, changedMs: null })
  }

  /** Changes a session that exists; one that is gone is not brought back. */
  async update(id: string, data: string, expiresMs: number): Promise<void> {
    const change = this.#changeOf(id, data, expiresMs)
    if (change !== null) await this.#write(id, change)
  }

  /** As `update`, with the next flush; where there is no room to wait for it, the session is not extended. */
  extend(id: string, data: string, expiresMs: number): void {
    const change = this.#changeOf(id, data, expiresMs)
    if (change === null) return
    if (this.#waiting.size >= waitingCountMax && !this.#waiting.has(id)) return
    this.#waiting.set(id, change)
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

  /** Deletes what has expired, once what extends it is written. */
  async sweep(): Promise<number> {
    await this.flush()
    return this.#options.rows.sweep()
  }

  /** Writes what waits, until the first failure; to be called about once a second. */
  async flush(): Promise<void> {
    if (this.#waiting.size === 0 && !(this.#isFailing && (await this.#canRead()))) return
    for (const id of this.#waiting.keys()) {
      if (!(await this.#drain(id))) return
    }
    if (this.#isFailing) this.#options.onFailure(null)
    this.#isFailing = false
  }

  /** Where a read has failed and nothing waits to be written, only a read can show that all is well. */
  async #canRead(): Promise<boolean> {
    return this.#options.rows.get('').then(
      () => true,
      () => false,
    )
  }

  /** Joined to what waits for the same session; null where that has ended. */
  #changeOf(id: string, data: string, expiresMs: number): Waiting | null {
    const waiting = this.#waiting.get(id)
    const nowMs = this.#options.wallMs()
    if (waiting === undefined) return { data, expiresMs, changedMs: nowMs }
    if (waiting === null || waiting.expiresMs <= nowMs) return null
    return { data, expiresMs, changedMs: waiting.changedMs }
  }

  async #write(id: string, value: Waiting | null): Promise<void> {
    // Also for a moment while all is well: what is being written is read from here.
    this.#waiting.delete(id)
    this.#waiting.set(id, value)
    if (!this.#isFailing) await this.#drain(id)
    if (this.#waiting.size > waitingCountMax) {
      for (const [oldest] of this.#waiting) {
        this.#waiting.delete(oldest)
        break
      }
    }
  }

  /** Writes what waits for a session, and what comes to wait meanwhile; false where that fails. */
  #drain(id: string): Promise<boolean> {
    const running = this.#writing.get(id)
    if (running !== undefined) return running
    const started = this.#putAll(id)
    this.#writing.set(id, started)
    return started
  }

  async #putAll(id: string): Promise<boolean> {
    try {
      // Never ends before its promise is remembered.
      await Promise.resolve()
      for (;;) {
        const waiting = this.#waiting.get(id)
        if (waiting === undefined) return true
        await this.#put(id, waiting)
        // Unless it has changed meanwhile.
        if (this.#waiting.get(id) === waiting) this.#waiting.delete(id)
      }
    } catch (error) {
      this.#fail(error)
      return false
    } finally {
      this.#writing.delete(id)
    }
  }

  #put(id: string, value: Waiting | null): Promise<void> {
    const { rows } = this.#options
    if (value === null) return rows.delete(id)
    const { data, expiresMs, changedMs } = value
    if (changedMs === null) return rows.set(id, data, expiresMs)
    return rows.update(id, data, expiresMs, changedMs)
  }

  #fail(error: unknown): void {
    if (!this.#isFailing) this.#options.onFailure(error)
    this.#isFailing = true
  }
}

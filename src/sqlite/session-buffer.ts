/*
 * Sessions as requests have them: from a bounded copy in memory, written to the database's thread at once
 * but never waited for. While the database does not take a write, because another process holds the file,
 * the disk is full or the file is gone, sessions wait here and are read from here. Writing is tried again
 * once a second, not with every request. No failure reaches a request; what is lost, when there is no room,
 * is the session that has waited longest.
 *
 * Where another process writes to the same file, the copy may be behind: then the rows are asked, for 250 ms
 * at the most, and only where they do not answer the copy is taken. Once nobody else writes any more, copies
 * are made anew. Where another file has taken the place of the rows, what is copied here is written to it.
 *
 * Extensions wait for the next flush even while all is well: one write a second for a session in use.
 * Changes of one session reach the rows one after the other, in order. One that has ended stays ended.
 */
import type { Asked } from './asked.js'
import { BoundedCopies } from './bounded-copies.js'
import { Patience } from './patience.js'
import { sweptCountMax, type SessionRow, type SessionRows } from './sessions.js'
import { within } from './within.js'

interface Waiting extends SessionRow {
  /** When a session that exists was changed: it counts if it lived then. null: the session is new. */
  readonly changedMs: number | null
}

const waitingCountMax = 10_000
const copiesMax = { count: 10_000, characters: 16 * 1_048_576 }
const patienceMs = 250
/** Scrapes wait longer than requests: nobody else waits for them. */
const countPatienceMs = 500

export interface SessionBufferOptions {
  readonly rows: Asked<SessionRows>
  readonly wallMs: () => number
  /** Whether other processes write to the same rows. */
  readonly isShared: () => boolean
  /** How often another file has taken the place of the one with the rows. */
  readonly replacedCount: () => number
  /** Told when the database begins to fail, and with null when it is well again. */
  readonly onFailure: (error: unknown) => void
}

export class SessionBuffer {
  readonly #options: SessionBufferOptions
  /** null: the session has ended. */
  readonly #copies = new BoundedCopies<SessionRow | null>(copiesMax, (row) => row?.data.length ?? 0)
  /** null: the session is to be deleted. */
  readonly #waiting = new Map<string, Waiting | null>()
  /** Sessions that are being written; each promise says whether that was done. */
  readonly #writing = new Map<string, Promise<boolean>>()
  readonly #patience = new Patience(patienceMs)
  #isFailing = false
  #wasShared = false
  #replacedCount: number
  #lastCount = 0

  constructor(options: SessionBufferOptions) {
    this.#options = options
    this.#replacedCount = options.replacedCount()
  }

  /** The data of a session that has not expired, else null. */
  async get(id: string): Promise<string | null> {
    const isShared = this.#isShared()
    const waiting = this.#waiting.get(id)
    const copy = waiting === undefined ? this.#copies.get(id) : waiting
    if (waiting !== undefined || copy === null) return this.#dataOf(copy)
    if (copy !== undefined && !isShared) return this.#dataOf(copy)
    const found = await this.#read(id)
    return this.#dataOf(found === undefined ? copy : found)
  }

  /** Writes a new session, or one whatever became of it. */
  set(id: string, data: string, expiresMs: number): Promise<void> {
    this.#copies.set(id, { data, expiresMs })
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
    this.#copies.set(id, null)
    return this.#write(id, null)
  }

  /** Sessions that have not expired; the last count that was had, where none can be had now. */
  async count(): Promise<number> {
    const { rows, wallMs } = this.#options
    const counting = rows.count(wallMs()).then(
      (count) => void (this.#lastCount = count),
      (error: unknown) => this.#fail(error),
    )
    await within(counting, countPatienceMs)
    return this.#lastCount
  }

  /** Deletes what has expired, once what extends it is written; answers how many rows that were. */
  async sweep(): Promise<number> {
    await this.flush()
    const { rows, wallMs } = this.#options
    const endedMs = wallMs()
    for (let sum = 0; ;) {
      const count = await rows.sweep(endedMs)
      sum += count
      if (count < sweptCountMax) return sum
    }
  }

  /** Writes what waits, until the first failure; to be called about once a second. */
  async flush(): Promise<void> {
    this.#isShared()
    this.#restore()
    if (this.#waiting.size === 0 && !(this.#isFailing && (await this.#canRead()))) return
    for (const id of this.#waiting.keys()) {
      // A write that had begun before is not the try that was asked for: it may have had less time.
      const hadBegun = this.#writing.has(id)
      const isWritten = (await this.#drain(id)) || (hadBegun && (await this.#drain(id)))
      if (!isWritten) return
    }
    if (this.#isFailing) this.#options.onFailure(null)
    this.#isFailing = false
  }

  #dataOf(row: SessionRow | null | undefined): string | null {
    if (row === null || row === undefined) return null
    return row.expiresMs <= this.#options.wallMs() ? null : row.data
  }

  /** Notices when others have stopped writing: what was copied before they did is behind. */
  #isShared(): boolean {
    const isShared = this.#options.isShared()
    if (this.#wasShared && !isShared) this.#copies.clear()
    this.#wasShared = isShared
    return isShared
  }

  /** Sessions in use are not lost with their file. */
  #restore(): void {
    const replacedCount = this.#options.replacedCount()
    if (replacedCount === this.#replacedCount) return
    this.#replacedCount = replacedCount
    for (const [id, row] of this.#copies) {
      if (this.#waiting.size >= waitingCountMax) return
      if (row === null || this.#dataOf(row) === null || this.#waiting.has(id)) continue
      this.#waiting.set(id, { ...row, changedMs: null })
    }
  }

  /** The row, null where there is none; undefined where the rows do not say so in time. */
  async #read(id: string): Promise<SessionRow | null | undefined> {
    if (this.#patience.isOver) return undefined
    const { rows, wallMs } = this.#options
    const reading = rows.get(id, wallMs()).catch((error: unknown) => {
      // Without its session a request is one of nobody's, which the limits know how to count.
      this.#fail(error)
      return undefined
    })
    const found = await this.#patience.inTime(reading)
    if (found === 'late' || found === undefined) return undefined
    this.#restore()
    const changed = this.#waiting.get(id)
    // What has become of it meanwhile is the latest word.
    if (changed !== undefined || this.#copies.get(id) === null) return changed ?? null
    if (found === null) this.#copies.delete(id)
    else this.#copies.set(id, found)
    return found
  }

  /** Where a read has failed and nothing waits to be written, only a read can show that all is well. */
  async #canRead(): Promise<boolean> {
    return this.#options.rows.get('', this.#options.wallMs()).then(
      () => true,
      () => false,
    )
  }

  /** Joined to what waits for the same session; null where that has ended. */
  #changeOf(id: string, data: string, expiresMs: number): Waiting | null {
    const waiting = this.#waiting.get(id)
    const copy = this.#copies.get(id)
    const nowMs = this.#options.wallMs()
    if (waiting === null || copy === null) return null
    if ((waiting ?? copy ?? { expiresMs: Infinity }).expiresMs <= nowMs) return null
    if (copy !== undefined) this.#copies.set(id, { data, expiresMs })
    return { data, expiresMs, changedMs: waiting === undefined ? nowMs : waiting.changedMs }
  }

  async #write(id: string, value: Waiting | null): Promise<void> {
    // What is being written is read from here.
    this.#waiting.delete(id)
    this.#waiting.set(id, value)
    if (this.#waiting.size > waitingCountMax) {
      for (const [oldest] of this.#waiting) {
        this.#waiting.delete(oldest)
        break
      }
    }
    if (this.#isFailing) return
    const writing = this.#drain(id)
    // The client's next request may come to another process, which knows only the rows.
    if (this.#isShared()) await this.#patience.inTime(writing)
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

/*
 * Session rows in memory that fail, hang or take their time when they are told to: no database does so on
 * command. And a buffer over them, whose time is set by hand.
 */
import type { Asked } from '../../../src/sqlite/asked.js'
import { SessionBuffer } from '../../../src/sqlite/session-buffer.js'
import type { SessionRow, SessionRows } from '../../../src/sqlite/sessions.js'

export class FaultyRows implements Asked<SessionRows> {
  readonly kept = new Map<string, SessionRow>()
  /** Writes fail. */
  isFailing = false
  cannotRead = false
  /** What a read waits for. */
  beforeReads: Promise<void> = Promise.resolve()
  /** What a write waits for. */
  beforeWrites: Promise<void> = Promise.resolve()
  readCount = 0
  writeCount = 0
  readonly changedMs: number[] = []

  dataOf(id: string): string | undefined {
    return this.kept.get(id)?.data
  }

  async get(id: string, nowMs: number): Promise<SessionRow | null> {
    this.readCount++
    await this.beforeReads
    if (this.cannotRead) throw new Error('disk I/O error')
    const row = this.kept.get(id)
    return row !== undefined && row.expiresMs > nowMs ? row : null
  }

  async set(id: string, data: string, expiresMs: number): Promise<void> {
    await this.#mayWrite()
    this.kept.set(id, { data, expiresMs })
  }

  async update(id: string, data: string, expiresMs: number, changedMs: number): Promise<void> {
    await this.#mayWrite()
    this.changedMs.push(changedMs)
    const row = this.kept.get(id)
    if (row !== undefined && row.expiresMs > changedMs) this.kept.set(id, { data, expiresMs })
  }

  async delete(id: string): Promise<void> {
    await this.#mayWrite()
    this.kept.delete(id)
  }

  async count(): Promise<number> {
    await this.beforeReads
    if (this.cannotRead) throw new Error('disk I/O error')
    return this.kept.size
  }

  async sweep(): Promise<number> {
    return 0
  }

  async #mayWrite(): Promise<void> {
    await this.beforeWrites
    if (this.isFailing) throw new Error('database is locked')
    this.writeCount++
  }
}

export interface BufferBench {
  readonly buffer: SessionBuffer
  readonly rows: FaultyRows
  readonly state: { nowMs: number; isShared: boolean; replacedCount: number }
  /** What was told of failures. */
  readonly told: ('failing' | 'well')[]
}

/** Another buffer over the same rows is another process. */
export function bufferBench(rows = new FaultyRows()): BufferBench {
  const state = { nowMs: 1_000, isShared: false, replacedCount: 0 }
  const told: ('failing' | 'well')[] = []
  const buffer = new SessionBuffer({
    rows,
    wallMs: () => state.nowMs,
    isShared: () => state.isShared,
    replacedCount: () => state.replacedCount,
    onFailure: (error) => told.push(error === null ? 'well' : 'failing'),
  })
  return { buffer, rows, state, told }
}

/** Something to wait for, until it is let go. */
export function held(): { until: Promise<void>; letGo: () => void } {
  let letGo = () => {}
  const until = new Promise<void>((resolve) => (letGo = resolve))
  return { until, letGo: () => letGo() }
}

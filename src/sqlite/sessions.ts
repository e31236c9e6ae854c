/*
 * Session rows in SQLite, behind an interface that answers with promises, so that the calls can move off
 * the main thread. A session's id is kept as a digest only: who reads the file can take over nobody's
 * session. A row lives until the time it was given, and no longer because it is read.
 */
import { createHash } from 'node:crypto'
import { setImmediate as everybodyElsesTurn } from 'node:timers/promises'
import type { OpenDatabase } from './database.js'

export interface SessionRows {
  /** The data of a session that has not expired, else null. */
  get(id: string): Promise<string | null>
  /** @param expiresMs milliseconds since the epoch. */
  set(id: string, data: string, expiresMs: number): Promise<void>
  /**
   * Changes a session that had not expired at `changedMs`; one that is gone is not brought back.
   *
   * @param expiresMs and changedMs: milliseconds since the epoch.
   */
  update(id: string, data: string, expiresMs: number, changedMs: number): Promise<void>
  delete(id: string): Promise<void>
  /** Sessions that have not expired. */
  count(): Promise<number>
  /** Deletes what has expired; answers how many rows that were. */
  sweep(): Promise<number>
}

/** A row costs some microseconds, and a flood may leave millions: requests get their turn in between. */
const sweptCountMax = 500

export class SqliteSessionRows implements SessionRows {
  readonly #wallMs: () => number
  readonly #statements

  constructor({ connection }: OpenDatabase, wallMs: () => number) {
    this.#wallMs = wallMs
    this.#statements = {
      get: connection.prepare('SELECT data FROM sessions WHERE id_hash = ? AND expires_ms > ?'),
      set: connection.prepare(
        `INSERT INTO sessions VALUES (?, ?, ?)
         ON CONFLICT (id_hash) DO UPDATE SET data = excluded.data, expires_ms = excluded.expires_ms`,
      ),
      update: connection.prepare(
        'UPDATE sessions SET data = ?, expires_ms = ? WHERE id_hash = ? AND expires_ms > ?',
      ),
      delete: connection.prepare('DELETE FROM sessions WHERE id_hash = ?'),
      count: connection.prepare('SELECT count(*) AS count FROM sessions WHERE expires_ms > ?'),
      sweep: connection.prepare(
        `DELETE FROM sessions WHERE id_hash IN
           (SELECT id_hash FROM sessions WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ${sweptCountMax})`,
      ),
    }
  }

  async get(id: string): Promise<string | null> {
    const row = this.#statements.get.get(digest(id), this.#wallMs()) as { data: string } | undefined
    return row?.data ?? null
  }

  async set(id: string, data: string, expiresMs: number): Promise<void> {
    this.#statements.set.run(digest(id), data, Math.floor(expiresMs))
  }

  async update(id: string, data: string, expiresMs: number, changedMs: number): Promise<void> {
    this.#statements.update.run(data, Math.floor(expiresMs), digest(id), changedMs)
  }

  async delete(id: string): Promise<void> {
    this.#statements.delete.run(digest(id))
  }

  async count(): Promise<number> {
    return (this.#statements.count.get(this.#wallMs()) as { count: number }).count
  }

  async sweep(): Promise<number> {
    const endedMs = this.#wallMs()
    for (let sum = 0; ;) {
      const { changes } = this.#statements.sweep.run(endedMs)
      sum += changes
      if (changes < sweptCountMax) return sum
      await everybodyElsesTurn()
    }
  }
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}

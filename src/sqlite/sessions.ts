/*
 * Session rows in SQLite. A session's id is kept as a digest only: who reads the file can take over nobody's
 * session. A row lives until the time it was given, and no longer because it is read. Times are in
 * milliseconds since the epoch, by the clock of whoever asks.
 */
import { createHash } from 'node:crypto'
import type { OpenDatabase } from './database.js'

/** A row costs some microseconds, and a flood may leave millions: whoever else asks gets a turn in between. */
export const sweptCountMax = 500

export class SessionRows {
  readonly #statements

  constructor({ connection }: OpenDatabase) {
    this.#statements = {
      get: connection.prepare(
        'SELECT data, expires_ms AS expiresMs FROM sessions WHERE id_hash = ? AND expires_ms > ?',
      ),
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

  /** A session that has not expired, else null. */
  get(id: string, nowMs: number): SessionRow | null {
    return (this.#statements.get.get(digest(id), nowMs) as SessionRow | undefined) ?? null
  }

  set(id: string, data: string, expiresMs: number): void {
    this.#statements.set.run(digest(id), data, Math.floor(expiresMs))
  }

  /** Changes a session that had not expired at `changedMs`; one that is gone is not brought back. */
  update(id: string, data: string, expiresMs: number, changedMs: number): void {
    this.#statements.update.run(data, Math.floor(expiresMs), digest(id), changedMs)
  }

  delete(id: string): void {
    this.#statements.delete.run(digest(id))
  }

  /** Sessions that have not expired. */
  count(nowMs: number): number {
    return (this.#statements.count.get(nowMs) as { count: number }).count
  }

  /** Deletes some of what has expired; answers how many, which is `sweptCountMax` where there may be more. */
  sweep(nowMs: number): number {
    return this.#statements.sweep.run(nowMs).changes
  }
}

export interface SessionRow {
  readonly data: string
  readonly expiresMs: number
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}

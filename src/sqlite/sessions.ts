/*
 * Session rows in SQLite, behind an interface that answers with promises, so that the calls can move off
 * the main thread. A session's id is kept as a digest only: who reads the file can take over nobody's
 * session. A row lives until the time it was given, and no longer because it is read.
 */
import { createHash } from 'node:crypto'
import type { OpenDatabase } from './database.js'

export interface SessionRows {
  /** The data of a session that has not expired, else null. */
  get(id: string): Promise<string | null>
  /** @param expiresMs milliseconds since the epoch. */
  set(id: string, data: string, expiresMs: number): Promise<void>
  /** Moves the end of a session that exists; a session that is gone is not brought back. */
  extend(id: string, data: string, expiresMs: number): Promise<void>
  delete(id: string): Promise<void>
  /** Sessions that have not expired. */
  count(): Promise<number>
  /** Deletes what has expired; answers how many rows that were. */
  sweep(): Promise<number>
}

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
      extend: connection.prepare(
        'UPDATE sessions SET data = ?, expires_ms = ? WHERE id_hash = ? AND expires_ms > ?',
      ),
      delete: connection.prepare('DELETE FROM sessions WHERE id_hash = ?'),
      count: connection.prepare('SELECT count(*) AS count FROM sessions WHERE expires_ms > ?'),
      sweep: connection.prepare('DELETE FROM sessions WHERE expires_ms <= ?'),
    }
  }

  async get(id: string): Promise<string | null> {
    const row = this.#statements.get.get(digest(id), this.#wallMs()) as { data: string } | undefined
    return row?.data ?? null
  }

  async set(id: string, data: string, expiresMs: number): Promise<void> {
    this.#statements.set.run(digest(id), data, Math.floor(expiresMs))
  }

  async extend(id: string, data: string, expiresMs: number): Promise<void> {
    this.#statements.extend.run(data, Math.floor(expiresMs), digest(id), this.#wallMs())
  }

  async delete(id: string): Promise<void> {
    this.#statements.delete.run(digest(id))
  }

  async count(): Promise<number> {
    return (this.#statements.count.get(this.#wallMs()) as { count: number }).count
  }

  async sweep(): Promise<number> {
    return this.#statements.sweep.run(this.#wallMs()).changes
  }
}

function digest(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}

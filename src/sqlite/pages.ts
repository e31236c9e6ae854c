/*
 * Rows of parsed pages in SQLite. What is in a row is its writer's business; here it has an age and a size.
 * Whoever asks says which span of times counts, so that a row that a wrong clock dated ahead is none. Rows
 * and bytes are bounded: the oldest make room.
 */
import { createHash } from 'node:crypto'
import type { OpenDatabase } from './database.js'

export interface PageRow {
  readonly url: string
  readonly data: string
  /** When it was fetched: whole milliseconds since the epoch. */
  readonly fetchedMs: number
}

/** When a page must have been fetched to count, in milliseconds since the epoch. */
export interface PageSpan {
  readonly afterMs: number
  /** Included. */
  readonly untilMs: number
}

/** Of rows, and of the bytes of their data in UTF-8. */
export interface PageSums {
  readonly count: number
  readonly bytes: number
}

/** Whoever else asks gets a turn between two pieces of so many rows. */
export const pieceCountMax = 500

export class PageRows {
  readonly #statements
  readonly #write: (rows: readonly PageRow[]) => void
  readonly #deleteOldest: (excess: PageSums) => void

  constructor({ connection }: OpenDatabase) {
    this.#statements = {
      get: connection.prepare(
        'SELECT data FROM pages WHERE url_hash = ? AND fetched_ms > ? AND fetched_ms <= ?',
      ),
      put: connection.prepare(
        `INSERT INTO pages (url_hash, fetched_ms, size_bytes, data) VALUES (?, ?, ?, ?)
         ON CONFLICT (url_hash) DO UPDATE SET
           fetched_ms = excluded.fetched_ms, size_bytes = excluded.size_bytes, data = excluded.data`,
      ),
      count: connection.prepare(
        'SELECT count(*) AS count FROM pages WHERE fetched_ms > ? AND fetched_ms <= ?',
      ),
      sums: connection.prepare('SELECT count(*) AS count, total(size_bytes) AS bytes FROM pages'),
      oldest: connection.prepare(
        `SELECT rowid AS id, size_bytes AS bytes FROM pages ORDER BY fetched_ms LIMIT ${pieceCountMax}`,
      ),
      delete: connection.prepare('DELETE FROM pages WHERE rowid = ?'),
      sweep: connection.prepare(
        `DELETE FROM pages WHERE rowid IN
           (SELECT rowid FROM pages WHERE fetched_ms <= ? OR fetched_ms > ? LIMIT ${pieceCountMax})`,
      ),
    }
    const writeEach = connection.transaction((rows: readonly PageRow[]) => {
      for (const { url, data, fetchedMs } of rows) {
        this.#statements.put.run(digest(url), fetchedMs, Buffer.byteLength(data), data)
      }
    })
    this.#write = (rows) => writeEach.immediate(rows)
    const deleteEach = connection.transaction((excess: PageSums) => this.#deleteFirst(excess))
    this.#deleteOldest = (excess) => deleteEach.immediate(excess)
  }

  /** The data of a page that was fetched within the span, else null. */
  get(url: string, { afterMs, untilMs }: PageSpan): string | null {
    const row = this.#statements.get.get(digest(url), afterMs, untilMs)
    return (row as { data: string } | undefined)?.data ?? null
  }

  /** Writes pages in one go, in place of older rows of theirs. */
  put(rows: readonly PageRow[]): void {
    this.#write(rows)
  }

  /** Deletes some of the oldest rows where there are more than that; whether there are still too many. */
  makeRoom(most: PageSums): boolean {
    const { count, bytes } = this.#statements.sums.get() as PageSums
    if (count <= most.count && bytes <= most.bytes) return false
    this.#deleteOldest({ count: count - most.count, bytes: bytes - most.bytes })
    return true
  }

  /** Pages that `get` would give. */
  count({ afterMs, untilMs }: PageSpan): number {
    return (this.#statements.count.get(afterMs, untilMs) as { count: number }).count
  }

  /** Deletes some of what lies outside the span; answers how many, `pieceCountMax` where there may be more. */
  sweep({ afterMs, untilMs }: PageSpan): number {
    return this.#statements.sweep.run(afterMs, untilMs).changes
  }

  #deleteFirst({ count, bytes }: PageSums): void {
    for (const row of this.#statements.oldest.all() as { id: number; bytes: number }[]) {
      if (count <= 0 && bytes <= 0) return
      this.#statements.delete.run(row.id)
      count--
      bytes -= row.bytes
    }
  }
}

/** Addresses may be kilobytes long; all digests are as short. */
function digest(url: string): string {
  return createHash('sha256').update(url).digest('base64url')
}

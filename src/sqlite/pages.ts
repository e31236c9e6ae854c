/*
 * Rows of parsed pages in SQLite, behind an interface that answers with promises, so that the calls can
 * move off the main thread. What is in a row is its writer's business; here it has an age and a size. A row
 * is given out while its age is from 0 up to, but not including, the lifetime, so one that a wrong clock
 * dated ahead is none. Rows and bytes are bounded: the oldest make room.
 */
import { createHash } from 'node:crypto'
import { setImmediate as everybodyElsesTurn } from 'node:timers/promises'
import type { OpenDatabase } from './database.js'

export interface PageRow {
  readonly url: string
  readonly data: string
  /** When it was fetched: whole milliseconds since the epoch. */
  readonly fetchedMs: number
}

export interface PageRows {
  /** The data of a page whose age is within the lifetime, else null. */
  get(url: string): Promise<string | null>
  /** Writes pages in one go, in place of older rows of theirs, and makes room for them. */
  put(rows: readonly PageRow[]): Promise<void>
  /** Pages that `get` would give. */
  count(): Promise<number>
  /** Deletes what `get` would not give any more; answers how many rows that were. */
  sweep(): Promise<number>
}

export interface PageRowsOptions {
  readonly wallMs: () => number
  readonly lifetimeMs: number
  readonly rowsMax: number
  /** Of the data of all rows, in UTF-8. */
  readonly bytesMax: number
}

/** Requests get their turn between two pieces of this many rows. */
const pieceCount = 500

export class SqlitePageRows implements PageRows {
  readonly #options: PageRowsOptions
  readonly #statements
  readonly #write: (rows: readonly PageRow[]) => void
  readonly #deleteOldest: (excess: Sums) => void

  constructor({ connection }: OpenDatabase, options: PageRowsOptions) {
    this.#options = options
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
        `SELECT rowid AS id, size_bytes AS bytes FROM pages ORDER BY fetched_ms LIMIT ${pieceCount}`,
      ),
      delete: connection.prepare('DELETE FROM pages WHERE rowid = ?'),
      sweep: connection.prepare(
        `DELETE FROM pages WHERE rowid IN
           (SELECT rowid FROM pages WHERE fetched_ms <= ? OR fetched_ms > ? LIMIT ${pieceCount})`,
      ),
    }
    const writeEach = connection.transaction((rows: readonly PageRow[]) => {
      for (const { url, data, fetchedMs } of rows) {
        this.#statements.put.run(digest(url), fetchedMs, Buffer.byteLength(data), data)
      }
    })
    this.#write = (rows) => writeEach.immediate(rows)
    const deleteEach = connection.transaction((excess: Sums) => this.#deleteFirst(excess))
    this.#deleteOldest = (excess) => deleteEach.immediate(excess)
  }

  async get(url: string): Promise<string | null> {
    const row = this.#statements.get.get(digest(url), ...this.#validSpan()) as
      { data: string } | undefined
    return row?.data ?? null
  }

  async put(rows: readonly PageRow[]): Promise<void> {
    this.#write(rows)
    await this.#makeRoom()
  }

  async count(): Promise<number> {
    return (this.#statements.count.get(...this.#validSpan()) as { count: number }).count
  }

  async sweep(): Promise<number> {
    const span = this.#validSpan()
    for (let sum = 0; ;) {
      const { changes } = this.#statements.sweep.run(...span)
      sum += changes
      if (changes < pieceCount) return sum
      await everybodyElsesTurn()
    }
  }

  /** After the one time and up to the other a page must have been fetched. */
  #validSpan(): [number, number] {
    const nowMs = this.#options.wallMs()
    return [nowMs - this.#options.lifetimeMs, nowMs]
  }

  /** Deletes the oldest, a piece at a time, until what is left is within the bounds. */
  async #makeRoom(): Promise<void> {
    const { rowsMax, bytesMax } = this.#options
    for (;;) {
      const { count, bytes } = this.#statements.sums.get() as Sums
      if (count <= rowsMax && bytes <= bytesMax) return
      this.#deleteOldest({ count: count - rowsMax, bytes: bytes - bytesMax })
      await everybodyElsesTurn()
    }
  }

  #deleteFirst({ count, bytes }: Sums): void {
    for (const row of this.#statements.oldest.all() as { id: number; bytes: number }[]) {
      if (count <= 0 && bytes <= 0) return
      this.#statements.delete.run(row.id)
      count--
      bytes -= row.bytes
    }
  }
}

/** Of rows and of bytes: how many there are, or are too many. */
interface Sums {
  readonly count: number
  readonly bytes: number
}

/** Addresses may be kilobytes long; all digests are as short. */
function digest(url: string): string {
  return createHash('sha256').update(url).digest('base64url')
}

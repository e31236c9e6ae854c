/*
 * The pages of the last day: a copy in memory, and behind it rows that outlive the process, where there are
 * any. Nobody waits for a write: pages wait in the copy and are written once a second, a piece at a time. No
 * failure of the rows reaches a caller: a page that cannot be read is fetched anew, one that cannot be
 * written waits, and goes when the copy has no room for it. Reading is tried again once a second too, so
 * that a locked file does not delay each call.
 */
import type { Asked } from '../sqlite/asked.js'
import {
  pieceCountMax,
  type PageRow,
  type PageRows,
  type PageSpan,
  type PageSums,
} from '../sqlite/pages.js'
import { within } from '../sqlite/within.js'
import { isFresh, pageLifetimeMs, readWritten, writtenPage, type KeptPage } from './kept-page.js'
import { PageMemory } from './page-memory.js'

export interface PageCacheOptions {
  /** null: in memory only. */
  readonly rows: Asked<PageRows> | null
  /** Of all rows. */
  readonly rowsMax: PageSums
  readonly wallMs: () => number
  /** Of the copy in memory. */
  readonly entriesMax: number
  readonly bytesMax: number
  /** Told when the rows begin to fail, and with null when they are well again. */
  readonly onFailure: (error: unknown) => void
}

/** A few milliseconds of writing; whoever else asks the database gets a turn between two pieces. */
const pieceCount = 100
/** A page that is not there by then is fetched, which would take as long. */
const patienceMs = 250
/** A thread takes 50 ms to start, and on a busy machine many times that. */
const startPatienceMs = 5_000
/** Scrapes wait longer than requests: nobody else waits for them. */
const countPatienceMs = 500

export class PageCache {
  readonly #rows: Asked<PageRows> | null
  readonly #options: PageCacheOptions
  readonly #memory: PageMemory
  /** URLs of pages in memory that the rows do not have yet. */
  readonly #waiting = new Set<string>()
  /** Ends with the last flush that was asked for. */
  #flushed: Promise<void> = Promise.resolve()
  #isFailing = false
  #mayRead = true
  #lastCount = 0

  constructor(options: PageCacheOptions) {
    const { wallMs, entriesMax, bytesMax } = options
    this.#rows = options.rows
    this.#options = options
    const onDrop = (url: string) => void this.#waiting.delete(url)
    this.#memory = new PageMemory({ wallMs, entriesMax, bytesMax, onDrop })
  }

  /** Once the rows answer for the first time, however that is; without it the first pages would be sought in vain. */
  async started(): Promise<void> {
    if (this.#rows === null) return
    try {
      await within(this.#rows.get('', this.#span()), startPatienceMs)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** The page of a URL, if it is in memory. */
  peek(url: string): KeptPage | null {
    return this.#memory.get(url)?.page ?? null
  }

  /** The page of a URL, wherever it is. */
  async find(url: string): Promise<KeptPage | null> {
    const known = this.peek(url)
    if (known !== null || this.#rows === null || !this.#mayRead) return known
    try {
      const data = await within(this.#rows.get(url, this.#span()), patienceMs)
      if (data === 'late') {
        this.#mayRead = false
        return null
      }
      const page = data === null ? null : readWritten(data, url)
      if (data === null || page === null) return null
      const fetchedMs = Date.parse(page.fetchedAt)
      if (!isFresh(fetchedMs, this.#options.wallMs())) return null
      this.#memory.put(url, { page, fetchedMs, bytes: Buffer.byteLength(data) })
      return page
    } catch (error) {
      this.#mayRead = false
      this.#fail(error)
      return null
    }
  }

  put(page: KeptPage): void {
    const { url, fetchedAt } = page
    const bytes = Buffer.byteLength(writtenPage(page))
    const entry = { page, fetchedMs: Date.parse(fetchedAt), bytes }
    this.#memory.put(url, entry)
    if (this.#rows !== null && this.#memory.get(url) === entry) this.#waiting.add(url)
  }

  /** Pages that a call would find; where that cannot be told now, as many as there were. */
  async count(): Promise<number> {
    if (this.#rows === null) return this.#memory.count
    await within(this.#recount(this.#rows), countPatienceMs)
    return this.#lastCount
  }

  async #recount(rows: Asked<PageRows>): Promise<void> {
    await this.flush()
    try {
      this.#lastCount = await rows.count(this.#span())
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Drops what is no longer fresh, in memory some of it. */
  async sweep(): Promise<void> {
    this.#memory.sweep()
    await this.flush()
    try {
      const span = this.#span()
      while ((await this.#rows?.sweep(span)) === pieceCountMax);
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Writes what waits, until the first failure; to be called about once a second. */
  flush(): Promise<void> {
    // One after the other, so that whoever awaits this one knows that what waited then is written.
    this.#flushed = this.#flushed.then(() => this.#writeWaiting())
    return this.#flushed
  }

  async #writeWaiting(): Promise<void> {
    const rows = this.#rows
    if (rows === null) return
    this.#mayRead = true
    if (this.#waiting.size === 0 && !this.#isFailing) return
    try {
      // Where nothing waits to be written, only a read can show that all is well.
      if (this.#waiting.size === 0) await rows.get('', this.#span())
      while (this.#waiting.size > 0) await this.#writePiece(rows)
      while (await rows.makeRoom(this.#options.rowsMax));
      if (this.#isFailing) this.#options.onFailure(null)
      this.#isFailing = false
    } catch (error) {
      this.#fail(error)
    }
  }

  async #writePiece(rows: Asked<PageRows>): Promise<void> {
    const piece: PageRow[] = []
    for (const url of this.#waiting) {
      const entry = this.#memory.get(url)
      if (entry !== null) {
        piece.push({ url, data: writtenPage(entry.page), fetchedMs: entry.fetchedMs })
      }
      // Before the write: a page that is put again meanwhile waits again.
      this.#waiting.delete(url)
      if (piece.length === pieceCount) break
    }
    try {
      await rows.put(piece)
    } catch (error) {
      for (const { url } of piece) if (this.#memory.get(url) !== null) this.#waiting.add(url)
      throw error
    }
  }

  /** When a page must have been fetched to be fresh now. */
  #span(): PageSpan {
    const nowMs = this.#options.wallMs()
    return { afterMs: nowMs - pageLifetimeMs, untilMs: nowMs }
  }

  #fail(error: unknown): void {
    if (!this.#isFailing) this.#options.onFailure(error)
    this.#isFailing = true
  }
}

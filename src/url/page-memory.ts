/*
 * Pages in memory, bounded by their number and by the bytes of their JSON text: the one that was put first
 * makes room. What is no longer fresh goes when it is asked for, and with the sweeps.
 */
import { isFresh, type KeptPage } from './kept-page.js'

export interface MemoryEntry {
  readonly page: KeptPage
  readonly fetchedMs: number
  /** Of the page as a row has it. */
  readonly bytes: number
}

export interface PageMemoryOptions {
  readonly wallMs: () => number
  readonly entriesMax: number
  readonly bytesMax: number
  /** Told of each page that goes. */
  readonly onDrop: (url: string) => void
}

/** As many as a request does not feel. */
const sweptCountMax = 1_000

export class PageMemory {
  readonly #options: PageMemoryOptions
  readonly #entries = new Map<string, MemoryEntry>()
  #bytes = 0
  /** Where the next sweep goes on; it does not mind what comes and goes meanwhile. */
  #cursor: Iterator<[string, MemoryEntry]> | null = null

  constructor(options: PageMemoryOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#entries.size
  }

  /** The fresh page of a URL, else null. */
  get(url: string): MemoryEntry | null {
    const entry = this.#entries.get(url)
    if (entry === undefined) return null
    if (isFresh(entry.fetchedMs, this.#options.wallMs())) return entry
    this.#drop(url, entry)
    return null
  }

  put(url: string, entry: MemoryEntry): void {
    const { entriesMax, bytesMax } = this.#options
    const before = this.#entries.get(url)
    if (before !== undefined) this.#drop(url, before)
    this.#entries.set(url, entry)
    this.#bytes += entry.bytes
    for (const [oldest, dropped] of this.#entries) {
      if (this.#entries.size <= entriesMax && this.#bytes <= bytesMax) return
      this.#drop(oldest, dropped)
    }
  }

  /** Looks at some of the pages, and from where it ended the next time. */
  sweep(): void {
    const nowMs = this.#options.wallMs()
    this.#cursor ??= this.#entries.entries()
    for (let looked = 0; looked < sweptCountMax; looked++) {
      const { done, value } = this.#cursor.next()
      if (done === true) return void (this.#cursor = null)
      const [url, entry] = value
      if (!isFresh(entry.fetchedMs, nowMs)) this.#drop(url, entry)
    }
  }

  #drop(url: string, entry: MemoryEntry): void {
    this.#entries.delete(url)
    this.#bytes -= entry.bytes
    this.#options.onDrop(url)
  }
}

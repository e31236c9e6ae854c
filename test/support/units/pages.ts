/*
 * Parts for the tests of parsed pages: a fetcher that answers when it is told to, an observer that keeps
 * what it is told, rows that fail when they are told to.
 */
import { UrlFailure } from '../../../src/url/failure.js'
import type { KeptPage } from '../../../src/url/kept-page.js'
import type { FetchFailureReason, ParseObserver, ParseResult } from '../../../src/url/observer.js'
import type { FetchedPage } from '../../../src/url/page.js'
import type { Asked } from '../../../src/sqlite/asked.js'
import type { PageRow, PageRows } from '../../../src/sqlite/pages.js'

/** Each fetch brings a page at once, unless `answer` says otherwise. */
export class FakeFetcher {
  /** The URLs that were fetched, in order. */
  readonly fetched: string[] = []
  answer: (url: URL) => Promise<FetchedPage> | FetchedPage = fetchedPage

  refuseByText({ hostname }: URL): void {
    if (hostname === 'refused.test') throw new UrlFailure('blocked', 'nothing there may be fetched')
  }

  async fetch(url: URL): Promise<FetchedPage> {
    this.fetched.push(url.href)
    return await this.answer(url)
  }
}

export function fetchedPage(url: URL): FetchedPage {
  const body = new TextEncoder().encode(`<title>${url.href}</title>`)
  return { finalUrl: url.href, contentType: 'text/html', body, truncated: false }
}

export class CollectingObserver implements ParseObserver {
  readonly results: ParseResult[] = []
  readonly fetches: [seconds: number, failure: FetchFailureReason | null][] = []

  parsed(result: ParseResult): void {
    this.results.push(result)
  }

  fetched(seconds: number, failure: FetchFailureReason | null): void {
    this.fetches.push([seconds, failure])
  }

  /** How many calls had each result. */
  counts(): Partial<Record<ParseResult, number>> {
    const counts: Partial<Record<ParseResult, number>> = {}
    for (const result of this.results) counts[result] = (counts[result] ?? 0) + 1
    return counts
  }
}

export function keptPage(url: string, fetchedMs: number, fields: Partial<KeptPage> = {}): KeptPage {
  return {
    url,
    finalUrl: url,
    title: `Page of ${url}`,
    description: null,
    image: null,
    siteName: null,
    canonical: null,
    language: null,
    contentType: 'text/html',
    fetchedAt: new Date(fetchedMs).toISOString(),
    truncated: false,
    ...fields,
  }
}

/** Rows in a Map, each call of which fails while `failure` is set; they know no lifetime. */
export class FaultyRows implements Asked<PageRows> {
  failure: Error | null = null
  readonly kept = new Map<string, string>()
  readonly calls: string[] = []

  async get(url: string): Promise<string | null> {
    this.#called('get')
    return this.kept.get(url) ?? null
  }

  async put(rows: readonly PageRow[]): Promise<void> {
    this.#called('put')
    for (const { url, data } of rows) this.kept.set(url, data)
  }

  async makeRoom(): Promise<boolean> {
    return false
  }

  async count(): Promise<number> {
    this.#called('count')
    return this.kept.size
  }

  async sweep(): Promise<number> {
    this.#called('sweep')
    return 0
  }

  #called(name: string): void {
    this.calls.push(name)
    if (this.failure !== null) throw this.failure
  }
}

export const timeout = (): UrlFailure => new UrlFailure('timeout', 'the page took too long')

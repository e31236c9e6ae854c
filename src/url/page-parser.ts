/*
 * From a URL to what its page says: out of the cache, or by a fetch that is shared by all who ask for that
 * URL meanwhile. Who wants to charge for fetches hands in `beforeFetch`: it is called before one begins, and
 * for nothing else.
 *
 * Calls for one URL form a line, and each looks at what became of the one before it: a page or a failure is
 * shared, whereas a call that was not allowed to fetch leaves that to the next. So nobody gets another's
 * refusal, and there is never more than one fetch of a URL. No failure is kept beyond the line.
 */
import type { Clock } from '../core/clock.js'
import { UrlFailure } from './failure.js'
import type { KeptPage } from './kept-page.js'
import type { FetchFailureReason, ParseObserver } from './observer.js'
import type { FetchedPage, ParsedPage } from './page.js'
import type { PageCache } from './page-cache.js'
import type { PageFetcher } from './fetch-page.js'
import type { ParseOptions } from './options.js'
import { readPage } from './read-page.js'
import { readTarget } from './target.js'

export interface ParserParts {
  readonly fetcher: Pick<PageFetcher, 'refuseByText' | 'fetch'>
  readonly cache: PageCache
  readonly clock: Clock
  readonly observer: ParseObserver
}

/** What became of one call. */
type Outcome =
  | { readonly result: 'hit' | 'miss' | 'shared'; readonly page: KeptPage }
  | { readonly result: 'declined' | 'failed'; readonly error: unknown }

/** The calls for one URL that have not ended. */
interface Line {
  /** Ends with the last of them; null where the first finds nothing in the cache. */
  last: Promise<Outcome | null>
}

export class PageParser {
  readonly #parts: ParserParts
  readonly #lines = new Map<string, Line>()

  constructor(parts: ParserParts) {
    this.#parts = parts
  }

  async parse(text: unknown, { beforeFetch }: ParseOptions = {}): Promise<ParsedPage> {
    const outcome = await this.#outcomeOf(text, beforeFetch)
    this.#parts.observer.parsed(outcome.result)
    if ('error' in outcome) throw outcome.error
    const { truncated, ...page } = outcome.page
    return { ...page, cached: outcome.result === 'hit', truncated }
  }

  async #outcomeOf(text: unknown, beforeFetch: ParseOptions['beforeFetch']): Promise<Outcome> {
    const { fetcher, cache } = this.#parts
    let url: URL
    try {
      url = readTarget(text)
      // Before the cache is asked: it may know a page from when its URL was let through.
      fetcher.refuseByText(url)
    } catch (error) {
      return { result: 'failed', error }
    }
    const page = cache.peek(url.href)
    return page === null ? await this.#standInLine(url, beforeFetch) : { result: 'hit', page }
  }

  async #standInLine(url: URL, beforeFetch: ParseOptions['beforeFetch']): Promise<Outcome> {
    const line = this.#lineFor(url.href)
    const turn = line.last.then((before) => sharedFrom(before) ?? this.#attempt(url, beforeFetch))
    line.last = turn
    const outcome = await turn
    // Those behind get this page or failure; whoever comes from now on does not.
    const isOver = outcome.result !== 'declined' || line.last === turn
    if (isOver && this.#lines.get(url.href) === line) this.#lines.delete(url.href)
    return outcome
  }

  #lineFor(href: string): Line {
    const known = this.#lines.get(href)
    if (known !== undefined) return known
    const find = async (): Promise<Outcome | null> => {
      const page = await this.#parts.cache.find(href)
      return page === null ? null : { result: 'hit', page }
    }
    const line = { last: find() }
    this.#lines.set(href, line)
    return line
  }

  async #attempt(url: URL, beforeFetch: ParseOptions['beforeFetch']): Promise<Outcome> {
    try {
      await beforeFetch?.()
    } catch (error) {
      return { result: 'declined', error }
    }
    try {
      const page = await this.#fetch(url)
      this.#parts.cache.put(page)
      return { result: 'miss', page }
    } catch (error) {
      return { result: 'failed', error }
    }
  }

  async #fetch(url: URL): Promise<KeptPage> {
    const { finalUrl, contentType, body, truncated } = await this.#timedFetch(url)
    const fetchedAt = new Date(this.#parts.clock.wallMs()).toISOString()
    const fields = await readPage(body, contentType, finalUrl)
    return { url: url.href, finalUrl, ...fields, contentType, fetchedAt, truncated }
  }

  async #timedFetch(url: URL): Promise<FetchedPage> {
    const { fetcher, clock, observer } = this.#parts
    const startedMs = clock.monotonicMs()
    const secondsSince = () => (clock.monotonicMs() - startedMs) / 1_000
    try {
      const fetched = await fetcher.fetch(url)
      observer.fetched(secondsSince(), null)
      return fetched
    } catch (error) {
      if (error instanceof UrlFailure) observer.fetched(secondsSince(), fetchFailure(error))
      throw error
    }
  }
}

/** What a call gets from the one before it in the line; null where it has to see for itself. */
function sharedFrom(before: Outcome | null): Outcome | null {
  if (before === null || before.result === 'declined') return null
  return before.result === 'miss' ? { ...before, result: 'shared' } : before
}

/** A fetch begins with a URL that was read already: that it fails as none is a matter of types alone. */
function fetchFailure({ reason }: UrlFailure): FetchFailureReason {
  return reason === 'url' ? 'redirects' : reason
}

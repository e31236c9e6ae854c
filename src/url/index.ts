/*
 * `tallygate/url`: what a page says of itself, fetched for strangers without harm: from public addresses
 * alone, bounded in time and size, kept for a day. No Express or Prometheus is loaded.
 *
 * @example
 * const { parse } = createUrlParser()
 * const { title } = await parse('https://example.com/')
 */
import { systemClock, type Clock } from '../core/clock.js'
import type { DatabaseThread } from '../sqlite/database-thread.js'
import { startThread } from '../sqlite/start-thread.js'
import { startUpkeep } from '../sqlite/upkeep.js'
import { composeParser } from './compose.js'
import { UrlFailure } from './failure.js'
import { PageFetcher } from './fetch-page.js'
import {
  checkOptions,
  checkParseOptions,
  type ParseOptions,
  type UrlParserOptions,
} from './options.js'
import type { ParsedPage } from './page.js'

export interface UrlParser {
  /**
   * What a page says of itself, out of the cache or fetched now.
   *
   * @throws UrlFailure whose `status` is what a server should answer: 400 for a URL that is none, 403 for one
   * where nobody may go, 502 where there was no page to be had, 504 where it took too long.
   */
  readonly parse: (url: string | URL, options?: ParseOptions) => Promise<ParsedPage>
  /** Ends running fetches, writes what waits; may be called twice. */
  readonly close: () => Promise<void>
}

/**
 * Makes a parser of its own: fetcher, cache, and a database where one is named.
 *
 * @throws TallygateError naming the option, what was received and what would be right.
 */
export function createUrlParser(options: UrlParserOptions = {}): UrlParser {
  checkOptions(options)
  const { database: path, entriesMax, clock = systemClock, ...rest } = options
  // First: it reads `allow`, and throws before a file is made.
  const fetcher = new PageFetcher(rest)
  let closing: Promise<void> | null = null
  const database = path === undefined ? null : threadOf(path, clock)
  const observer = { parsed: () => undefined, fetched: () => undefined }
  // At the end nobody is to be told that a sweep found the file closed.
  const onFailure = (error: unknown) => closing === null && warn(path, error)
  const parts = { fetcher, entriesMax, database, clock, observer, onFailure }
  const { parser, cache } = composeParser(parts)
  const started = cache.started()
  const timer = startUpkeep(cache, onFailure)
  const close = async () => {
    clearInterval(timer)
    await fetcher.close()
    database?.bePatient()
    await cache.flush()
    await database?.close()
  }
  return {
    async parse(url, parseOptions = {}) {
      checkParseOptions(parseOptions)
      await started
      if (closing !== null) throw new UrlFailure('connect', 'Nothing is fetched any more')
      return await parser.parse(url instanceof URL ? url.href : url, parseOptions)
    },
    close: () => (closing ??= close()),
  }
}

function threadOf(path: string, clock: Clock): DatabaseThread {
  return startThread(
    path,
    [],
    () => clock.wallMs(),
    () => null,
  ).thread
}

/** There is no logger here; Node.js shows a warning on standard error, or to whoever listens for it. */
function warn(path: string | undefined, error: unknown): void {
  if (error === null) return
  const reason = error instanceof Error ? `: ${error.message}` : ''
  process.emitWarning(`pages cannot be kept in ${path}; they wait in memory${reason}`, {
    type: 'TallygateWarning',
    code: 'TALLYGATE_DATABASE',
  })
}

export { TallygateError, type ErrorCode } from '../core/errors.js'
export type { Clock } from '../core/clock.js'
export { UrlFailure, type FailureReason, type FailureStatus } from './failure.js'
export type { ParseOptions, UrlParserOptions } from './options.js'
export type { ParsedPage } from './page.js'

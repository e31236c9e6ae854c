/*
 * A parser put together for whoever owns the database: `tallygate/url` with a file of its own or none, the
 * bundled app with the gate's. Bounds that are nobody's choice stand here.
 */
import type { Clock } from '../core/clock.js'
import type { DatabaseThread } from '../sqlite/database-thread.js'
import type { PageFetcher } from './fetch-page.js'
import type { ParseObserver } from './observer.js'
import { PageCache } from './page-cache.js'
import { PageParser } from './page-parser.js'

export interface Composition {
  readonly parser: PageParser
  readonly cache: PageCache
}

export interface CompositionParts {
  readonly fetcher: PageFetcher
  readonly entriesMax?: number | undefined
  /** null: pages are kept in memory only. */
  readonly database: DatabaseThread | null
  readonly clock: Clock
  readonly observer: ParseObserver
  /** Told when the database begins to fail, and with null when it is well again. */
  readonly onFailure: (error: unknown) => void
}

const entriesMaxDefault = 10_000
/** Of the JSON of all pages. */
const bytesMax = 64 * 1_024 * 1_024
/** Of the copy in memory of what a database has. */
const copy = { entriesMax: 1_000, bytesMax: 8 * 1_024 * 1_024 }

export function composeParser(parts: CompositionParts): Composition {
  const { fetcher, database, clock, observer, onFailure } = parts
  const { entriesMax = entriesMaxDefault } = parts
  const wallMs = () => clock.wallMs()
  const rowsMax = { count: entriesMax, bytes: bytesMax }
  const common = { rowsMax, wallMs, onFailure }
  const cache =
    database === null
      ? new PageCache({ ...common, rows: null, entriesMax, bytesMax })
      : new PageCache({
          ...common,
          rows: database.service('pages', ['get', 'put', 'makeRoom', 'count', 'sweep']),
          entriesMax: Math.min(entriesMax, copy.entriesMax),
          bytesMax: copy.bytesMax,
        })
  return { parser: new PageParser({ fetcher, cache, clock, observer }), cache }
}

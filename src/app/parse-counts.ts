/*
 * What the parser of the bundled app tells of itself, as Prometheus reads it: numbers in slots, all there
 * from the first scrape.
 */
import { Histogram } from '../metrics/histogram.js'
import type { MetricSources } from '../metrics/prometheus.js'
import { metrics } from '../metrics/table.js'
import {
  fetchFailureReasons,
  parseResults,
  type FetchFailureReason,
  type ParseObserver,
  type ParseResult,
} from '../url/observer.js'

export class ParseCounts implements ParseObserver {
  readonly #results = new Float64Array(parseResults.length)
  readonly #failures = new Float64Array(fetchFailureReasons.length)
  readonly #duration = new Histogram(metrics.urlFetchDuration.buckets)

  parsed(result: ParseResult): void {
    increment(this.#results, parseResults.indexOf(result))
  }

  fetched(seconds: number, failure: FetchFailureReason | null): void {
    this.#duration.observe(seconds)
    if (failure !== null) increment(this.#failures, fetchFailureReasons.indexOf(failure))
  }

  /** @param entryCount tells how many pages the cache has. */
  sources(entryCount: () => Promise<number>): MetricSources {
    return {
      urlParseRequests: () =>
        parseResults.map((result, index) => ({
          labels: { result },
          value: this.#results[index] ?? 0,
        })),
      urlFetchDuration: () => this.#duration.samples(metrics.urlFetchDuration.name),
      urlFetchFailures: () =>
        fetchFailureReasons.map((reason, index) => ({
          labels: { reason },
          value: this.#failures[index] ?? 0,
        })),
      urlCacheEntries: async () => [{ labels: {}, value: await entryCount() }],
    }
  }
}

function increment(counts: Float64Array, index: number): void {
  counts[index] = (counts[index] ?? 0) + 1
}

/*
 * What a parser tells of itself, to whoever counts it: plain calls, so that nothing here knows of metrics.
 */
import { failureReasons, type FailureReason } from './failure.js'

/**
 * What became of a call: a `hit` came from the cache, a `miss` was fetched for this call, a `shared` one was
 * fetched for another at the same time, `declined` ones were not allowed a fetch, all others `failed`.
 */
export const parseResults = ['hit', 'miss', 'shared', 'declined', 'failed'] as const

export type ParseResult = (typeof parseResults)[number]

/** A URL that is refused by its text is never fetched. */
export type FetchFailureReason = Exclude<FailureReason, 'url'>

export const fetchFailureReasons = failureReasons.filter(
  (reason): reason is FetchFailureReason => reason !== 'url',
)

export interface ParseObserver {
  /** Told of each call, once, at its end. */
  parsed(result: ParseResult): void
  /** Told of each fetch, once, at its end. @param failure null where it brought a page. */
  fetched(seconds: number, failure: FetchFailureReason | null): void
}

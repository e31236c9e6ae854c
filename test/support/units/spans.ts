/*
 * Spans as people can compare them: two instants of UTC, with as many digits as they need.
 */
import type { Span } from '../../../src/tally/calendar.js'

export function isoSpan({ startMs, endMs }: Span): string {
  return `${iso(startMs)} ${iso(endMs)}`
}

/** @example iso(0) // '1970-01-01T00:00Z' */
export function iso(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/(?::00)?\.000Z$/, 'Z')
}

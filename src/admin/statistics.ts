/*
 * The statistics as an object: totals, calendar windows, rules, store and persistence, all as of one
 * instant. Counts are since the database began or in its windows; what is said of keys speaks of the rule's
 * own current window and the last one. Each clock is read once.
 */
import type { Clock } from '../core/clock.js'
import type { Calendar } from '../tally/calendar.js'
import type { Tally } from '../tally/tally.js'
import { ruleStatistics, type RuleStatistics, type RuleStatisticsParts } from './rule-statistics.js'
import {
  iso,
  requestCounts,
  totalsOf,
  windowsOf,
  type RequestCounts,
  type Windows,
} from './shown-counts.js'

export interface Statistics {
  generatedAt: string
  scope: 'instance'
  timeZone: string
  weekStartsOn: string
  since: string
  totals: RequestCounts
  windows: Windows<RequestCounts>
  rules: RuleStatistics[]
  store: { kind: string; degraded: boolean }
  persistence: {
    path: string | null
    lastFlushAt: string | null
    /** Requests that are not in the database yet. */
    pending: number
    /** Flushes that failed since the start. */
    failures: number
    sizeBytes: number
    /** Where a damaged file was moved since the start; null where there was none. */
    movedAside: string | null
    /** Requests that a minute or an hour lacks, for want of room while nothing could be written. */
    lost: number
  }
}

export interface StatisticsParts extends RuleStatisticsParts {
  readonly tally: Tally
  readonly calendar: Calendar
  readonly clock: Clock
}

export function statistics(parts: StatisticsParts): Statistics {
  const { limiter, tally, calendar, clock } = parts
  const view = tally.view()
  const nowMs = clock.monotonicMs()
  return {
    generatedAt: iso(view.atMs),
    scope: 'instance',
    timeZone: calendar.timeZone,
    weekStartsOn: calendar.weekStartsOn,
    since: iso(tally.archive.sinceMs),
    totals: requestCounts(totalsOf(view)),
    windows: windowsOf(view, requestCounts),
    rules: limiter.rules.map((rule) => ruleStatistics(rule, view, parts, nowMs)),
    store: { kind: limiter.store.kind, degraded: false },
    persistence: persistenceOf(tally),
  }
}

function persistenceOf(tally: Tally): Statistics['persistence'] {
  const { lastFlushAtMs, failedCount } = tally.health()
  return {
    path: tally.archive.path,
    lastFlushAt: lastFlushAtMs === null ? null : iso(lastFlushAtMs),
    pending: tally.pendingRequests(),
    failures: failedCount,
    sizeBytes: tally.archive.sizeBytes,
    movedAside: tally.archive.movedAside,
    lost: tally.lostRequests,
  }
}

/*
 * The statistics as an object: totals, calendar windows, rules, store and persistence, all as of one
 * instant. Counts are since the database began or in its windows; what is said of keys speaks of the rule's
 * own current window and the last one.
 */
import type { RuleLimiter } from '../limiter/limiter.js'
import type { TallyArchive } from '../tally/archive.js'
import type { Calendar } from '../tally/calendar.js'
import type { TallySlots } from '../tally/slots.js'
import type { Figures } from './figures.js'
import { ruleStatistics, type RuleStatistics } from './rule-statistics.js'
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
  /** `cluster`: of all workers of a node:cluster whose primary collects. */
  scope: 'instance' | 'cluster'
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

export interface StatisticsParts {
  readonly limiter: RuleLimiter
  readonly slots: TallySlots
  readonly calendar: Calendar
  /** Says where the counts are kept. */
  readonly archive: TallyArchive
}

export function statistics(figures: Figures, parts: StatisticsParts): Statistics {
  const { limiter, slots, calendar, archive } = parts
  const { view } = figures
  return {
    generatedAt: iso(view.atMs),
    scope: figures.scope,
    timeZone: calendar.timeZone,
    weekStartsOn: calendar.weekStartsOn,
    since: iso(figures.sinceMs),
    totals: requestCounts(totalsOf(view)),
    windows: windowsOf(view, requestCounts),
    rules: limiter.rules.map((rule) => ruleStatistics(rule, figures, slots)),
    store: { kind: limiter.store.kind, degraded: false },
    persistence: persistenceOf(figures, archive),
  }
}

function persistenceOf(figures: Figures, archive: TallyArchive): Statistics['persistence'] {
  const { lastFlushAtMs, pending, failures, lost } = figures
  return {
    path: archive.path,
    lastFlushAt: lastFlushAtMs === null ? null : iso(lastFlushAtMs),
    pending,
    failures,
    sizeBytes: archive.sizeBytes,
    movedAside: archive.movedAside,
    lost,
  }
}

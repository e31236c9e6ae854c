/*
 * The statistics as an object: totals, calendar windows, rules, store and persistence, all as of one
 * instant. Counts are since the database began or in its windows; nothing here is since the process began.
 */
import { outcomes, verdicts, type Mode, type Outcome, type Verdict } from '../core/decision.js'
import { shownLimit } from '../core/plans.js'
import type { CompiledRule } from '../core/rule.js'
import { windowKinds, type WindowKind } from '../core/windows.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { Tally, TallyView, WindowCounts } from '../tally/tally.js'
import type { TallySlots } from '../tally/slots.js'
import type { Calendar } from '../tally/calendar.js'

export type RequestCounts = { requests: number } & Record<Outcome, number>
export type VerdictCounts = Record<Verdict, number>

/** A calendar window, [start, end) as ISO times, and what was counted in it. */
export type Windowed<Counts> = { start: string; end: string } & Counts
export type Windows<Counts> = Record<
  WindowKind,
  { current: Windowed<Counts>; previous: Windowed<Counts> }
>

export interface RuleStatistics {
  name: string
  function: string | null
  /** `global`, `ip`, `session`, `header:NAME`, `function`, or several with + between. */
  key: string
  algorithm: string
  /** Where the limit is a function, the greatest that it gave since the process began. */
  limit: number
  windowMs: number
  mode: Mode
  strict: boolean
  trackedKeys: number
  /** Keys that had to go although they still counted, because the table was full. */
  evictedKeys: number
  /** Highest usage of any key as a share of the limit, in the current or the last window of the rule. */
  peakUtilization: number
  totals: VerdictCounts
  windows: Windows<VerdictCounts>
}

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
    pending: number
    failures: number
    sizeBytes: number
    /** Where a damaged file was moved since the start; null where there was none. */
    movedAside: string | null
  }
}

export interface StatisticsParts {
  readonly limiter: RuleLimiter
  readonly tally: Tally
  readonly slots: TallySlots
  readonly calendar: Calendar
  /** Highest usage of any key of a rule as a share of its limit. */
  readonly utilizationOf: (rule: CompiledRule) => number
}

export function statistics(parts: StatisticsParts): Statistics {
  const { limiter, tally, calendar } = parts
  const view = tally.view()
  const health = tally.health()
  return {
    generatedAt: iso(view.atMs),
    scope: 'instance',
    timeZone: calendar.timeZone,
    weekStartsOn: calendar.weekStartsOn,
    since: iso(tally.archive.sinceMs),
    totals: requestCounts(view.totals),
    windows: windowsOf(view, requestCounts),
    rules: limiter.rules.map((rule) => ruleStatistics(rule, view, parts)),
    store: { kind: limiter.store.kind, degraded: false },
    persistence: {
      path: tally.archive.path,
      lastFlushAt: health.lastFlushAtMs === null ? null : iso(health.lastFlushAtMs),
      pending: tally.pendingRequests(),
      failures: health.failedCount,
      sizeBytes: tally.archive.sizeBytes,
      movedAside: tally.archive.movedAside,
    },
  }
}

function ruleStatistics(
  rule: CompiledRule,
  view: TallyView,
  { limiter, slots, utilizationOf }: StatisticsParts,
): RuleStatistics {
  const keys = limiter.keyCounts(rule)
  const countsOf = (counts: Float64Array): VerdictCounts => {
    const entries = verdicts.map((verdict, index) => [
      verdict,
      counts[slots.ofVerdict(rule.index, index)] ?? 0,
    ])
    return Object.fromEntries(entries) as VerdictCounts
  }
  return {
    name: rule.name,
    function: rule.function,
    key: rule.key,
    algorithm: rule.algorithm.name,
    limit: shownLimit(rule),
    windowMs: rule.windowMs,
    mode: rule.mode,
    strict: rule.strict,
    trackedKeys: keys.tracked,
    evictedKeys: keys.evictedLive,
    peakUtilization: utilizationOf(rule),
    totals: countsOf(view.totals),
    windows: windowsOf(view, countsOf),
  }
}

function requestCounts(counts: Float64Array): RequestCounts {
  const byOutcome = Object.fromEntries(
    outcomes.map((outcome, index) => [outcome, counts[index] ?? 0]),
  ) as Record<Outcome, number>
  const requests = Object.values(byOutcome).reduce((sum, count) => sum + count, 0)
  return { requests, ...byOutcome }
}

function windowsOf<Counts extends object>(
  view: TallyView,
  countsOf: (counts: Float64Array) => Counts,
): Windows<Counts> {
  const shown = ({ startMs, endMs, counts }: WindowCounts): Windowed<Counts> => ({
    start: iso(startMs),
    end: iso(endMs),
    ...countsOf(counts),
  })
  const entries = windowKinds.map((kind) => {
    const { current, previous } = view.windows[kind]
    return [kind, { current: shown(current), previous: shown(previous) }]
  })
  return Object.fromEntries(entries) as Windows<Counts>
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString()
}

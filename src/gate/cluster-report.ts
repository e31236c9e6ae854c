/*
 * What this process reports of one gate to the primary of its cluster. Everything that can be read at once
 * is read in one go, so that a report is of one instant; who would have to wait for a database gets a
 * moment, and is left out of that report after it.
 */
import { ruleFigures } from '../admin/figures.js'
import { topKeysMax } from '../cluster/merge.js'
import { isLasting } from '../cluster/merge-metrics.js'
import type {
  Lasting,
  Passing,
  Report,
  ReportedMetric,
  Row,
  TallyReport,
  UnsavedReport,
} from '../cluster/report.js'
import type { Clock } from '../core/clock.js'
import { windowKinds } from '../core/windows.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { Exposition } from '../metrics/prometheus.js'
import { within } from '../sqlite/within.js'
import type { WindowDelta } from '../tally/archive.js'
import type { Calendar } from '../tally/calendar.js'
import type { ExactRow } from '../tally/large-counts.js'
import { addInto } from '../tally/slots.js'
import { shownWindows } from '../tally/tally.js'
import type { Counting } from './counting.js'

export interface ClusterReportParts {
  readonly limiter: RuleLimiter
  readonly counting: Pick<Counting, 'tally' | 'slots' | 'recorder'>
  readonly calendar: Calendar
  readonly clock: Clock
  readonly exposition: Exposition
}

/** Less than the primary waits. */
const sourcePatienceMs = 250

/** What is to outlive this process; never rejects. */
export function lastingOf(parts: ClusterReportParts): Promise<Lasting> {
  const known = sumsOf(parts)
  return settled(parts.exposition.read(isLasting)).then((metrics) => ({ ...known, metrics }))
}

/** Everything; never rejects. */
export async function reportOf(parts: ClusterReportParts): Promise<Report> {
  const sums = sumsOf(parts)
  const passing = passingOf(parts)
  const metrics = await settled(parts.exposition.read(() => true))
  return {
    lasting: { ...sums, metrics: metrics.filter(isLasting) },
    passing: { ...passing, metrics: metrics.filter((metric) => !isLasting(metric)) },
  }
}

export function rowOf({ counts, large }: ExactRow): Row {
  if (large === undefined) return { counts: [...counts] }
  const digits = [...large].map(([slot, exact]): [number, string] => [slot, String(exact)])
  return { counts: [...counts], large: digits }
}

function sumsOf({ limiter, counting: { tally } }: ClusterReportParts): Omit<Lasting, 'metrics'> {
  return {
    tally: tally.archive.shared === undefined ? wholeTally(tally) : null,
    failures: tally.health().failedCount,
    lost: tally.lostRequests,
    evictedKeys: limiter.rules.map((rule) => limiter.keyCounts(rule).evictedLive),
  }
}

function passingOf(parts: ClusterReportParts): Omit<Passing, 'metrics'> {
  const { limiter, counting, clock } = parts
  const { tally, recorder } = counting
  const nowMs = clock.monotonicMs()
  return {
    keySpace: limiter.keySpace,
    rules: limiter.rules.map((rule) => ruleFigures(rule, { limiter, recorder }, nowMs, topKeysMax)),
    unsaved: unsavedOf(parts),
    lastFlushAtMs: tally.health().lastFlushAtMs,
    pending: tally.pendingRequests(),
  }
}

/** Of an archive that nobody else adds to: everything that it shows. */
function wholeTally(tally: Counting['tally']): TallyReport {
  const view = tally.view()
  return {
    sinceMs: tally.archive.sinceMs,
    totals: rowOf({ counts: view.totals, large: view.largeTotals }),
    windows: windowKinds.flatMap((window) => {
      const { current, previous } = view.windows[window]
      return [current, previous].map((each) => ({
        window,
        startMs: each.startMs,
        ...rowOf(each),
      }))
    }),
  }
}

/** Of a shared archive: what it may lack, and how to know whether it does. */
function unsavedOf(parts: ClusterReportParts): UnsavedReport[] {
  const { tally } = parts.counting
  const { shared } = tally.archive
  if (shared === undefined) return []
  const { writer, sequence } = shared
  const { sending, pending } = tally.unsaved()
  const batches = [
    { sequence, deltas: sending },
    { sequence: sequence + 1, deltas: pending },
  ]
  return batches
    .filter(({ deltas }) => deltas.length > 0)
    .map((batch) => ({ writer, sequence: batch.sequence, ...waitingTally(parts, batch.deltas) }))
}

/** Of thousands of windows that may wait for a failing archive, those that are shown. */
function waitingTally(
  { counting: { tally, slots }, calendar, clock }: ClusterReportParts,
  deltas: readonly WindowDelta[],
): { requests: number; tally: TallyReport } {
  const refs = shownWindows(calendar, clock.wallMs())
  const totals = slots.blank()
  for (const { window, counts } of deltas) if (window === 'week') addInto(totals, counts)
  const windows = deltas
    .filter(({ window, startMs }) =>
      refs.some((ref) => ref.window === window && ref.startMs === startMs),
    )
    .map(({ window, startMs, counts }) => ({ window, startMs, counts: [...counts] }))
  return {
    requests: slots.requestsIn(totals),
    tally: { sinceMs: tally.archive.sinceMs, totals: { counts: [...totals] }, windows },
  }
}

/** Those that are there in time; a metric that cannot be read must not keep back all others. */
async function settled(reading: readonly Promise<ReportedMetric>[]): Promise<ReportedMetric[]> {
  const waited = reading.map((metric) => within(metric, sourcePatienceMs).catch(() => 'late'))
  const read = await Promise.all(waited)
  return read.flatMap((metric) => (typeof metric === 'string' ? [] : [metric]))
}

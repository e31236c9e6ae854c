/*
 * The tallies of all workers as of one instant. With a database: what is stored, read once for all, and of
 * each worker what it had not stored when it was read; batches have numbers, so nothing is left out or added
 * twice, whenever it is written. Without one: what each has, and what the dead had.
 */
import { addRows, mergeTallies } from '../cluster/merge-tallies.js'
import type { Merged, Row, TallyReport } from '../cluster/report.js'
import { windowKinds } from '../core/windows.js'
import { within } from '../sqlite/within.js'
import type { SharedArchive, StoredCounts, WindowRef } from '../tally/archive.js'
import type { Calendar, Span } from '../tally/calendar.js'
import type { ExactRow } from '../tally/large-counts.js'
import type { TallySlots } from '../tally/slots.js'
import { shownWindows, type Tally, type TallyView, type WindowCounts } from '../tally/tally.js'
import { rowOf } from './cluster-report.js'

export interface ClusterTallyParts {
  readonly tally: Tally
  readonly slots: TallySlots
  readonly calendar: Calendar
}

export interface ClusterTally {
  readonly sinceMs: number
  readonly view: TallyView
  /** Requests that are not in the database yet. */
  readonly pending: number
}

/** How long an answer waits for the database; then what it held last must do. */
const patienceMs = 500

export async function clusterTally(
  merged: Merged,
  parts: ClusterTallyParts,
  atMs: number,
): Promise<ClusterTally> {
  const { shared, sinceMs } = parts.tally.archive
  if (shared === undefined) {
    const sum = merged.tally ?? { sinceMs, totals: { counts: [] }, windows: [] }
    return { sinceMs: sum.sinceMs, view: viewOf(sum, parts, atMs), pending: merged.pending }
  }
  const writers = merged.unsaved.map(({ writer }) => writer)
  const { stored, sequences } = await readStored(shared, writers, parts, atMs)
  const missing = merged.unsaved.filter(({ sequence }, index) => sequence > (sequences[index] ?? 0))
  const sum = mergeTallies([stored, ...missing.map(({ tally }) => tally)]) ?? stored
  const pending = missing.reduce((requests, each) => requests + each.requests, 0)
  return { sinceMs, view: viewOf(sum, parts, atMs), pending }
}

async function readStored(
  shared: SharedArchive,
  writers: readonly string[],
  { tally, calendar }: ClusterTallyParts,
  atMs: number,
): Promise<{ stored: TallyReport; sequences: readonly number[] }> {
  const { sinceMs } = tally.archive
  const refs = shownWindows(calendar, atMs)
  // It shows in the flushes, which meet the same fault and report it.
  const read = await within(shared.readWith(refs, writers), patienceMs).catch(() => 'late' as const)
  if (read === 'late') {
    const { counts, refs: knownRefs } = tally.stored
    return { stored: storedTally(counts, knownRefs, sinceMs), sequences: [] }
  }
  return { stored: storedTally(read.stored, refs, sinceMs), sequences: read.sequences }
}

function storedTally(
  { totals, windows, large }: StoredCounts,
  refs: readonly WindowRef[],
  sinceMs: number,
): TallyReport {
  return {
    sinceMs,
    totals: rowOf({ counts: totals, large: large?.[0] }),
    windows: refs.flatMap(({ window, startMs }, index) => {
      const counts = windows[index]
      if (counts === undefined) return []
      return { window, startMs, ...rowOf({ counts, large: large?.[index + 1] }) }
    }),
  }
}

function viewOf(
  { totals, windows }: TallyReport,
  { slots, calendar }: ClusterTallyParts,
  atMs: number,
): TallyView {
  const blank: Row = { counts: [...slots.blank()] }
  const exact = (row: Row | undefined) => exactRowOf(addRows([blank, row ?? blank]))
  const counted = (window: string, span: Span): WindowCounts => {
    const found = windows.find((each) => each.window === window && each.startMs === span.startMs)
    return { startMs: span.startMs, endMs: span.endMs, ...exact(found) }
  }
  const entries = windowKinds.map((kind) => {
    const current = calendar.spanOf(kind, atMs)
    const previous = calendar.spanOf(kind, current.startMs - 1)
    return [kind, { current: counted(kind, current), previous: counted(kind, previous) }]
  })
  const sum = exact(totals)
  return {
    atMs,
    totals: sum.counts,
    largeTotals: sum.large,
    windows: Object.fromEntries(entries) as TallyView['windows'],
  }
}

function exactRowOf({ counts, large }: Row): ExactRow {
  const row = { counts: Float64Array.from(counts) }
  if (large === undefined) return row
  return { ...row, large: new Map(large.map(([slot, digits]) => [slot, BigInt(digits)])) }
}

/*
 * Tallies of several processes added up, exactly: what a double does not hold is added as big integers.
 * Pure, over rows as they pass between processes.
 */
import { windowKinds } from '../core/windows.js'
import type { Row, TallyReport, WindowReport } from './report.js'

/** A row of the slots that the longest has. */
export function addRows(rows: readonly Row[]): Row {
  const slotCount = Math.max(0, ...rows.map(({ counts }) => counts.length))
  const counts = Array.from({ length: slotCount }, (_, slot) =>
    rows.reduce((sum, row) => sum + (row.counts[slot] ?? 0), 0),
  )
  const large = counts.flatMap((count, slot): [number, string][] => {
    if (count <= Number.MAX_SAFE_INTEGER) return []
    const exact = rows.reduce((sum, row) => sum + exactAt(row, slot), 0n)
    return exact > Number.MAX_SAFE_INTEGER ? [[slot, String(exact)]] : []
  })
  return large.length === 0 ? { counts } : { counts, large }
}

/** null where there are none. */
export function mergeTallies(tallies: readonly TallyReport[]): TallyReport | null {
  if (tallies.length === 0) return null
  const windows = new Map<string, WindowReport[]>()
  for (const each of tallies.flatMap((tally) => tally.windows)) {
    const name = `${each.window} ${each.startMs}`
    windows.set(name, [...(windows.get(name) ?? []), each])
  }
  return {
    sinceMs: Math.min(...tallies.map(({ sinceMs }) => sinceMs)),
    totals: addRows(tallies.map(({ totals }) => totals)),
    windows: [...windows.values()].flatMap((same) => {
      const [first] = same
      if (first === undefined) return []
      return { window: first.window, startMs: first.startMs, ...addRows(same) }
    }),
  }
}

/** The same without windows that are no longer shown: nobody asks for more than two of a kind. */
export function newestOf(tally: TallyReport): TallyReport {
  const windows = windowKinds.flatMap((kind) =>
    tally.windows
      .filter(({ window }) => window === kind)
      .toSorted((a, b) => b.startMs - a.startMs)
      .slice(0, 2),
  )
  return { ...tally, windows }
}

function exactAt({ counts, large }: Row, slot: number): bigint {
  const digits = large?.find(([at]) => at === slot)?.[1]
  return digits === undefined ? BigInt(counts[slot] ?? 0) : BigInt(digits)
}

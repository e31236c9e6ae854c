/*
 * Rows of counts as JSON shows them: by name, whole, windows with their bounds as ISO times. A count is a
 * number up to 2^53 − 1 and its digits beyond.
 */
import { outcomes, verdicts, type Outcome, type Verdict } from '../core/decision.js'
import type { CompiledRule } from '../core/rule.js'
import { windowKinds, type WindowKind } from '../core/windows.js'
import { countOf, exactAt, type Count, type ExactRow } from '../tally/large-counts.js'
import type { TallySlots } from '../tally/slots.js'
import type { TallyView, WindowCounts } from '../tally/tally.js'

export type RequestCounts = { requests: Count } & Record<Outcome, Count>
export type VerdictCounts = Record<Verdict, Count>

/** A calendar window, [start, end) as ISO times, and what was counted in it. */
export type Windowed<Counts> = { start: string; end: string } & Counts
export type Windows<Counts> = Record<
  WindowKind,
  { current: Windowed<Counts>; previous: Windowed<Counts> }
>

export function requestCounts(row: ExactRow): RequestCounts {
  const exact = outcomes.map((_, index) => exactAt(row, index))
  const sum = exact.reduce((requests, count) => requests + count, 0n)
  const entries = outcomes.map((outcome, index) => [outcome, countOf(exact[index] ?? 0n)])
  return { requests: countOf(sum), ...Object.fromEntries(entries) } as RequestCounts
}

export function verdictCounts(row: ExactRow, rule: CompiledRule, slots: TallySlots): VerdictCounts {
  const entries = verdicts.map((verdict, index) => [
    verdict,
    countOf(exactAt(row, slots.ofVerdict(rule.index, index))),
  ])
  return Object.fromEntries(entries) as VerdictCounts
}

export function totalsOf({ totals, largeTotals }: TallyView): ExactRow {
  return { counts: totals, large: largeTotals }
}

export function windowsOf<Counts extends object>(
  view: TallyView,
  countsOf: (row: ExactRow) => Counts,
): Windows<Counts> {
  const shown = (window: WindowCounts): Windowed<Counts> => ({
    start: iso(window.startMs),
    end: iso(window.endMs),
    ...countsOf(window),
  })
  const entries = windowKinds.map((kind) => {
    const { current, previous } = view.windows[kind]
    return [kind, { current: shown(current), previous: shown(previous) }]
  })
  return Object.fromEntries(entries) as Windows<Counts>
}

export function iso(timeMs: number): string {
  return new Date(timeMs).toISOString()
}

/*
 * The stored tallies as a series: every window of a kind that overlaps [from, to), with zeros where nothing
 * was counted; what is stored, and what is not yet, to the last request.
 */
import { outcomes, verdicts } from '../core/decision.js'
import { shown } from '../core/errors.js'
import type { CompiledRule } from '../core/rule.js'
import { windowKinds, type WindowKind } from '../core/windows.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { Clock } from '../core/clock.js'
import type { Calendar, Span } from '../tally/calendar.js'
import { sumOf, type ExactRow } from '../tally/large-counts.js'
import type { TallySlots } from '../tally/slots.js'
import type { Tally } from '../tally/tally.js'
import { Refusal } from './answers.js'
import { readQuery, ruleNamed } from './asked.js'
import { csvOf } from './csv.js'
import { readMoment } from './moments.js'
import { patiently } from './patience.js'
import {
  iso,
  requestCounts,
  verdictCounts,
  type RequestCounts,
  type VerdictCounts,
} from './shown-counts.js'

export interface HistoryParts {
  readonly limiter: RuleLimiter
  readonly tally: Tally
  readonly slots: TallySlots
  readonly calendar: Calendar
  readonly clock: Clock
}

export type Point = { start: string; end: string; label: string } & (RequestCounts | VerdictCounts)

export interface Series {
  window: WindowKind
  timeZone: string
  /** null for requests. */
  rule: string | null
  points: Point[]
}

/** What was asked for, made ready. */
interface Asked {
  readonly window: WindowKind
  readonly rule: CompiledRule | null
  readonly spans: readonly Span[]
}

const pointCountMax = 5_000

/** How many windows are shown where no beginning is said, the current one among them. */
const usualCounts: Readonly<Record<WindowKind, number>> = {
  minute: 60,
  hour: 48,
  day: 30,
  week: 26,
}

/** Answers `GET /admin/stats/history`. */
export async function history(url: string, parts: HistoryParts): Promise<Series> {
  const { window, rule, spans } = readAsked(url, parts)
  const [fromMs, toMs] = [spans[0]?.startMs ?? 0, spans.at(-1)?.endMs ?? 0]
  const stored = await patiently(() => parts.tally.history(window, fromMs, toMs))
  const counted = new Map<number, ExactRow>()
  for (const row of stored) {
    // By where it begins: under another time zone windows began elsewhere.
    const { startMs } = parts.calendar.spanOf(window, row.startMs)
    const known = counted.get(startMs)
    counted.set(startMs, known === undefined ? row : sumOf(row, known.counts))
  }
  const blank = { counts: parts.slots.blank() }
  const points = spans.map(({ startMs, endMs }) => {
    const row = counted.get(startMs) ?? blank
    return {
      start: iso(startMs),
      end: iso(endMs),
      label: parts.calendar.labelOf(window, startMs),
      ...(rule === null ? requestCounts(row) : verdictCounts(row, rule, parts.slots)),
    }
  })
  return { window, timeZone: parts.calendar.timeZone, rule: rule?.name ?? null, points }
}

export function historyCsv({ rule, points }: Series): string {
  const counts = rule === null ? ['requests', ...outcomes] : verdicts
  const names = ['start', 'end', 'label', ...counts]
  return csvOf(
    names,
    points.map((point) => names.map((name) => point[name as keyof Point])),
  )
}

function readAsked(url: string, parts: HistoryParts): Asked {
  const { limiter, calendar, clock } = parts
  const asked = readQuery(url, ['window', 'from', 'to', 'rule'])
  const window = windowNamed(asked.window ?? 'hour')
  const rule = asked.rule === undefined ? null : ruleNamed(limiter, asked.rule)
  const toMs =
    asked.to === undefined
      ? calendar.spanOf(window, clock.wallMs()).endMs
      : readMoment('to', asked.to, calendar)
  const fromMs =
    asked.from === undefined
      ? usualStart(window, toMs, parts)
      : readMoment('from', asked.from, calendar)
  if (!(fromMs < toMs)) {
    throw new Refusal(
      400,
      `from must be before to: received ${iso(fromMs)} and ${iso(toMs)}` +
        (asked.to === undefined ? ', the end of the current window' : ''),
    )
  }
  checkCount(window, fromMs, toMs, parts)
  return { window, rule, spans: [...calendar.spansIn(window, fromMs, toMs)] }
}

function windowNamed(name: string): WindowKind {
  const window = windowKinds.find((kind) => kind === name)
  if (window !== undefined) return window
  throw new Refusal(400, `window must be one of ${windowKinds.join(', ')}: received ${shown(name)}`)
}

function usualStart(window: WindowKind, toMs: number, { calendar }: HistoryParts): number {
  let { startMs } = calendar.spanOf(window, toMs - 1)
  for (let count = 1; count < usualCounts[window]; count++) {
    startMs = calendar.spanOf(window, startMs - 1).startMs
  }
  return startMs
}

function checkCount(
  window: WindowKind,
  fromMs: number,
  toMs: number,
  { calendar }: HistoryParts,
): void {
  const count = calendar.countIn(window, fromMs, toMs)
  if (count <= pointCountMax) return
  const coarser = windowKinds
    .slice(windowKinds.indexOf(window) + 1)
    .map((kind) => ({ kind, count: calendar.countIn(kind, fromMs, toMs) }))
    .find((each) => each.count <= pointCountMax)
  const advice =
    coarser === undefined
      ? 'ask for a shorter span'
      : `window=${coarser.kind} gives ${coarser.count}, or ask for a shorter span`
  throw new Refusal(
    400,
    `from, to and window must make at most ${pointCountMax} points: received a span of ${count} ` +
      `with window=${window}; ${advice}`,
  )
}

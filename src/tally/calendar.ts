/*
 * The minutes, hours, days and weeks of a time zone, in which requests are tallied. Windows of a kind never
 * overlap and leave no gap; where they begin and end is said in bounds.ts, how they are called in labels.ts.
 *
 * Bounds are computed once for a window: the spans asked for last are kept, a few of each kind, so that
 * asking again within one is two comparisons. Computing one costs a microsecond, or some ten where the
 * zone has not been asked about these days yet.
 */
import { shown, TallygateError } from '../core/errors.js'
import type { WindowKind } from '../core/windows.js'
import { boundsOf, lengthsMs, type Span } from './bounds.js'
import { labelAt } from './labels.js'
import type { Zone } from './zone.js'
import { zoneNamed } from './zone-name.js'

export type { Span } from './bounds.js'

export const weekdays = ['monday', 'saturday', 'sunday'] as const
export type Weekday = (typeof weekdays)[number]

export interface Calendar {
  readonly timeZone: string
  readonly weekStartsOn: Weekday
  /** The window of a kind that a time lies in. */
  spanOf(kind: WindowKind, timeMs: number): Span
  /** How people name that window: `2026-08-26T05:19+02:00`, `2026-08-26`, `2026-W35`; no two alike. */
  labelOf(kind: WindowKind, timeMs: number): string
  /** Each window that overlaps [from, to), in order. */
  spansIn(kind: WindowKind, fromMs: number, toMs: number): Iterable<Span>
  /** How many those are, for whoever has a limit to them: exactly up to 10,000, beyond that about. */
  countIn(kind: WindowKind, fromMs: number, toMs: number): number
}

const dayMs = 86_400_000

/** The first Monday, Saturday and Sunday since the epoch, which was a Thursday. */
const anchorsMs = { monday: 4 * dayMs, saturday: 2 * dayMs, sunday: 3 * dayMs } as const

/** Less than what a Date can hold by so much that every bound is one, and every look for it. */
const timeMsMax = 8.64e15 - 14 * dayMs

const exactCountMax = 10_000

/** A statistic asks for the current window and the one before, by turns. */
const recentMax = 4

/**
 * @param timeZone a name of the IANA database, such as Europe/Berlin.
 * @throws TallygateError for a zone or weekday that is unknown.
 */
export function createCalendar(timeZone = 'UTC', weekStartsOn: Weekday = 'monday'): Calendar {
  const zone = zoneNamed(timeZone)
  if (!weekdays.includes(weekStartsOn)) {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FIELD',
      `Cannot keep tallies: weekStartsOn must be monday, saturday or sunday: ` +
        `received ${shown(weekStartsOn)}`,
    )
  }
  return new ZoneCalendar(zone, weekStartsOn)
}

class ZoneCalendar implements Calendar {
  readonly timeZone: string
  readonly weekStartsOn: Weekday
  readonly #zone: Zone
  readonly #anchorMs: number
  /** The last one first. */
  readonly #recent: Readonly<Record<WindowKind, Span[]>>

  constructor(zone: Zone, weekStartsOn: Weekday) {
    this.timeZone = zone.name
    this.weekStartsOn = weekStartsOn
    this.#zone = zone
    this.#anchorMs = anchorsMs[weekStartsOn]
    this.#recent = { minute: [], hour: [], day: [], week: [] }
  }

  spanOf(kind: WindowKind, timeMs: number): Span {
    const last = this.#recent[kind][0]
    return last !== undefined && holds(last, timeMs) ? last : this.#recall(kind, timeMs)
  }

  /** Finds a span among the recent ones or computes it, and puts it in front. */
  #recall(kind: WindowKind, timeMs: number): Span {
    const recent = this.#recent[kind]
    const span = recent.find((known) => holds(known, timeMs)) ?? this.#compute(kind, timeMs)
    const others = recent.filter((known) => known !== span)
    recent.splice(0, recentMax, span, ...others.slice(0, recentMax - 1))
    return span
  }

  #compute(kind: WindowKind, timeMs: number): Span {
    // What no Date can hold counts as the nearest time that is sure to be one.
    const wholeMs = Math.floor(Math.min(Math.max(timeMs, -timeMsMax), timeMsMax))
    if (Number.isNaN(wholeMs)) return { startMs: NaN, endMs: NaN }
    return boundsOf(this.#zone, this.#anchorMs, kind, wholeMs)
  }

  labelOf(kind: WindowKind, timeMs: number): string {
    const { startMs } = this.spanOf(kind, timeMs)
    return labelAt(this.#zone, this.#anchorMs, kind, startMs)
  }

  *spansIn(kind: WindowKind, fromMs: number, toMs: number): Iterable<Span> {
    if (fromMs >= toMs) return
    let span = this.spanOf(kind, fromMs)
    while (span.startMs < toMs) {
      yield span
      const next = this.spanOf(kind, span.endMs)
      if (next.startMs < span.endMs) return
      span = next
    }
  }

  countIn(kind: WindowKind, fromMs: number, toMs: number): number {
    const about = (toMs - fromMs) / lengthsMs[kind]
    if (about > exactCountMax) return Math.ceil(about)
    let count = 0
    for (const _ of this.spansIn(kind, fromMs, toMs)) count++
    return count
  }
}

function holds({ startMs, endMs }: Span, timeMs: number): boolean {
  return timeMs >= startMs && timeMs < endMs
}

/*
 * Where minutes, hours, days and weeks begin and end. Windows of a kind never overlap and leave no gap; an
 * end is the start of the next. UTC only as yet, where each has a fixed length: a zone with daylight
 * saving brings days of 23 and 25 hours, and the interface is made for them.
 */
import { shown, TallygateError } from '../core/errors.js'
import type { WindowKind } from '../core/windows.js'

/** A half-open span, [start, end), in milliseconds since the epoch. */
export interface Span {
  readonly startMs: number
  readonly endMs: number
}

export const weekdays = ['monday', 'saturday', 'sunday'] as const
export type Weekday = (typeof weekdays)[number]

export interface Calendar {
  readonly timeZone: string
  readonly weekStartsOn: Weekday
  /** The window of a kind that a time lies in. */
  spanOf(kind: WindowKind, timeMs: number): Span
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const lengthsMs = { minute: 60_000, hour: hourMs, day: dayMs, week: 7 * dayMs } as const

/** The first Monday, Saturday and Sunday since the epoch, which was a Thursday. */
const firstStartMs = { monday: 4 * dayMs, saturday: 2 * dayMs, sunday: 3 * dayMs } as const

/**
 * @throws TallygateError for a zone or weekday that is unknown or not supported yet.
 */
export function createCalendar(timeZone = 'UTC', weekStartsOn: Weekday = 'monday'): Calendar {
  if (timeZone !== 'UTC') {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FIELD',
      `Cannot keep tallies: timeZone must be UTC, others are not supported yet: ` +
        `received ${shown(timeZone)}`,
    )
  }
  if (!weekdays.includes(weekStartsOn)) {
    throw new TallygateError(
      'TALLYGATE_CONFIG_FIELD',
      `Cannot keep tallies: weekStartsOn must be monday, saturday or sunday: ` +
        `received ${shown(weekStartsOn)}`,
    )
  }
  return {
    timeZone,
    weekStartsOn,
    spanOf(kind, timeMs) {
      const lengthMs = lengthsMs[kind]
      const anchorMs = kind === 'week' ? firstStartMs[weekStartsOn] : 0
      // Windows begin at whole milliseconds, and sums of whole ones are exact.
      const wholeMs = Math.floor(timeMs)
      // Twice the remainder: that of a time before the anchor is negative.
      const intoMs = (((wholeMs - anchorMs) % lengthMs) + lengthMs) % lengthMs
      return { startMs: wholeMs - intoMs, endMs: wholeMs - intoMs + lengthMs }
    },
  }
}

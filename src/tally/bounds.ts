/*
 * Where the windows of a zone begin and end, from what its clock shows; nothing here is kept.
 *
 *   day    [first instant of its date, first instant of the next date there is)
 *   week   [first instant of its first day, or of the next date there is; the same a week later)
 *   hour   [the clock shows a full hour, or is shifted within one; the next such instant)
 *   minute as the hour
 *
 * A date is written as what UTC's clock would show at its midnight, in milliseconds. Invariants: windows
 * of a kind leave no gap and never overlap, and none crosses the bound of a larger kind.
 */
import type { WindowKind } from '../core/windows.js'
import { offsetMsMax, type Zone } from './zone.js'

/** A half-open span, [start, end), in milliseconds since the epoch. */
export interface Span {
  readonly startMs: number
  readonly endMs: number
}

const dayMs = 86_400_000
const weekMs = 7 * dayMs

/** How long a window is where no clock is shifted. */
export const lengthsMs: Readonly<Record<WindowKind, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: dayMs,
  week: weekMs,
}

/** @param weekAnchorMs a date on which a week begins. @param timeMs a whole number. */
export function boundsOf(zone: Zone, weekAnchorMs: number, kind: WindowKind, timeMs: number): Span {
  if (kind === 'minute' || kind === 'hour') return clockBounds(zone, lengthsMs[kind], timeMs)
  const dateMs = dateAt(zone, timeMs)
  const firstMs = kind === 'day' ? dateMs : weekOf(dateMs, weekAnchorMs)
  return {
    startMs: firstReaching(zone, firstMs),
    endMs: firstReaching(zone, firstMs + lengthsMs[kind]),
  }
}

/** The first date of the week of a date, whether or not that date was ever shown. */
export function weekOf(dateMs: number, weekAnchorMs: number): number {
  return weekAnchorMs + floorTo(dateMs - weekAnchorMs, weekMs)
}

/**
 * The latest date that has begun. Where a clock is set back over midnight that is not the one it shows: a
 * date begins once.
 */
export function dateAt(zone: Zone, timeMs: number): number {
  let dateMs = floorTo(timeMs + zone.offsetAt(timeMs), dayMs)
  while (firstReaching(zone, dateMs + dayMs) <= timeMs) dateMs += dayMs
  return dateMs
}

/** The first instant at which the clock shows `localMs` or more: later where it skips that, not where it repeats it. */
function firstReaching(zone: Zone, localMs: number): number {
  let fromMs = localMs - offsetMsMax
  let offsetMs = zone.offsetAt(fromMs)
  for (const shift of zone.shiftsBetween(fromMs, localMs + offsetMsMax)) {
    if (localMs - offsetMs < shift.atMs) break
    fromMs = shift.atMs
    offsetMs = shift.offsetMs
  }
  return Math.max(fromMs, localMs - offsetMs)
}

function clockBounds(zone: Zone, lengthMs: number, timeMs: number): Span {
  const offsetMs = zone.offsetAt(timeMs)
  let startMs = floorTo(timeMs + offsetMs, lengthMs) - offsetMs
  let endMs = startMs + lengthMs
  for (const { atMs } of zone.shiftsBetween(startMs, endMs)) {
    if (atMs <= timeMs) startMs = atMs
    else endMs = Math.min(endMs, atMs)
  }
  return { startMs, endMs }
}

/** By the remainder, which is exact where a quotient is rounded; doubled for what lies before the epoch. */
function floorTo(valueMs: number, lengthMs: number): number {
  return valueMs - (((valueMs % lengthMs) + lengthMs) % lengthMs)
}

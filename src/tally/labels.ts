/*
 * How people name a window. Minutes and hours carry the offset of their clock, so that an hour that occurs
 * twice has two names, and, where the offset is of whole minutes, Date.parse gives the start back; seconds
 * are shown only where a shift has some.
 * A week is called by the ISO 8601 week of its Thursday, whatever day it begins on: that is the ISO week
 * most of its days lie in.
 *
 *   2026-08-26T05:19+02:00   2026-08-26T05:00+02:00   2026-08-26   2026-W35
 */
import type { WindowKind } from '../core/windows.js'
import { dateAt, weekOf } from './bounds.js'
import type { Zone } from './zone.js'

const dayMs = 86_400_000

/** The first Thursday since the epoch, which was one. */
const thursdayMs = 0

/** @param startMs the start of a window of that kind. */
export function labelAt(
  zone: Zone,
  weekAnchorMs: number,
  kind: WindowKind,
  startMs: number,
): string {
  if (kind === 'day') return isoDate(dateAt(zone, startMs))
  if (kind === 'week') return isoWeek(weekOf(dateAt(zone, startMs), weekAnchorMs))
  const offsetMs = zone.offsetAt(startMs)
  const text = new Date(startMs + offsetMs).toISOString()
  return `${text.replace(/(?::00)?\.000Z$/, '')}${offsetText(offsetMs)}`
}

function isoDate(dateMs: number): string {
  return new Date(dateMs).toISOString().slice(0, -'T00:00:00.000Z'.length)
}

/** The year of a week is that of its Thursday, which is in the first week of a year up to its seventh day. */
function isoWeek(firstDateMs: number): string {
  const ownMs = weekOf(firstDateMs + 6 * dayMs, thursdayMs)
  const year = isoDate(ownMs).slice(0, -'-01-01'.length)
  const dayOfYear = (ownMs - new Date(ownMs).setUTCMonth(0, 1)) / dayMs
  return `${year}-W${String(Math.floor(dayOfYear / 7) + 1).padStart(2, '0')}`
}

function offsetText(offsetMs: number): string {
  const text = new Date(Math.abs(offsetMs))
    .toISOString()
    .slice('1970-01-01T'.length, -'.000Z'.length)
  return `${offsetMs < 0 ? '-' : '+'}${text.replace(/:00$/, '')}`
}

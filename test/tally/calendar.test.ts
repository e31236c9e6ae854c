/*
 * The calendar of the tallies in UTC: against the vectors of an independent program, and by what holds of
 * any calendar: windows of a kind follow each other without gap or overlap.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { windowKinds } from '../../src/core/windows.js'
import { createCalendar, weekdays, type Weekday } from '../../src/tally/calendar.js'
import { messageOf } from '../support/units/limits.js'

interface Row {
  timeZone: string
  weekStartsOn: Weekday
  at: number
  day: [number, number]
  week: [number, number]
  dayHours: number
  weekHours: number
}

const file = new URL('../vectors/calendar.json', import.meta.url)
const rows = (JSON.parse(readFileSync(file, 'utf8')) as Row[]).filter(
  ({ timeZone }) => timeZone === 'UTC',
)

describe('the vectors in UTC', () => {
  it('are all there', () => {
    expect(rows.length).toBe(42)
    expect(new Set(rows.map(({ weekStartsOn }) => weekStartsOn)).size).toBe(3)
  })

  it.each(rows)('$weekStartsOn weeks, at $at', ({ weekStartsOn, at, day, week, ...hours }) => {
    const calendar = createCalendar('UTC', weekStartsOn)
    const [dayIs, weekIs] = [calendar.spanOf('day', at), calendar.spanOf('week', at)]
    expect([dayIs.startMs, dayIs.endMs]).toEqual(day)
    expect([weekIs.startMs, weekIs.endMs]).toEqual(week)
    expect((dayIs.endMs - dayIs.startMs) / 3_600_000).toBe(hours.dayHours)
    expect((weekIs.endMs - weekIs.startMs) / 3_600_000).toBe(hours.weekHours)
  })
})

describe('a calendar', () => {
  it('DAT-10: a week begins on Monday at 00:00 UTC, not on a Thursday like the epoch', () => {
    const calendar = createCalendar()
    const monday = Date.parse('2025-06-16T00:00:00Z')
    expect(calendar.spanOf('week', monday).startMs).toBe(monday)
    expect(calendar.spanOf('week', monday - 1).startMs).toBe(Date.parse('2025-06-09T00:00:00Z'))
    expect(calendar.spanOf('week', monday - 1).endMs).toBe(monday)
  })

  it.each([
    ['minute', '2025-06-15T10:20:00.000Z', '2025-06-15T10:21:00.000Z'],
    ['hour', '2025-06-15T10:00:00.000Z', '2025-06-15T11:00:00.000Z'],
    ['day', '2025-06-15T00:00:00.000Z', '2025-06-16T00:00:00.000Z'],
    ['week', '2025-06-09T00:00:00.000Z', '2025-06-16T00:00:00.000Z'],
  ] as const)('a %s is from %s to %s', (kind, start, end) => {
    const span = createCalendar().spanOf(kind, Date.parse('2025-06-15T10:20:59.999Z'))
    expect([new Date(span.startMs).toISOString(), new Date(span.endMs).toISOString()]).toEqual([
      start,
      end,
    ])
  })

  it('has windows of whole milliseconds that hold their time, and follow each other', () => {
    const times = fc.oneof(
      fc.integer({ min: -(10 ** 13), max: 10 ** 13 }),
      fc.double({ min: -1e9, max: 4e12, noNaN: true }),
      fc.constantFrom(0, -1, 0.1, -0.1, 345_600_000, 345_599_999.999),
    )
    fc.assert(
      fc.property(
        times,
        fc.constantFrom(...windowKinds),
        fc.constantFrom(...weekdays),
        (at, kind, on) => {
          const calendar = createCalendar('UTC', on)
          const { startMs, endMs } = calendar.spanOf(kind, at)
          expect(Number.isSafeInteger(startMs) && Number.isSafeInteger(endMs)).toBe(true)
          expect(startMs <= at && at < endMs).toBe(true)
          expect(calendar.spanOf(kind, endMs).startMs === endMs).toBe(true)
          expect(calendar.spanOf(kind, startMs).endMs === endMs).toBe(true)
          expect(calendar.spanOf(kind, startMs - 1).endMs === startMs).toBe(true)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it.each(['Europe/Berlin', 'utc', '', 'Mars/Olympus', null])(
    'refuses the zone %j by name',
    (zone) => {
      const message = messageOf(() => createCalendar(zone as string))
      expect(message).toContain('timeZone must be UTC, others are not supported yet: received')
      expect(message).toContain('(TALLYGATE_CONFIG_FIELD)')
    },
  )

  it.each(['tuesday', 'Monday', '', null])('refuses weeks that begin on %j', (day) => {
    const message = messageOf(() => createCalendar('UTC', day as Weekday))
    expect(message).toContain('weekStartsOn must be monday, saturday or sunday: received')
  })
})

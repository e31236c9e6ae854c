/*
 * The calendar of the tallies: against the vectors of an independent program, the cases of date windows by
 * their id, how windows are listed, counted and called, and what holds of UTC, where nothing is shifted.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { windowKinds, type WindowKind } from '../../src/core/windows.js'
import { createCalendar, weekdays, type Weekday } from '../../src/tally/calendar.js'
import { messageOf } from '../support/units/limits.js'
import { isoSpan } from '../support/units/spans.js'

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
const rows = JSON.parse(readFileSync(file, 'utf8')) as Row[]
const zones = [...new Set(rows.map(({ timeZone }) => timeZone))]

describe('the vectors', () => {
  it('are all there', () => {
    expect([rows.length, zones.length]).toEqual([708, 16])
    expect(new Set(rows.map(({ weekStartsOn }) => weekStartsOn)).size).toBe(3)
  })

  it.each(zones)('in %s', (zone) => {
    const calendars = new Map(weekdays.map((on) => [on, createCalendar(zone, on)]))
    const judged = rows.filter(({ timeZone }) => timeZone === zone)
    const answers = judged.map(({ timeZone, weekStartsOn, at }) => {
      const calendar = calendars.get(weekStartsOn) ?? createCalendar(timeZone, weekStartsOn)
      const [day, week] = [calendar.spanOf('day', at), calendar.spanOf('week', at)]
      return {
        timeZone: calendar.timeZone,
        weekStartsOn,
        at,
        day: [day.startMs, day.endMs],
        week: [week.startMs, week.endMs],
        dayHours: (day.endMs - day.startMs) / 3_600_000,
        weekHours: (week.endMs - week.startMs) / 3_600_000,
      }
    })
    expect(answers).toEqual(judged)
  })
})

describe('the cases', () => {
  it('DAT-01: a day of 23 hours ends where the next begins', () => {
    const berlin = createCalendar('Europe/Berlin')
    const hit = Date.parse('2025-03-30T22:00:00.000Z')
    const day = berlin.spanOf('day', hit - 1)
    expect(isoSpan(day)).toBe('2025-03-29T23:00Z 2025-03-30T22:00Z')
    expect(day.endMs - day.startMs).toBe(82_800_000)
    expect(berlin.labelOf('day', hit - 1)).toBe('2025-03-30')
    expect(berlin.labelOf('day', hit)).toBe('2025-03-31')
  })

  it('DAT-03: the hour that occurs twice is two windows with two names', () => {
    const berlin = createCalendar('Europe/Berlin')
    const hits = [Date.parse('2025-10-26T00:30Z'), Date.parse('2025-10-26T01:30Z')]
    expect(hits.map((hit) => isoSpan(berlin.spanOf('hour', hit)))).toEqual([
      '2025-10-26T00:00Z 2025-10-26T01:00Z',
      '2025-10-26T01:00Z 2025-10-26T02:00Z',
    ])
    expect(hits.map((hit) => berlin.labelOf('hour', hit))).toEqual([
      '2025-10-26T02:00+02:00',
      '2025-10-26T02:00+01:00',
    ])
    const { startMs, endMs } = berlin.spanOf('day', hits[0] ?? 0)
    expect([...berlin.spansIn('hour', startMs, endMs)]).toHaveLength(25)
  })

  it.each([
    ['Asia/Beirut', '2025-03-30', '2025-03-29T22:00Z', '01:00+03:00'],
    ['America/Santiago', '2025-09-07', '2025-09-07T04:00Z', '01:00-03:00'],
    ['Africa/Cairo', '2025-04-25', '2025-04-24T22:00Z', '01:00+03:00'],
  ])('DAT-04: in %s the day %s begins where midnight is skipped', (zone, date, start, clock) => {
    const calendar = createCalendar(zone)
    const startMs = Date.parse(start)
    const day = calendar.spanOf('day', startMs + 3_600_000)
    expect(day).toEqual({ startMs, endMs: startMs + 82_800_000 })
    expect(calendar.labelOf('day', startMs)).toBe(date)
    expect(calendar.labelOf('hour', startMs)).toBe(`${date}T${clock}`)
    expect(calendar.spanOf('day', startMs - 1).endMs).toBe(startMs)
  })

  it.each([
    ['Asia/Kathmandu', '2025-06-15T10:15Z', '2025-06-14T18:15Z', '2025-06-15T16:00+05:45'],
    ['Asia/Kolkata', '2025-06-15T09:30Z', '2025-06-14T18:30Z', '2025-06-15T15:00+05:30'],
    ['Pacific/Chatham', '2025-06-15T10:15Z', '2025-06-14T11:15Z', '2025-06-15T23:00+12:45'],
  ])('DAT-06: hours and days of %s begin at %s and %s', (zone, hour, day, label) => {
    const calendar = createCalendar(zone)
    const hit = Date.parse('2025-06-15T10:20Z')
    expect(calendar.spanOf('hour', hit).startMs).toBe(Date.parse(hour))
    expect(calendar.spanOf('day', hit).startMs).toBe(Date.parse(day))
    expect(calendar.labelOf('hour', hit)).toBe(label)
  })

  it.each([
    ['2024-12-29', '2024-W52'],
    ['2024-12-30', '2025-W01'],
    ['2021-01-03', '2020-W53'],
    ['2021-01-04', '2021-W01'],
    ['2025-12-29', '2026-W01'],
    ['2027-01-03', '2026-W53'],
    ['2026-12-03', '2026-W49'],
  ])('DAT-08: %s lies in the week %s', (date, label) => {
    const calendar = createCalendar()
    expect(calendar.labelOf('week', Date.parse(date))).toBe(label)
    expect(calendar.labelOf('week', Date.parse(date) + 86_399_999)).toBe(label)
  })

  it('DAT-08: the last and the first day of a year share their week', () => {
    const calendar = createCalendar()
    const weeks = ['2025-12-31', '2026-01-01'].map((day) =>
      calendar.spanOf('week', Date.parse(day)),
    )
    expect(weeks[0]).toEqual(weeks[1])
  })

  it('DAT-10: a week begins on Monday at 00:00 UTC, not on a Thursday like the epoch', () => {
    const calendar = createCalendar()
    const monday = Date.parse('2025-06-16T00:00:00Z')
    expect(calendar.spanOf('week', monday).startMs).toBe(monday)
    expect(calendar.spanOf('week', monday - 1).startMs).toBe(Date.parse('2025-06-09T00:00:00Z'))
    expect(calendar.spanOf('week', monday - 1).endMs).toBe(monday)
  })

  it('DAT-11: an evening in the Americas is today, not the tomorrow of UTC', () => {
    const calendar = createCalendar('America/Los_Angeles')
    const hit = Date.parse('2026-08-26T05:19Z')
    expect(calendar.labelOf('day', hit)).toBe('2026-08-25')
    expect(isoSpan(calendar.spanOf('day', hit))).toBe('2026-08-25T07:00Z 2026-08-26T07:00Z')
  })

  it('DAT-12: the first week of a range holds its first hit, ahead of UTC too', () => {
    const calendar = createCalendar('Europe/Tallinn')
    const [fromMs, toMs] = [
      Date.parse('2025-06-01T00:00+03:00'),
      Date.parse('2025-07-01T00:00+03:00'),
    ]
    const weeks = [...calendar.spansIn('week', fromMs, toMs)]
    const hit = Date.parse('2025-05-31T21:30Z')
    expect(weeks.map(({ startMs, endMs }) => (startMs <= hit && hit < endMs ? 1 : 0))).toEqual([
      1, 0, 0, 0, 0, 0,
    ])
    expect(weeks.map(({ startMs }) => calendar.labelOf('week', startMs))).toEqual(
      [22, 23, 24, 25, 26, 27].map((week) => `2025-W${week}`),
    )
  })
})

describe('a list of windows', () => {
  const berlin = createCalendar('Europe/Berlin')
  const noon = Date.parse('2026-08-26T12:00Z')

  it('has each that overlaps, and none that only touches', () => {
    const starts = (fromMs: number, toMs: number) =>
      [...berlin.spansIn('hour', fromMs, toMs)].map(({ startMs }) => (startMs - noon) / 3_600_000)
    expect(starts(noon, noon + 3_600_000)).toEqual([0])
    expect(starts(noon - 0.5, noon + 3_600_000.5)).toEqual([-1, 0, 1])
    expect(starts(noon + 1, noon + 2)).toEqual([0])
  })

  it.each([
    [noon, noon],
    [noon, noon - 1],
    [NaN, noon],
    [noon, NaN],
    [Infinity, Infinity],
  ])('is empty from %d to %d', (fromMs, toMs) => {
    expect([...berlin.spansIn('day', fromMs, toMs)]).toEqual([])
    expect(berlin.countIn('day', fromMs, toMs)).toBe(0)
  })

  it('ends where times do', () => {
    expect([...berlin.spansIn('week', 8.64e15 - 30 * 86_400_000, Infinity)].length).toBeLessThan(5)
    expect([...berlin.spansIn('week', 8.64e15, Infinity)]).toHaveLength(1)
  })

  it('is counted to the last window, over shifts and skipped dates', () => {
    const apia = createCalendar('Pacific/Apia')
    const [from, to] = [Date.parse('2011-12-29T10:00Z'), Date.parse('2012-01-01T10:00Z')]
    expect(apia.countIn('day', from, to)).toBe(3)
    for (const kind of windowKinds) {
      const [fromMs, toMs] = [noon, noon + 5_000 * lengthsMs[kind]]
      const count = [...berlin.spansIn(kind, fromMs, toMs)].length
      expect(berlin.countIn(kind, fromMs, toMs)).toBe(count)
      // Noon in Berlin is no midnight, so days and weeks begin and end with part of one.
      expect(count).toBe(kind === 'day' || kind === 'week' ? 5_001 : 5_000)
    }
  })

  it('is counted without being made where it is far too long', () => {
    for (const kind of windowKinds) {
      expect(berlin.countIn(kind, -8e15, 8e15)).toBeGreaterThan(5_000)
      expect(berlin.countIn(kind, -Infinity, Infinity)).toBe(Infinity)
      const about = berlin.countIn(kind, noon, noon + 20_000 * lengthsMs[kind])
      expect(Math.abs(about - 20_000)).toBeLessThanOrEqual(2)
    }
  })
})

describe('the name of a window', () => {
  const at = Date.parse('2026-08-26T05:19:30.5Z')

  it.each([
    ['UTC', 'minute', '2026-08-26T05:19+00:00'],
    ['UTC', 'hour', '2026-08-26T05:00+00:00'],
    ['UTC', 'day', '2026-08-26'],
    ['UTC', 'week', '2026-W35'],
    ['America/St_Johns', 'minute', '2026-08-26T02:49-02:30'],
    ['America/St_Johns', 'hour', '2026-08-26T02:00-02:30'],
    ['Pacific/Kiritimati', 'hour', '2026-08-26T19:00+14:00'],
    ['Pacific/Niue', 'day', '2026-08-25'],
  ] as const)('in %s of its %s is %s', (zone, kind, label) => {
    expect(createCalendar(zone).labelOf(kind, at)).toBe(label)
  })

  it.each([
    ['monday', '2026-01-01', '2026-W01'],
    ['monday', '2026-01-04', '2026-W01'],
    ['sunday', '2026-01-03', '2026-W01'],
    ['sunday', '2026-01-04', '2026-W02'],
    ['saturday', '2026-01-02', '2026-W01'],
    ['saturday', '2026-01-03', '2026-W02'],
    ['sunday', '2027-01-02', '2026-W53'],
    ['saturday', '2027-01-02', '2027-W01'],
  ] as const)('with weeks from %s, %s lies in %s: that of its Thursday', (on, date, label) => {
    expect(createCalendar('UTC', on).labelOf('week', Date.parse(date))).toBe(label)
  })
})

describe('in UTC', () => {
  it.each([
    ['minute', '2025-06-15T10:20Z', '2025-06-15T10:21Z'],
    ['hour', '2025-06-15T10:00Z', '2025-06-15T11:00Z'],
    ['day', '2025-06-15T00:00Z', '2025-06-16T00:00Z'],
    ['week', '2025-06-09T00:00Z', '2025-06-16T00:00Z'],
  ] as const)('a %s is from %s to %s', (kind, start, end) => {
    const span = createCalendar().spanOf(kind, Date.parse('2025-06-15T10:20:59.999Z'))
    expect(isoSpan(span)).toBe(`${start} ${end}`)
  })

  it('windows of whole milliseconds hold their time, and have a fixed length', () => {
    const times = fc.oneof(
      fc.integer({ min: -(10 ** 13), max: 10 ** 13 }),
      fc.double({ min: -1e9, max: 4e12, noNaN: true }),
      fc.constantFrom(0, -0, -1, 0.1, -0.1, 345_600_000, 345_599_999.999),
    )
    fc.assert(
      fc.property(
        times,
        fc.constantFrom(...windowKinds),
        fc.constantFrom(...weekdays),
        (at, kind, on) => {
          const { startMs, endMs } = createCalendar('UTC', on).spanOf(kind, at)
          expect(Number.isSafeInteger(startMs) && Number.isSafeInteger(endMs)).toBe(true)
          expect(startMs <= at && at < endMs).toBe(true)
          expect(endMs - startMs).toBe(lengthsMs[kind])
          expect(Object.is(startMs, -0) || Object.is(endMs, -0)).toBe(false)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('a name that means it has its windows', () => {
    for (const name of ['UTC', 'utc', 'Etc/UTC', 'Zulu']) {
      const { startMs, endMs } = createCalendar(name).spanOf('day', 1e12)
      expect([startMs % 86_400_000, endMs - startMs]).toEqual([0, 86_400_000])
    }
  })
})

describe('a window that was asked for', () => {
  it('is kept, and so are some before it', () => {
    const calendar = createCalendar('Europe/Berlin')
    for (const kind of windowKinds) {
      const current = calendar.spanOf(kind, 1e12)
      const previous = calendar.spanOf(kind, current.startMs - 1)
      expect(calendar.spanOf(kind, current.endMs - 0.5)).toBe(current)
      expect(calendar.spanOf(kind, previous.startMs)).toBe(previous)
      expect(calendar.spanOf(kind, current.startMs)).toBe(current)
      expect(calendar.spanOf(kind, current.endMs)).not.toBe(current)
    }
  })
})

describe('weeks', () => {
  it.each(['tuesday', 'Monday', '', null])('do not begin on %j', (day) => {
    const message = messageOf(() => createCalendar('UTC', day as Weekday))
    expect(message).toContain('weekStartsOn must be monday, saturday or sunday: received')
  })
})

const lengthsMs: Readonly<Record<WindowKind, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
}

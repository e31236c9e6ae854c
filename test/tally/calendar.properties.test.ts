/*
 * Every zone that Intl knows, judged by the definition of its windows as the clock on the wall shows them,
 * at random times and around random shifts from 1970 to 2100.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { windowKinds, type WindowKind } from '../../src/core/windows.js'
import { createCalendar, weekdays, type Span, type Weekday } from '../../src/tally/calendar.js'
import { dayMs, localClock, type LocalClock } from '../support/units/local-clock.js'

const zones = Intl.supportedValuesOf('timeZone')
const lengthsMs = { minute: 60_000, hour: 3_600_000, day: dayMs, week: 7 * dayMs }
const weekdayOf = { sunday: 0, monday: 1, saturday: 6 }

interface Moment {
  readonly fromMs: number
  readonly nearMs: number
}

/** A time, or one near the first shift that comes within half a year of it. */
const moments: fc.Arbitrary<Moment> = fc.record({
  fromMs: fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) }),
  nearMs: fc.oneof(
    fc.integer({ min: -27 * 3_600_000, max: 27 * 3_600_000 }),
    fc.constantFrom(0, -1, 1, -0.5, 59_999.5),
  ),
})

function timeOf(clock: LocalClock, { fromMs, nearMs }: Moment): number {
  const [shiftMs = fromMs] = clock.shiftsIn(fromMs, fromMs + 190 * dayMs)
  return shiftMs + nearMs
}

/** A calendar that remembers nothing, so that each answer is computed. */
const fresh = (timeZone: string, weekStartsOn: Weekday, kind: WindowKind, timeMs: number) =>
  createCalendar(timeZone, weekStartsOn).spanOf(kind, timeMs)

/** Why a span is no window by the clock, or null. */
function clockFault(clock: LocalClock, { startMs, endMs }: Span, lengthMs: number): string | null {
  const isBound = (ms: number) =>
    clock.at(ms) % lengthMs === 0 || clock.at(ms) - clock.at(ms - 1) !== 1
  if (!isBound(startMs) || !isBound(endMs)) return 'no bound'
  const [firstMs, lastMs] = [clock.at(startMs), clock.at(endMs - 1)]
  if (lastMs - firstMs !== endMs - 1 - startMs) return 'a shift inside'
  const isOne = Math.floor(firstMs / lengthMs) === Math.floor(lastMs / lengthMs)
  return isOne ? null : 'a full minute or hour inside'
}

/** Why a span is not from the first instant of date `first` or a later one to that of `next`; or null. */
function dateFault(clock: LocalClock, span: Span, first: number, next: number): string | null {
  const { startMs, endMs } = span
  if (clock.dateAt(startMs) < first) return 'begins too early'
  if (clock.datesIn(startMs - 26 * 3_600_000, startMs).some((date) => date >= first)) {
    return 'begins too late'
  }
  if (clock.dateAt(endMs) < next) return 'ends too early'
  return clock.datesIn(startMs, endMs).some((date) => date >= next) ? 'ends too late' : null
}

function faultOf(clock: LocalClock, kind: WindowKind, span: Span, weekStartsOn: Weekday) {
  if (kind === 'minute' || kind === 'hour') return clockFault(clock, span, lengthsMs[kind])
  const date = clock.dateAt(span.startMs)
  if (kind === 'day') return dateFault(clock, span, date, date + 1)
  // The epoch was a Thursday; `date` is the week's first day, or a later one where that was skipped.
  const first = date - ((date + 4 - weekdayOf[weekStartsOn] + 7_000_000) % 7)
  return dateFault(clock, span, first, first + 7)
}

describe('in every zone', () => {
  it('windows are what the clock on the wall says', () => {
    expect(zones.length).toBeGreaterThan(400)
    for (const timeZone of zones) {
      const clock = localClock(timeZone)
      fc.assert(
        fc.property(moments, fc.constantFrom(...weekdays), (moment, on) => {
          const timeMs = timeOf(clock, moment)
          for (const kind of windowKinds) {
            const span = fresh(timeZone, on, kind, timeMs)
            expect(span.startMs <= timeMs && timeMs < span.endMs).toBe(true)
            const fault = faultOf(clock, kind, span, on)
            expect({ timeZone, timeMs, kind, on, fault }).toMatchObject({ fault: null })
          }
        }),
        { numRuns: 2 },
      )
    }
  })

  it('they follow each other, none crosses a larger one, and no two are called the same', () => {
    for (const timeZone of zones) {
      const clock = localClock(timeZone)
      fc.assert(
        fc.property(moments, fc.constantFrom(...weekdays), (moment, on) => {
          // None has been asked for the span that it is asked for next.
          const calendar = createCalendar(timeZone, on)
          const [byStart, byEnd] = [createCalendar(timeZone, on), createCalendar(timeZone, on)]
          const timeMs = Math.floor(timeOf(clock, moment))
          for (const [index, kind] of windowKinds.entries()) {
            const aroundMs = Math.min(3 * lengthsMs[kind], 10 * dayMs)
            const spans = [...calendar.spansIn(kind, timeMs - aroundMs, timeMs + aroundMs)]
            const labels = spans.map(({ startMs }) => calendar.labelOf(kind, startMs))
            const starts = spans.map(({ startMs }) => startMs)
            const ends = spans.map(({ endMs }) => endMs)
            expect(spans.length).toBeGreaterThan(2)
            expect(new Set(labels).size).toBe(spans.length)
            expect(starts.slice(1)).toEqual(ends.slice(0, -1))
            expect(starts.map((startMs) => byStart.spanOf(kind, startMs))).toEqual(spans)
            expect(ends.map((endMs) => byEnd.spanOf(kind, endMs - 1))).toEqual(spans)
            const larger = windowKinds[index + 1]
            if (larger === undefined) continue
            const crossing = spans.find(({ startMs, endMs }) => {
              const around = calendar.spanOf(larger, startMs)
              return startMs < around.startMs || endMs > around.endMs
            })
            expect(crossing).toBeUndefined()
          }
        }),
        { numRuns: 1 },
      )
    }
  })

  it('the label of a minute or hour is its start, where the offset has no seconds', () => {
    fc.assert(
      fc.property(moments, fc.constantFrom(...zones), (moment, timeZone) => {
        const timeMs = timeOf(localClock(timeZone), moment)
        const calendar = createCalendar(timeZone)
        for (const kind of ['minute', 'hour'] as const) {
          const label = calendar.labelOf(kind, timeMs)
          if (/[+-]..:..:..$/.test(label)) continue
          expect(Date.parse(label)).toBe(calendar.spanOf(kind, timeMs).startMs)
        }
      }),
    )
  })

  it('an answer does not depend on what was asked before', () => {
    const near = Date.UTC(2026, 2, 29, 1)
    const asked = fc.array(
      fc.record({
        kind: fc.constantFrom(...windowKinds),
        timeMs: fc.integer({ min: -20, max: 20 }).map((steps) => near + steps * 7_200_000),
      }),
      { minLength: 5, maxLength: 40 },
    )
    fc.assert(
      fc.property(fc.constantFrom('Europe/Berlin', 'UTC', 'Asia/Beirut'), asked, (zone, times) => {
        const calendar = createCalendar(zone)
        for (const { kind, timeMs } of times) {
          expect(calendar.spanOf(kind, timeMs)).toEqual(fresh(zone, 'monday', kind, timeMs))
        }
      }),
    )
  })

  it('no time is too far away: windows hold together, and have a name', () => {
    const far = fc.oneof(
      fc.double({ min: -8.6e15, max: 8.6e15, noNaN: true }),
      fc.constantFrom(Infinity, -Infinity, 1e18, -1e18, 8.64e15, -8.64e15),
    )
    fc.assert(
      fc.property(
        far,
        fc.constantFrom(...zones),
        fc.constantFrom(...windowKinds),
        (at, zone, kind) => {
          const calendar = createCalendar(zone)
          const { startMs, endMs } = calendar.spanOf(kind, at)
          const [start, end] = [new Date(startMs), new Date(endMs)]
          expect([start.getTime(), end.getTime()]).toEqual([startMs, endMs])
          expect(endMs - startMs).toBeGreaterThan(0)
          expect(Math.abs(at) > 8.6e15 || (startMs <= at && at < endMs)).toBe(true)
          expect(calendar.labelOf(kind, at)).not.toBe('')
        },
      ),
    )
  })
})

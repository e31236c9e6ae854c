/*
 * Clocks that are shifted otherwise than by an hour in the night: what each country really did, with the
 * instants worked out by hand from the rules of the time zone database.
 */
import { describe, expect, it } from 'vitest'
import { createCalendar, type Weekday } from '../../src/tally/calendar.js'
import type { WindowKind } from '../../src/core/windows.js'
import { isoSpan } from '../support/units/spans.js'

interface Shown {
  zone: string
  on?: Weekday
  kind: WindowKind
  from: string
  to: string
  /** Each window from one time to the other: label, start, end. */
  windows: string[]
}

/** The windows that overlap a range, as lines. */
function linesOf({ zone, on, kind, from, to }: Shown): string[] {
  const calendar = createCalendar(zone, on)
  return [...calendar.spansIn(kind, Date.parse(from), Date.parse(to))].map(
    (span) => `${calendar.labelOf(kind, span.startMs)}: ${isoSpan(span)}`,
  )
}

const shifts: Record<string, Shown> = {
  'Lord Howe sets back by half an hour: the shift begins an hour of 30 minutes': {
    zone: 'Australia/Lord_Howe',
    kind: 'hour',
    from: '2025-04-05T14:00Z',
    to: '2025-04-05T16:00Z',
    windows: [
      '2025-04-06T01:00+11:00: 2025-04-05T14:00Z 2025-04-05T15:00Z',
      '2025-04-06T01:30+10:30: 2025-04-05T15:00Z 2025-04-05T15:30Z',
      '2025-04-06T02:00+10:30: 2025-04-05T15:30Z 2025-04-05T16:30Z',
    ],
  },
  'Lord Howe sets forward by half an hour: half an hour is left of two': {
    zone: 'Australia/Lord_Howe',
    kind: 'hour',
    from: '2025-10-04T15:00Z',
    to: '2025-10-04T16:30Z',
    windows: [
      '2025-10-05T01:00+10:30: 2025-10-04T14:30Z 2025-10-04T15:30Z',
      '2025-10-05T02:30+11:00: 2025-10-04T15:30Z 2025-10-04T16:00Z',
      '2025-10-05T03:00+11:00: 2025-10-04T16:00Z 2025-10-04T17:00Z',
    ],
  },
  'Troll sets forward by two hours: a day of 22': {
    zone: 'Antarctica/Troll',
    kind: 'day',
    from: '2025-03-30T12:00Z',
    to: '2025-03-31T12:00Z',
    windows: [
      '2025-03-30: 2025-03-30T00:00Z 2025-03-30T22:00Z',
      '2025-03-31: 2025-03-30T22:00Z 2025-03-31T22:00Z',
    ],
  },
  'Troll sets back by two hours: both occur twice': {
    zone: 'Antarctica/Troll',
    kind: 'hour',
    from: '2025-10-25T23:00Z',
    to: '2025-10-26T03:00Z',
    windows: [
      '2025-10-26T01:00+02:00: 2025-10-25T23:00Z 2025-10-26T00:00Z',
      '2025-10-26T02:00+02:00: 2025-10-26T00:00Z 2025-10-26T01:00Z',
      '2025-10-26T01:00+00:00: 2025-10-26T01:00Z 2025-10-26T02:00Z',
      '2025-10-26T02:00+00:00: 2025-10-26T02:00Z 2025-10-26T03:00Z',
    ],
  },
  'Samoa had no 30 December 2011': {
    zone: 'Pacific/Apia',
    kind: 'day',
    from: '2011-12-30T09:00Z',
    to: '2011-12-30T11:00Z',
    windows: [
      '2011-12-29: 2011-12-29T10:00Z 2011-12-30T10:00Z',
      '2011-12-31: 2011-12-30T10:00Z 2011-12-31T10:00Z',
    ],
  },
  'Samoa had a week of six days': {
    zone: 'Pacific/Apia',
    kind: 'week',
    from: '2011-12-30T09:00Z',
    to: '2012-01-02T00:00Z',
    windows: [
      '2011-W52: 2011-12-26T10:00Z 2012-01-01T10:00Z',
      '2012-W01: 2012-01-01T10:00Z 2012-01-08T10:00Z',
    ],
  },
  'Kwajalein had no Saturday, so its week begins with the Sunday': {
    zone: 'Pacific/Kwajalein',
    on: 'saturday',
    kind: 'week',
    from: '1993-08-21T11:00Z',
    to: '1993-08-21T13:00Z',
    windows: [
      '1993-W33: 1993-08-14T12:00Z 1993-08-21T12:00Z',
      '1993-W34: 1993-08-21T12:00Z 1993-08-27T12:00Z',
    ],
  },
  'Asunción skipped midnight': {
    zone: 'America/Asuncion',
    kind: 'day',
    from: '2024-10-06T03:00Z',
    to: '2024-10-06T05:00Z',
    windows: [
      '2024-10-05: 2024-10-05T04:00Z 2024-10-06T04:00Z',
      '2024-10-06: 2024-10-06T04:00Z 2024-10-07T03:00Z',
    ],
  },
  'Asunción set back at midnight: the day before has 25 hours': {
    zone: 'America/Asuncion',
    kind: 'day',
    from: '2024-03-24T02:00Z',
    to: '2024-03-24T05:00Z',
    windows: [
      '2024-03-23: 2024-03-23T03:00Z 2024-03-24T04:00Z',
      '2024-03-24: 2024-03-24T04:00Z 2024-03-25T04:00Z',
    ],
  },
  'Havana has midnight twice: the day begins with the first': {
    zone: 'America/Havana',
    kind: 'day',
    from: '2025-11-02T04:00Z',
    to: '2025-11-02T06:00Z',
    windows: ['2025-11-02: 2025-11-02T04:00Z 2025-11-03T05:00Z'],
  },
  'Havana has midnight twice: two hours': {
    zone: 'America/Havana',
    kind: 'hour',
    from: '2025-11-02T04:00Z',
    to: '2025-11-02T06:00Z',
    windows: [
      '2025-11-02T00:00-04:00: 2025-11-02T04:00Z 2025-11-02T05:00Z',
      '2025-11-02T00:00-05:00: 2025-11-02T05:00Z 2025-11-02T06:00Z',
    ],
  },
  "St. John's set back a minute past midnight: a date that has begun does not begin again": {
    zone: 'America/St_Johns',
    kind: 'day',
    from: '2006-10-29T02:00Z',
    to: '2006-10-29T04:00Z',
    windows: [
      '2006-10-28: 2006-10-28T02:30Z 2006-10-29T02:30Z',
      '2006-10-29: 2006-10-29T02:30Z 2006-10-30T03:30Z',
    ],
  },
  "St. John's set back a minute past midnight: hours of 1 and of 59 minutes": {
    zone: 'America/St_Johns',
    kind: 'hour',
    from: '2006-10-29T02:00Z',
    to: '2006-10-29T04:00Z',
    windows: [
      '2006-10-28T23:00-02:30: 2006-10-29T01:30Z 2006-10-29T02:30Z',
      '2006-10-29T00:00-02:30: 2006-10-29T02:30Z 2006-10-29T02:31Z',
      '2006-10-28T23:01-03:30: 2006-10-29T02:31Z 2006-10-29T03:30Z',
      '2006-10-29T00:00-03:30: 2006-10-29T03:30Z 2006-10-29T04:30Z',
    ],
  },
  'Noronha set forward and, within 167 hours, back: no two shifts are nearer': {
    zone: 'America/Noronha',
    kind: 'week',
    from: '2000-10-08T00:00Z',
    to: '2000-10-17T00:00Z',
    windows: [
      '2000-W40: 2000-10-02T02:00Z 2000-10-09T01:00Z',
      '2000-W41: 2000-10-09T01:00Z 2000-10-16T02:00Z',
      '2000-W42: 2000-10-16T02:00Z 2000-10-23T02:00Z',
    ],
  },
  'Casablanca sets back for Ramadan, in February': {
    zone: 'Africa/Casablanca',
    kind: 'day',
    from: '2025-02-23T02:00Z',
    to: '2025-02-23T03:00Z',
    windows: ['2025-02-23: 2025-02-22T23:00Z 2025-02-24T00:00Z'],
  },
  'Casablanca sets forward after Ramadan, in April': {
    zone: 'Africa/Casablanca',
    kind: 'day',
    from: '2025-04-06T02:00Z',
    to: '2025-04-06T03:00Z',
    windows: ['2025-04-06: 2025-04-06T00:00Z 2025-04-06T23:00Z'],
  },
  'Dublin, whose winter is the exception': {
    zone: 'Europe/Dublin',
    kind: 'week',
    from: '2025-10-26T01:00Z',
    to: '2025-10-26T02:00Z',
    windows: ['2025-W43: 2025-10-19T23:00Z 2025-10-27T00:00Z'],
  },
  'Kathmandu went a quarter ahead at midnight: 1986 began at 00:15': {
    zone: 'Asia/Kathmandu',
    kind: 'hour',
    from: '1985-12-31T18:00Z',
    to: '1985-12-31T19:30Z',
    windows: [
      '1985-12-31T23:00+05:30: 1985-12-31T17:30Z 1985-12-31T18:30Z',
      '1986-01-01T00:15+05:45: 1985-12-31T18:30Z 1985-12-31T19:15Z',
      '1986-01-01T01:00+05:45: 1985-12-31T19:15Z 1985-12-31T20:15Z',
    ],
  },
  'Kathmandu had a day of 23 hours and 45 minutes': {
    zone: 'Asia/Kathmandu',
    kind: 'day',
    from: '1985-12-31T18:30Z',
    to: '1985-12-31T19:00Z',
    windows: ['1986-01-01: 1985-12-31T18:30Z 1986-01-01T18:15Z'],
  },
  'Caracas went half an hour back for good': {
    zone: 'America/Caracas',
    kind: 'hour',
    from: '2007-12-09T06:30Z',
    to: '2007-12-09T08:00Z',
    windows: [
      '2007-12-09T02:00-04:00: 2007-12-09T06:00Z 2007-12-09T07:00Z',
      '2007-12-09T02:30-04:30: 2007-12-09T07:00Z 2007-12-09T07:30Z',
      '2007-12-09T03:00-04:30: 2007-12-09T07:30Z 2007-12-09T08:30Z',
    ],
  },
  'Caracas came back in the middle of an hour': {
    zone: 'America/Caracas',
    kind: 'hour',
    from: '2016-05-01T06:30Z',
    to: '2016-05-01T07:30Z',
    windows: [
      '2016-05-01T02:00-04:30: 2016-05-01T06:30Z 2016-05-01T07:00Z',
      '2016-05-01T03:00-04:00: 2016-05-01T07:00Z 2016-05-01T08:00Z',
    ],
  },
  'Pyongyang went back over midnight: the day before had half an hour more': {
    zone: 'Asia/Pyongyang',
    kind: 'day',
    from: '2015-08-14T15:00Z',
    to: '2015-08-14T16:00Z',
    windows: [
      '2015-08-14: 2015-08-13T15:00Z 2015-08-14T15:30Z',
      '2015-08-15: 2015-08-14T15:30Z 2015-08-15T15:30Z',
    ],
  },
  'Pyongyang came back to midnight: the day before had half an hour less': {
    zone: 'Asia/Pyongyang',
    kind: 'day',
    from: '2018-05-04T14:30Z',
    to: '2018-05-04T15:30Z',
    windows: [
      '2018-05-04: 2018-05-03T15:30Z 2018-05-04T15:00Z',
      '2018-05-05: 2018-05-04T15:00Z 2018-05-05T15:00Z',
    ],
  },
  'Monrovia kept 44 minutes and 30 seconds until 1972: its minutes began at half': {
    zone: 'Africa/Monrovia',
    kind: 'minute',
    from: '1972-01-07T00:44:00Z',
    to: '1972-01-07T00:45:30Z',
    windows: [
      '1972-01-06T23:59-00:44:30: 1972-01-07T00:43:30Z 1972-01-07T00:44:30Z',
      '1972-01-07T00:44:30+00:00: 1972-01-07T00:44:30Z 1972-01-07T00:45Z',
      '1972-01-07T00:45+00:00: 1972-01-07T00:45Z 1972-01-07T00:46Z',
    ],
  },
}

describe('a clock that is shifted', () => {
  it.each(Object.entries(shifts))('%s', (_, shown) => {
    expect(linesOf(shown)).toEqual(shown.windows)
  })
})

describe('a clock that is not', () => {
  it('has the minutes of UTC, as every zone has today', () => {
    const at = Date.parse('2026-08-26T05:19:30Z')
    const starts = Intl.supportedValuesOf('timeZone').map(
      (zone) => createCalendar(zone).spanOf('minute', at).startMs,
    )
    expect(new Set(starts)).toEqual(new Set([at - 30_000]))
  })
})

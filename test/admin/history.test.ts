/*
 * The stored tallies as a series: every window that overlaps what was asked for, gaps as zeros, the last
 * request included whatever the database does; and what is refused, in words.
 */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { csvOf, prefersCsv } from '../../src/admin/csv.js'
import type { Series } from '../../src/admin/history.js'
import { createGate } from '../../src/gate/gate.js'
import { manualClock } from '../../src/testing/index.js'
import { administered, type Administered } from '../support/admin.js'
import { temporaryFolder } from '../support/processes.js'
import { startMs, statuses } from '../support/server.js'

const rules = [
  { name: 'ip', key: 'ip' as const, limit: 2, window: '1m' },
  { name: 'parse-url', limit: 2, window: '1m', function: 'parse-url' },
]
const at = (time: string) => Date.parse(time)

const seriesOf = ({ read }: Administered, query: string) => read<Series>(`/stats/history?${query}`)

/** The points as `label requests`, or what `show` makes of each. */
const labels = ({ points }: Series) =>
  points.map((point) => `${point.label} ${'requests' in point ? point.requests : ''}`)

describe('a series', () => {
  it('has each window that overlaps the span, gaps as zeros', async () => {
    const asked = await administered({ rules })
    const { ask, clock } = asked
    await statuses(3, () => ask())
    clock.advance(2 * 60_000)
    await ask()
    const query = 'window=minute&from=2025-10-09T08:59:59.999Z&to=2025-10-09T09:02:00.001Z'
    const found = await seriesOf(asked, query)
    expect(found).toMatchObject({ window: 'minute', timeZone: 'UTC', rule: null })
    const point = (minute: number, requests: number, allowed: number) => ({
      start: new Date(startMs + minute * 60_000).toISOString(),
      end: new Date(startMs + (minute + 1) * 60_000).toISOString(),
      label: `2025-10-09T${minute < 0 ? '08:59' : `09:0${minute}`}+00:00`,
      requests,
      allowed,
      declined: requests - allowed,
      exempt: 0,
    })
    expect(found.points).toEqual([point(-1, 0, 0), point(0, 3, 2), point(1, 0, 0), point(2, 1, 1)])
    const within = await seriesOf(
      asked,
      'window=minute&from=2025-10-09T09:00:00Z&to=2025-10-09T09:02:00Z',
    )
    expect(within.points).toEqual([point(0, 3, 2), point(1, 0, 0)])
  })

  it('of a rule has its verdicts', async () => {
    const asked = await administered({ rules })
    await statuses(5, () => asked.ask())
    const found = await seriesOf(asked, 'window=day&rule=ip&from=2025-10-09&to=2025-10-10')
    expect(found.rule).toBe('ip')
    expect(found.points).toEqual([
      {
        start: '2025-10-09T00:00:00.000Z',
        end: '2025-10-10T00:00:00.000Z',
        label: '2025-10-09',
        within: 1,
        near: 1,
        over: 3,
      },
    ])
  })

  it('without a span ends with the current window, and without a window is of hours', async () => {
    const asked = await administered({ rules })
    await asked.ask()
    for (const [query, count, last] of [
      ['', 48, '2025-10-09T09:00+00:00 1'],
      ['window=minute', 60, '2025-10-09T09:00+00:00 1'],
      ['window=day', 30, '2025-10-09 1'],
      ['window=week', 26, '2025-W41 1'],
      ['window=day&from=2025-10-08', 2, '2025-10-09 1'],
      ['window=day&to=2025-10-09', 30, '2025-10-08 0'],
    ] as const) {
      const found = labels(await seriesOf(asked, query))
      expect([query, found.length, found.at(-1)]).toEqual([query, count, last])
    }
  })

  it('takes times in each spelling, a date as the start of its day where the tallies are kept', async () => {
    const asked = await administered({ rules, timeZone: 'Europe/Tallinn' })
    const startOf = async (from: string) => {
      const query = `window=minute&from=${from}&to=2025-06-01T00:00:00Z`
      return (await seriesOf(asked, query)).points[0]?.start
    }
    const midnight = '2025-05-31T21:00:00.000Z'
    expect(await startOf('2025-06-01')).toBe(midnight)
    for (const spelling of [
      '2025-05-31T21:00Z',
      '2025-06-01T00:00:00.000%2B03:00',
      '2025-06-01T00:00+03:00',
      String(at(midnight)),
    ]) {
      expect(await startOf(spelling)).toBe(midnight)
    }
  })

  it('DAT-12: counts the first evening of a week in a zone ahead of UTC', async () => {
    const clock = manualClock(at('2025-05-31T21:30:00Z'))
    const asked = await administered({
      rules,
      timeZone: 'Europe/Tallinn',
      weekStartsOn: 'sunday',
      clock,
    })
    await asked.ask()
    clock.set(at('2025-06-09T12:00:00Z'))
    expect(labels(await seriesOf(asked, 'window=week&from=2025-06-01&to=2025-06-08'))).toEqual([
      '2025-W23 1',
    ])
  })

  it('DAT-03: has two hours where the clock is set back, by two names', async () => {
    const clock = manualClock(at('2025-10-26T00:30:00Z'))
    const asked = await administered({ rules, timeZone: 'Europe/Berlin', clock })
    await asked.ask()
    clock.set(at('2025-10-26T01:30:00Z'))
    await statuses(2, () => asked.ask())
    const found = await seriesOf(asked, 'window=hour&from=2025-10-26&to=2025-10-27')
    expect(found.points).toHaveLength(25)
    expect(labels(found).slice(2, 4)).toEqual([
      '2025-10-26T02:00+02:00 1',
      '2025-10-26T02:00+01:00 2',
    ])
    const day = await seriesOf(asked, 'window=day&from=2025-10-26&to=2025-10-27')
    expect(labels(day)).toEqual(['2025-10-26 3'])
  })

  it('keeps counts that were stored under another time zone, in the window where theirs began', async () => {
    const database = join(temporaryFolder(), 'x.db')
    const before = createGate({ rules, database, clock: manualClock(startMs) })
    await before.close()
    const connection = new Sqlite(database)
    const row = connection.prepare('INSERT INTO request_tallies VALUES (?, ?, ?, ?)')
    row.run('day', at('2025-10-08T00:00:00Z'), 'allowed', 7)
    connection.close()
    const asked = await administered({ rules, database, timeZone: 'Asia/Kolkata' })
    const found = labels(await seriesOf(asked, 'window=day&from=2025-10-07&to=2025-10-10'))
    expect(found).toEqual(['2025-10-07 0', '2025-10-08 7', '2025-10-09 0'])
  })
})

describe('what is asked wrongly', () => {
  it.each([
    ['window=month', 'window must be one of minute, hour, day, week: received "month"'],
    ['from=yesterday', 'from must be an ISO time with its offset, such as'],
    ['to=2025-10-09T09:00', 'received "2025-10-09T09:00"'],
    ['to=1760000400', 'or milliseconds since the epoch: received "1760000400"'],
    ['from=2025-02-30', 'received "2025-02-30"'],
    [
      'from=2025-10-09&to=2025-10-09',
      'from must be before to: received 2025-10-09T00:00:00.000Z and',
    ],
    ['from=2027-01-01', 'from must be before to: received 2027-01-01T00:00:00.000Z and'],
    ['form=2025-10-09', 'unknown parameter "form", did you mean from?'],
    ['window=day&window=hour', 'window must be given once: received it twice'],
  ])('%s is refused with what would be right', async (query, detail) => {
    const { refusal } = await administered({ rules })
    const [status, said] = await refusal(`/stats/history?${query}`)
    expect([status, said]).toEqual([400, expect.stringContaining(detail)])
  })

  it('a rule that is not there is 404, with those that are', async () => {
    const { refusal } = await administered({ rules })
    expect(await refusal('/stats/history?rule=parse_url')).toEqual([
      404,
      'no rule is called "parse_url", did you mean parse-url? (known: ip, parse-url)',
    ])
  })

  it('more than 5,000 points are refused, naming the coarser window that fits', async () => {
    const { refusal, read } = await administered({ rules })
    const minutes = 'window=minute&from=2025-10-06T00:00:00Z&to='
    expect(
      (await read<Series>(`/stats/history?${minutes}2025-10-09T11:20:00Z`)).points,
    ).toHaveLength(5000)
    const over = await refusal(`/stats/history?${minutes}2025-10-09T11:21:00Z`)
    expect(over).toEqual([
      400,
      expect.stringContaining('received a span of 5001 with window=minute; window=hour gives 84'),
    ])
    const [, years] = await refusal('/stats/history?window=minute&from=2000-01-01&to=2025-01-01')
    expect(years).toContain('; window=week gives 1306')
    const [, ages] = await refusal('/stats/history?window=week&from=1000-01-01&to=2025-01-01')
    expect(ages).toMatch(/; ask for a shorter span$/)
  })
})

describe('as CSV', () => {
  it('is a table with a row of names, for who asks for it', async () => {
    const { ask, admin } = await administered({ rules })
    await ask()
    const path = '/stats/history?window=day&from=2025-10-08&to=2025-10-10'
    const { status, headers, text } = await admin(path, { headers: { accept: 'text/csv' } })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('vary')).toBe('Accept')
    expect(text).toBe(
      'start,end,label,requests,allowed,declined,exempt\r\n' +
        '2025-10-08T00:00:00.000Z,2025-10-09T00:00:00.000Z,2025-10-08,0,0,0,0\r\n' +
        '2025-10-09T00:00:00.000Z,2025-10-10T00:00:00.000Z,2025-10-09,1,1,0,0\r\n',
    )
    const verdicts = await admin(`${path}&rule=ip`, { headers: { accept: 'text/csv' } })
    expect(verdicts.text.split('\r\n')[0]).toBe('start,end,label,within,near,over')
  })

  it.each([
    ['text/csv', true],
    ['text/csv, application/json', true],
    ['TEXT/CSV;header=present;q=0.9, */*;q=0.8', true],
    ['application/json;q=0.5, text/csv', true],
    ['application/json, text/csv', false],
    ['text/csv;q=0', false],
    ['text/csv;q=x', false],
    ['text/html,application/xhtml+xml,*/*;q=0.8', false],
    ['*/*', false],
    [undefined, false],
  ])('Accept: %s', (accept, isCsv) => {
    expect(prefersCsv(accept)).toBe(isCsv)
  })

  it('quotes what would break a row, and lets no text be a formula', () => {
    expect(csvOf(['a', 'b'], [['x,"y"', 'two\r\nlines']])).toBe(
      'a,b\r\n"x,""y""","two\r\nlines"\r\n',
    )
    for (const text of ['=1+1', '+1', '-1', '@x', '\tx']) {
      expect(csvOf(['a'], [[text]])).toBe(`a\r\n'${text}\r\n`)
    }
    expect(csvOf(['a'], [[-1, '9007199254740993']])).toBe('a\r\n-1,9007199254740993\r\n')
  })
})

describe('a database that another process holds', () => {
  const lockedBy = (database: string) => {
    const other = new Sqlite(database)
    onTestFinished(() => void other.close())
    return other
  }

  it('is read all the same, to the last request', async () => {
    const database = join(temporaryFolder(), 'x.db')
    const asked = await administered({ rules, database })
    await statuses(2, () => asked.ask())
    await asked.gate.flush()
    const other = lockedBy(database)
    other.exec('BEGIN IMMEDIATE')
    await statuses(3, () => asked.ask())
    const today = () => seriesOf(asked, 'window=day&from=2025-10-09&to=2025-10-10')
    expect(labels(await today())).toEqual(['2025-10-09 5'])
    other.exec('COMMIT')
    expect(labels(await today())).toEqual(['2025-10-09 5'])
  })
})

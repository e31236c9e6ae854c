/*
 * The statistics: the shape of the contract, every figure of one instant and exact, the same for whoever
 * asks by HTTP or in code, and the same as /metrics, SQLite and what clients saw.
 */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { Statistics } from '../../src/admin/statistics.js'
import type { RuleOptions } from '../../src/core/rule.js'
import { createGate } from '../../src/gate/gate.js'
import { manualClock } from '../../src/testing/index.js'
import { adminToken, administered, bearing, expectAnswer } from '../support/admin.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { temporaryFolder } from '../support/processes.js'
import { countOf, startMs, statuses } from '../support/server.js'

const rules: RuleOptions[] = [{ name: 'ip', key: 'ip', limit: 5, window: '1m' }]

const stats = (asked: { read: <T>(path: string) => Promise<T> }) => asked.read<Statistics>('/stats')

/** Requests of a client behind a proxy. */
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })

describe('the statistics', () => {
  it('have the shape of the contract, every figure as of one instant', async () => {
    const { ask, admin, gate } = await administered({ rules })
    await statuses(7, () => ask())
    const { headers, text } = await admin('/stats')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    const counts = { requests: 7, allowed: 5, declined: 2, exempt: 0 }
    const none = { requests: 0, allowed: 0, declined: 0, exempt: 0 }
    const verdicts = { within: 4, near: 1, over: 2 }
    const found = JSON.parse(text)
    expectAnswer('statistics', found)
    expect(found).toMatchObject({
      generatedAt: '2025-10-09T09:00:00.000Z',
      scope: 'instance',
      timeZone: 'UTC',
      weekStartsOn: 'monday',
      since: '2025-10-09T09:00:00.000Z',
      totals: counts,
      store: { kind: 'memory', degraded: false },
    })
    const persistence = { path: null, lastFlushAt: null, pending: 7, failures: 0, sizeBytes: 0 }
    expect(found.persistence).toEqual({ ...persistence, movedAside: null, lost: 0 })
    const spans = {
      minute: ['2025-10-09T08:59', '2025-10-09T09:00', '2025-10-09T09:01'],
      hour: ['2025-10-09T08:00', '2025-10-09T09:00', '2025-10-09T10:00'],
      day: ['2025-10-08T00:00', '2025-10-09T00:00', '2025-10-10T00:00'],
      week: ['2025-09-29T00:00', '2025-10-06T00:00', '2025-10-13T00:00'],
    }
    for (const [window, times] of Object.entries(spans)) {
      const [before, start, end] = times.map((time) => `${time}:00.000Z`)
      expect(found.windows[window]).toEqual({
        current: { start, end, ...counts },
        previous: { start: before, end: start, ...none },
      })
      expect(found.rules[0].windows[window].current).toEqual({ start, end, ...verdicts })
    }
    expect(found.rules).toHaveLength(1)
    expect(found.rules[0]).toMatchObject({
      name: 'ip',
      function: null,
      key: 'ip',
      algorithm: 'sliding-window',
      limit: 5,
      windowMs: 60_000,
      mode: 'enforce',
      strict: false,
      trackedKeys: 1,
      evictedKeys: 0,
      peakUtilization: 1,
      totals: verdicts,
      demand: { p50: 7, p90: 7, p99: 7, p999: 7, max: 7 },
      candidates: [],
      topKeys: [{ key: '127.0.0.1', requests: 7, over: 2, countErrorMax: 0 }],
    })
    expect(await gate.stats()).toEqual(found)
  })

  it('answer HEAD as GET, without a body', async () => {
    const { ask } = await administered({ rules })
    const get = await ask('/admin/stats', bearing(adminToken))
    const head = await ask('/admin/stats', { ...bearing(adminToken), method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      expect(head.headers.get(name)).toBe(get.headers.get(name))
    }
  })

  it('move a window on when its time is over', async () => {
    const asked = await administered({ rules })
    const { ask, clock } = asked
    await statuses(3, () => ask())
    clock.set(startMs + 60_000)
    await statuses(2, () => ask())
    const { windows, totals } = await stats(asked)
    expect(windows.minute.current.requests).toBe(2)
    expect(windows.minute.previous.requests).toBe(3)
    expect(windows.hour.current.requests).toBe(5)
    expect(totals.requests).toBe(5)
  })

  it('DAT-14: belong to one instant though the clock moves over midnight during the call', async () => {
    const midnightMs = Date.parse('2026-11-30T00:00:00Z')
    const clock = manualClock(midnightMs - 10_000)
    const gate = createGate({ rules, clock })
    try {
      // Sunday's last millisecond for the first who asks; for whoever asks again another week.
      let readCount = 0
      clock.wallMs = () => midnightMs + (readCount++ === 0 ? -1 : 2)
      const found = await gate.stats()
      const ends = Object.values(found.windows).map(({ current }) => current.end)
      expect(found.generatedAt).toBe('2026-11-29T23:59:59.999Z')
      expect(new Set(ends)).toEqual(new Set(['2026-11-30T00:00:00.000Z']))
      for (const { windows } of found.rules) {
        expect(Object.values(windows).map(({ current }) => current.end)).toEqual(ends)
      }
    } finally {
      await gate.close()
    }
  })

  it('show what each candidate would have declined in the current and the last window', async () => {
    const asked = await administered(
      {
        rules: [
          {
            name: 'ip',
            key: 'ip',
            limit: 4,
            window: '1m',
            candidates: [{ limit: 2 }, { limit: 1, window: '1h', algorithm: 'fixed-window' }],
          },
        ],
      },
      (app, gate) => {
        app.set('trust proxy', 1)
        app.use(gate.middleware)
        app.get('/', (_request, response) => void response.send('ok'))
      },
    )
    const { ask, clock } = asked
    for (const address of ['a', 'b', 'c'].map((_, index) => `192.0.2.${index}`)) {
      await statuses(3, () => ask('/', from(address)))
    }
    await statuses(3, () => ask('/', from('192.0.2.0')))
    const declines = async () => {
      const [rule] = (await stats(asked)).rules
      return rule?.candidates.map(({ over, keysOver }) => [over, keysOver])
    }
    expect((await stats(asked)).rules[0]?.candidates).toEqual([
      { limit: 2, windowMs: 60_000, algorithm: 'sliding-window', over: 6, keysOver: 3 },
      { limit: 1, windowMs: 3_600_000, algorithm: 'fixed-window', over: 9, keysOver: 3 },
    ])
    const declined = async () =>
      valueOf(parseExposition((await ask('/metrics')).text), 'tallygate_rule_declined_keys')
    expect(await declined()).toBe(1)
    clock.advance(60_000)
    expect([await declines(), await declined()]).toEqual([
      [
        [6, 3],
        [9, 3],
      ],
      1,
    ])
    clock.advance(60_000)
    expect([await declines(), await declined()]).toEqual([
      [
        [0, 0],
        [0, 0],
      ],
      0,
    ])
  })

  it('name the heaviest keys: addresses in clear, anything else by its id alone', async () => {
    const asked = await administered(
      {
        rules: [
          { name: 'ip', key: 'ip', limit: 9, window: '1m' },
          { name: 'api', key: 'header:x-api-key', limit: 1, window: '1m' },
          { name: 'all', limit: 90, window: '1m' },
        ],
      },
      (app, gate) => {
        app.set('trust proxy', 1)
        app.use(gate.middleware)
      },
    )
    const { ask, admin } = asked
    const secret = 'an-api-key-that-nobody-may-see'
    for (let index = 1; index <= 12; index++) {
      await statuses(index % 4, () => ask('/', from(`198.51.100.${index}`)))
    }
    await statuses(5, () =>
      ask('/', { headers: { ...from('203.0.113.7').headers, 'x-api-key': secret } }),
    )
    const [ip, api, all] = (await stats(asked)).rules
    expect(ip?.topKeys).toHaveLength(10)
    expect(ip?.topKeys[0]).toMatchObject({ key: '203.0.113.7', requests: 5, over: 0 })
    expect(api?.topKeys).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{16}$/),
        key: null,
        requests: 5,
        over: 4,
        countErrorMax: 0,
      },
    ])
    expect(all?.topKeys).toEqual([])
    for (const path of ['/stats', '/keys?rule=api']) {
      expect((await admin(path)).text).not.toContain(secret)
    }
  })

  it('count exactly beyond 2^53, as strings of digits', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const first = createGate({ rules, database: path, clock: manualClock(startMs) })
    await first.close()
    const connection = new Sqlite(path)
    const weekMs = Date.parse('2025-10-06T00:00:00Z')
    const row = connection.prepare('INSERT INTO request_tallies VALUES (?, ?, ?, ?)')
    row.run('week', weekMs, 'allowed', 9_007_199_254_740_991n)
    row.run('week', weekMs, 'declined', 9_007_199_254_740_993n)
    row.run('hour', startMs, 'allowed', 9_007_199_254_740_992n)
    connection.close()
    const asked = await administered({ rules, database: path })
    const before = await stats(asked)
    expect(before.totals).toEqual({
      requests: '18014398509481984',
      allowed: 9_007_199_254_740_991,
      declined: '9007199254740993',
      exempt: 0,
    })
    await statuses(3, () => asked.ask())
    const expected = { requests: '18014398509481987', allowed: '9007199254740994' }
    expect((await stats(asked)).totals).toMatchObject(expected)
    await asked.gate.flush()
    const after = await stats(asked)
    expect(after.totals).toMatchObject(expected)
    expect(after.windows.week.current).toMatchObject(expected)
    expect(after.windows.hour.current).toMatchObject({ allowed: '9007199254740995' })
    const series = await asked.read<{ points: object[] }>('/stats/history?window=week')
    expect(series.points.at(-1)).toMatchObject(expected)
  })
})

describe('the same figures everywhere', () => {
  it('MET-13: two of ten allowed, in answers, /metrics, statistics and SQLite alike', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const asked = await administered({
      rules: [{ name: 'ip', key: 'ip', limit: 2, window: '1m' }],
      database: path,
    })
    const { ask, gate } = asked
    const seen = await statuses(10, () => ask())
    expect([countOf(seen, 200), countOf(seen, 429)]).toEqual([2, 8])
    const { totals, rules: found } = await stats(asked)
    expect(totals).toEqual({ requests: 10, allowed: 2, declined: 8, exempt: 0 })
    expect(found[0]?.totals.over).toBe(8)
    const series = parseExposition((await ask('/metrics')).text)
    expect(valueOf(series, 'tallygate_requests_total', { outcome: 'allowed' })).toBe(2)
    expect(valueOf(series, 'tallygate_requests_total', { outcome: 'declined' })).toBe(8)
    await gate.flush()
    const connection = new Sqlite(path, { readonly: true })
    const rows = connection.prepare(
      `SELECT outcome, count FROM request_tallies WHERE window = 'day' ORDER BY outcome`,
    )
    expect(rows.all()).toEqual([
      { outcome: 'allowed', count: 2 },
      { outcome: 'declined', count: 8 },
    ])
    connection.close()
  })

  it('MET-11: counters begin at 0 after a restart, what is read from the database goes on', async () => {
    const options = { rules, database: join(temporaryFolder(), 'x.db') }
    const first = await administered(options)
    await statuses(3, () => first.ask())
    await first.gate.close()
    const second = await administered(options)
    const window = { window: 'day', period: 'current', outcome: 'allowed' }
    const scraped = async () => {
      const series = parseExposition((await second.ask('/metrics')).text)
      return [
        valueOf(series, 'tallygate_requests_total', { outcome: 'allowed' }),
        valueOf(series, 'tallygate_window_requests', window),
      ]
    }
    expect(await scraped()).toEqual([0, 3])
    await second.ask()
    expect(await scraped()).toEqual([1, 4])
    expect((await stats(second)).totals.allowed).toBe(4)
  })

  it('MET-06: scrapes and admin requests take from no limit and are not counted', async () => {
    const asked = await administered({ rules: [{ name: 'global', limit: 5, window: '1m' }] })
    const { ask, admin } = asked
    expect(new Set(await statuses(60, () => ask('/metrics')))).toEqual(new Set([200]))
    expect(new Set(await statuses(60, () => admin('/stats')))).toEqual(new Set([200]))
    expect(new Set(await statuses(5, () => ask()))).toEqual(new Set([200]))
    expect((await stats(asked)).totals.requests).toBe(5)
  })

  it('SEC-06: no answer may be kept, and two in a row differ', async () => {
    const { ask, admin } = await administered({
      rules: [{ name: 'ip', key: 'ip', limit: 1, window: '1m' }],
    })
    const bodies = new Set<string>()
    for (let turn = 0; turn < 2; turn++) {
      const answers = [await ask('/metrics'), await admin('/stats'), await admin('/keys?rule=ip')]
      for (const { headers, text } of answers) {
        expect(headers.get('cache-control')).toBe('no-store')
        bodies.add(text)
      }
      await statuses(2, () => ask())
    }
    expect(bodies.size).toBe(6)
    const declined = await ask()
    expect([declined.status, declined.headers.get('cache-control')]).toEqual([429, 'no-store'])
  })
})

/*
 * Who may see the statistics, and how they are shaped. The check of the token comes before everything else.
 */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { guarded, startMs, statuses, type Guarded } from '../support/server.js'

const adminToken = 'c0ffee00c0ffee11c0ffee22c0ffee33'
const rules = [{ name: 'ip', key: 'ip' as const, limit: 5, window: '1m' }]

function withAdmin(token: string | undefined): Promise<Guarded> {
  return guarded({ rules, adminToken: token, metricsToken: token }, (app, gate) => {
    app.get('/metrics', gate.metrics)
    app.use('/admin', gate.admin)
    app.use(gate.middleware)
    app.get('/', (_request, response) => void response.send('ok'))
  })
}

const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

describe('the admin routes', () => {
  it('SEC-03: without a token configured answer 404 and nothing else', async () => {
    const { ask } = await withAdmin(undefined)
    for (const path of ['/admin', '/admin/', '/admin/stats', '/admin/stats/']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PATCH', 'DELETE']) {
        expect((await ask(path, { method })).status).toBe(404)
      }
    }
  })

  it('SEC-03: need the token, whatever the method and the spelling', async () => {
    const { ask } = await withAdmin(adminToken)
    for (const path of ['/admin', '/admin/', '/admin/stats', '/admin/stats/', '/ADMIN/Stats']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST', 'PATCH', 'DELETE']) {
        const { status, headers, text } = await ask(path, { method })
        expect(status).toBe(401)
        expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
        expect(headers.get('cache-control')).toBe('no-store')
        expect(text).not.toContain('totals')
      }
    }
  })

  it('SEC-01: answer every wrong token alike, whatever its length', async () => {
    const { ask } = await withAdmin(adminToken)
    const wrong = ['', 'x', 'x'.repeat(31), 'x'.repeat(33), 'x'.repeat(10_000)]
    const bodies = new Set<string>()
    for (const token of wrong) {
      const { status, text } = await ask('/admin/stats', bearing(token))
      expect(status).toBe(401)
      bodies.add(text)
    }
    expect(bodies.size).toBe(1)
  })

  it('limit wrong tokens: the 11th of an address in a minute gets 429, a right one passes', async () => {
    const { ask } = await withAdmin(adminToken)
    const wrong = () => ask('/admin/stats', bearing('wrong-token-of-some-length'))
    expect(new Set(await statuses(10, wrong))).toEqual(new Set([401]))
    const eleventh = await wrong()
    expect([eleventh.status, eleventh.headers.get('cache-control')]).toEqual([429, 'no-store'])
    expect((await ask('/admin/stats')).status).toBe(401)
    expect((await ask('/admin/stats', bearing(adminToken))).status).toBe(200)
    const series = parseExposition((await ask('/metrics', bearing(adminToken))).text)
    expect(valueOf(series, 'tallygate_admin_auth_failures_total')).toBe(11)
  })

  it('refuse another method and an unknown path by name', async () => {
    const { ask } = await withAdmin(adminToken)
    const posted = await ask('/admin/stats', { ...bearing(adminToken), method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect((await ask('/admin/nothing', bearing(adminToken))).status).toBe(404)
  })

  it('are refused a token that protects nothing', () => {
    const make = (token: string) => () => createGate({ rules, adminToken: token })
    expect(make('short')).toThrow('Cannot use adminToken: it must be at least 16 characters')
    expect(make('change-me-change-me')).toThrow('a placeholder')
    expect(make('aaaaaaaaaaaaaaaaaaaa')).toThrow('a placeholder')
    const none = createGate({ rules, adminToken: '' })
    onTestFinished(() => none.close())
  })
})

describe('the metrics', () => {
  it('ask for their token where one is set', async () => {
    const { ask } = await withAdmin(adminToken)
    const refused = await ask('/metrics')
    expect([refused.status, refused.headers.get('cache-control')]).toEqual([401, 'no-store'])
    expect((await ask('/metrics', bearing('x'.repeat(32)))).status).toBe(401)
    expect((await ask('/metrics', bearing(adminToken))).status).toBe(200)
  })
})

describe('the statistics', () => {
  it('have the shape of the contract, every figure as of one instant', async () => {
    const { ask, gate } = await withAdmin(adminToken)
    await statuses(7, () => ask())
    const { headers, text } = await ask('/admin/stats', bearing(adminToken))
    expect(headers.get('cache-control')).toBe('no-store')
    const counts = { requests: 7, allowed: 5, declined: 2, exempt: 0 }
    const none = { requests: 0, allowed: 0, declined: 0, exempt: 0 }
    const verdicts = { within: 4, near: 1, over: 2 }
    const stats = JSON.parse(text)
    expect(stats).toMatchObject({
      generatedAt: '2025-10-09T09:00:00.000Z',
      scope: 'instance',
      timeZone: 'UTC',
      weekStartsOn: 'monday',
      since: '2025-10-09T09:00:00.000Z',
      totals: counts,
      store: { kind: 'memory', degraded: false },
      persistence: { path: null, lastFlushAt: null, pending: 7, failures: 0, sizeBytes: 0 },
    })
    const spans = {
      minute: ['2025-10-09T08:59', '2025-10-09T09:00', '2025-10-09T09:01'],
      hour: ['2025-10-09T08:00', '2025-10-09T09:00', '2025-10-09T10:00'],
      day: ['2025-10-08T00:00', '2025-10-09T00:00', '2025-10-10T00:00'],
      week: ['2025-09-29T00:00', '2025-10-06T00:00', '2025-10-13T00:00'],
    }
    for (const [window, times] of Object.entries(spans)) {
      const [before, start, end] = times.map((time) => `${time}:00.000Z`)
      expect(stats.windows[window]).toEqual({
        current: { start, end, ...counts },
        previous: { start: before, end: start, ...none },
      })
      expect(stats.rules[0].windows[window].current).toEqual({ start, end, ...verdicts })
    }
    expect(stats.rules).toHaveLength(1)
    expect(stats.rules[0]).toMatchObject({
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
    })
    expect(await gate.stats()).toEqual(stats)
  })

  it('move a window on when its time is over', async () => {
    const { ask, gate, clock } = await withAdmin(adminToken)
    await statuses(3, () => ask())
    clock.set(startMs + 60_000)
    await statuses(2, () => ask())
    const { windows, totals } = await gate.stats()
    expect(windows.minute.current.requests).toBe(2)
    expect(windows.minute.previous.requests).toBe(3)
    expect(windows.hour.current.requests).toBe(5)
    expect(totals.requests).toBe(5)
  })
})

/*
 * Who may use the admin routes, and how they answer whoever may: the check of the token comes before
 * everything else, whatever the route, the method and the spelling.
 */
import type { RequestListener } from 'node:http'
import express from 'express'
import express4 from 'express4'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Handler } from '../../src/express/http.js'
import { createGate } from '../../src/gate/gate.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { adminToken, bearing, sending } from '../support/admin.js'
import { guarded, host, statuses, type Guarded } from '../support/server.js'

const rules = [{ name: 'ip', key: 'ip' as const, limit: 5, window: '1m' }]

function withAdmin(token: string | undefined): Promise<Guarded> {
  return guarded({ rules, adminToken: token, metricsToken: token }, (app, gate) => {
    app.get('/metrics', gate.metrics)
    app.use('/admin', gate.admin)
    app.use(gate.middleware)
    app.get('/', (_request, response) => void response.send('ok'))
  })
}

const paths = `
  / /stats /stats/ /stats/history /keys?rule=ip /explain /audit /rules/ip
  /rules/ip/keys/0123456789abcdef /nothing /% /rules/%`
  .split(/\s+/)
  .flatMap((path) => [`/admin${path}`, `/ADMIN${path.toUpperCase()}`])
const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE']

describe('the admin routes', () => {
  it('SEC-03: without a token configured answer 404 and nothing else', async () => {
    const { ask } = await withAdmin(undefined)
    for (const path of paths) {
      for (const method of methods) expect((await ask(path, { method })).status).toBe(404)
    }
  })

  it('SEC-03: need the token, whatever the route, the method and the spelling', async () => {
    const { ask, gate } = await withAdmin(adminToken)
    for (const path of paths) {
      for (const method of methods) {
        const { status, headers, text } = await ask(path, { method })
        expect({ path, method, status }).toEqual({ path, method, status: 401 })
        expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
        expect(headers.get('cache-control')).toBe('no-store')
        expect(text).not.toMatch(/totals|points|entries|heaviest|applies/)
      }
    }
    await ask('/admin/rules/ip', sending('PATCH', { limit: 1 }))
    expect(gate.limiter.rule('ip').limit).toBe(5)
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

  it.each([
    ['/stats', 'POST', 'GET, HEAD'],
    ['/stats/history', 'DELETE', 'GET, HEAD'],
    ['/keys', 'OPTIONS', 'GET, HEAD'],
    ['/audit', 'PUT', 'GET, HEAD'],
    ['/explain', 'GET', 'POST'],
    ['/rules/ip', 'GET', 'PATCH'],
    ['/rules/ip/keys/0123456789abcdef', 'PATCH', 'DELETE'],
  ])('refuse %s by %s and name what would be right', async (path, method, allowed) => {
    const { ask } = await withAdmin(adminToken)
    const answer = await ask(`/admin${path}`, { ...bearing(adminToken), method })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allowed])
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it('answer 404 to an unknown path, 400 to one that cannot be read', async () => {
    const { ask } = await withAdmin(adminToken)
    for (const [path, status] of [
      ['/admin/nothing', 404],
      ['/admin/stats/nothing', 404],
      ['/admin/rules/%', 400],
    ] as const) {
      const answer = await ask(path, bearing(adminToken))
      expect([answer.status, answer.headers.get('content-type')]).toEqual([
        status,
        'application/problem+json; charset=utf-8',
      ])
    }
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

describe('where the admin routes are mounted', () => {
  const change = { ...sending('PATCH', { limit: 7 }) }
  change.headers['authorization'] = `Bearer ${adminToken}`

  it('they are the same in Express 4', async () => {
    const { ask, gate } = await host({ rules, adminToken }, (made) => {
      const app = express4()
      app.use('/admin', made.admin)
      return app
    })
    expect((await ask('/admin/stats?x=1', bearing(adminToken))).status).toBe(200)
    expect((await ask('/admin/stats/history?window=day', bearing(adminToken))).status).toBe(200)
    expect((await ask('/admin/rules/ip', change)).status).toBe(200)
    expect((await ask('/admin/rules/%', bearing(adminToken))).status).toBe(400)
    expect(gate.limiter.rule('ip').limit).toBe(7)
  })

  it('they are the same without Express', async () => {
    const { ask, gate } = await host({ rules, adminToken }, (made) => (request, response) => {
      made.admin(request, response, () => void response.writeHead(599).end())
    })
    expect((await ask('/stats', bearing(adminToken))).status).toBe(200)
    expect((await ask('/rules/ip', change)).status).toBe(200)
    expect((await ask('/nothing', bearing(adminToken))).status).toBe(404)
    expect(gate.limiter.rule('ip').limit).toBe(7)
  })

  it.each<[string, (admin: Handler) => RequestListener]>([
    ['5', (admin) => express().use(express.json()).use('/admin', admin)],
    ['4', (admin) => express4().use(express4.json()).use('/admin', admin)],
  ])('they take a body that an app of Express %s has parsed before', async (_, build) => {
    const { ask, gate } = await host({ rules, adminToken }, (made) => build(made.admin))
    expect((await ask('/admin/rules/ip', change)).status).toBe(200)
    expect(gate.limiter.rule('ip').limit).toBe(7)
  })
})

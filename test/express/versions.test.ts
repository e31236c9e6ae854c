/*
 * The handlers under what they are mounted in: Express 4, Express 5, and Node's own server without either.
 * Over real HTTP; what a rule decides is tested elsewhere, here it is that a host changes nothing of it.
 */
import type { RequestListener } from 'node:http'
import express5 from 'express'
import express4 from 'express4'
import express4Manifest from 'express4/package.json' with { type: 'json' }
import express5Manifest from 'express/package.json' with { type: 'json' }
import session from 'express-session'
import { describe, expect, it } from 'vitest'
import type { GateParts } from '../../src/gate/gate.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { countOf, host, statuses } from '../support/server.js'

const adminToken = 'c0ffee00c0ffee11c0ffee22c0ffee33'
const bearing = { headers: { authorization: `Bearer ${adminToken}` } }
const perAddress = { name: 'ip', key: 'ip' as const, limit: 3, window: '1m' }
const forSearch = { ...perAddress, name: 'search', limit: 1, function: 'search' }

// What is used here is spelt alike in both; test/types/public-api.ts judges the types of each.
type Express = typeof express5
const versions: [string, Express, { version: string }][] = [
  ['4', express4 as unknown as Express, express4Manifest],
  ['5', express5, express5Manifest],
]

describe.each(versions)('under Express %s', (major, express, manifest) => {
  const guardEverything = (gate: GateParts) => {
    const app = express()
    app.get('/metrics', gate.metrics)
    app.use('/admin', gate.admin)
    app.use(gate.middleware)
    app.get('/', (_request, response) => void response.send('ok'))
    app.get('/search', gate.limit('search'), (_request, response) => void response.send('found'))
    return app
  }
  const rules = [perAddress, forSearch]

  it('the dependency is that version', () => {
    expect(manifest.version.split('.')[0]).toBe(major)
  })

  it('a request within its limit passes, with the fields of its rules', async () => {
    const { ask } = await host({ rules }, guardEverything)
    const { status, headers, text } = await ask()
    expect([status, text]).toEqual([200, 'ok'])
    expect(headers.get('ratelimit-policy')).toBe('"ip";q=3;w=60')
    expect(headers.get('ratelimit')).toBe('"ip";r=2;t=120')
  })

  it('a declined request gets the whole answer, and no handler sees it', async () => {
    let handledCount = 0
    const { ask } = await host({ rules }, (gate) => {
      const app = express()
      app.use(gate.middleware)
      app.use((_request, response) => {
        handledCount++
        response.send('ok')
      })
      return app
    })
    expect(await statuses(3, () => ask())).toEqual([200, 200, 200])
    const { status, headers, text } = await ask()
    expect([status, handledCount]).toEqual([429, 3])
    expect(headers.get('retry-after')).toBe('80')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(JSON.parse(text)).toMatchObject({ status: 429, 'violated-policies': ['ip'] })
  })

  it('gate.limit declines its route alone, and the request takes from no rule', async () => {
    const { ask } = await host({ rules }, guardEverything)
    expect((await ask('/search')).headers.get('ratelimit')).toContain('"ip";r=2')
    const declined = await ask('/search')
    expect([declined.status, declined.headers.get('ratelimit')]).toEqual([
      429,
      '"ip";r=2;t=120, "search";r=0;t=120',
    ])
    expect(await statuses(3, () => ask())).toEqual([200, 200, 429])
  })

  it('in a router the middleware guards that router, by its own address too', async () => {
    const { ask, gate } = await host({ rules }, (mounted) => {
      const app = express()
      const router = express.Router()
      router.use(mounted.middleware)
      router.get('/:id', mounted.limit('search'), (request, response) => {
        response.json({ id: request.params['id'], baseUrl: request.baseUrl })
      })
      app.use('/api/items', router)
      app.get('/', (_request, response) => void response.send('ok'))
      return app
    })
    expect(JSON.parse((await ask('/api/items/7')).text)).toEqual({ id: '7', baseUrl: '/api/items' })
    expect((await ask('/api/items/7')).status).toBe(429)
    const outside = await statuses(5, () => ask())
    expect(countOf(outside, 200)).toBe(5)
    expect((await gate.stats()).totals).toMatchObject({ requests: 2, allowed: 1, declined: 1 })
  })

  it('an error of a handler goes to the error handler, and the request was allowed', async () => {
    const { ask, gate } = await host({ rules }, (mounted) => {
      const app = express()
      app.use(mounted.middleware)
      app.get('/', (_request, _response, next) => next(new Error('broken')))
      app.get('/throws', () => {
        throw new Error('broken')
      })
      const onError: express5.ErrorRequestHandler = (error, _request, response, _next) => {
        response.status(503).send(String(error))
      }
      app.use(onError)
      return app
    })
    for (const path of ['/', '/throws']) {
      const { status, headers, text } = await ask(path)
      expect([status, text]).toEqual([503, 'Error: broken'])
      expect(headers.get('ratelimit')).toContain('"ip"')
    }
    expect((await gate.stats()).totals).toMatchObject({ requests: 2, allowed: 2, declined: 0 })
  })

  it('the metrics tell what was allowed and declined, and are not counted', async () => {
    const { ask } = await host({ rules }, guardEverything)
    await statuses(5, () => ask())
    await ask('/metrics')
    const { headers, text } = await ask('/metrics')
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
    expect(headers.get('ratelimit')).toBe(null)
    const series = parseExposition(text)
    expect(valueOf(series, 'tallygate_requests_total', { outcome: 'allowed' })).toBe(3)
    expect(valueOf(series, 'tallygate_requests_total', { outcome: 'declined' })).toBe(2)
  })

  it('the admin routes answer who bears the token, below the path they are mounted at', async () => {
    const { ask } = await host({ rules, adminToken }, guardEverything)
    await ask()
    const { status, headers, text } = await ask('/admin/stats', bearing)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(JSON.parse(text).totals).toMatchObject({ requests: 1, allowed: 1 })
    expect((await ask('/admin/stats')).status).toBe(401)
    expect((await ask('/admin/stats', { ...bearing, method: 'POST' })).status).toBe(405)
    expect((await ask('/admin/nothing', bearing)).status).toBe(404)
    expect((await ask('/admin/stats', { ...bearing, method: 'HEAD' })).text).toBe('')
  })

  it('`trust proxy` says who the client is', async () => {
    const { ask } = await host({ rules: [{ ...perAddress, limit: 1 }] }, (gate) => {
      const app = express().set('trust proxy', 1)
      return app.use(gate.middleware, (_request, response) => void response.send('ok'))
    })
    const from = (address: string) => ask('/', { headers: { 'x-forwarded-for': address } })
    expect((await from('203.0.113.7')).status).toBe(200)
    expect((await from('203.0.113.7')).status).toBe(429)
    expect((await from('203.0.113.8')).status).toBe(200)
    // What the client itself put in front of the proxy's entry changes nothing.
    expect((await from('198.51.100.1, 203.0.113.8')).status).toBe(429)
  })

  it('a session counts by itself once its cookie names it', async () => {
    const bySession = { name: 'session', key: 'session' as const, limit: 2, window: '1m' }
    const { ask } = await host({ rules: [{ ...bySession, absent: 'skip' as const }] }, (gate) => {
      const app = express()
      app.use(session({ secret: 'of a test alone', resave: false, saveUninitialized: true }))
      app.use(gate.middleware)
      return app.get('/', (_request, response) => void response.send('ok'))
    })
    const begin = async () => {
      const { headers } = await ask()
      expect(headers.get('ratelimit')).toBe(null)
      return { headers: { cookie: headers.getSetCookie()[0]?.split(';')[0] ?? '' } }
    }
    const [one, another] = [await begin(), await begin()]
    expect(await statuses(3, () => ask('/', one))).toEqual([200, 200, 429])
    expect((await ask('/', another)).status).toBe(200)
  })
})

describe('without Express', () => {
  const rules = [perAddress, forSearch]

  /** Runs handlers one after the other, as connect does: an error skips what is left. */
  const chain =
    (gate: GateParts, limits: Record<string, ReturnType<GateParts['limit']>>): RequestListener =>
    (request, response) => {
      const end = (error?: unknown) => {
        response.statusCode = error === undefined ? 200 : 500
        response.end(error === undefined ? 'ok' : 'failed')
      }
      const limit = limits[request.url ?? '']
      gate.middleware(request, response, (error) => {
        if (error !== undefined || limit === undefined) end(error)
        else limit(request, response, end)
      })
    }

  it('Node hands its own requests to the handlers', async () => {
    const { ask, gate } = await host({ rules }, (made) =>
      chain(made, { '/search': made.limit('search') }),
    )
    const { status, headers, text } = await ask('/search')
    expect([status, text]).toEqual([200, 'ok'])
    expect(headers.get('ratelimit')).toBe('"ip";r=2;t=120, "search";r=0;t=120')
    expect((await ask('/search')).status).toBe(429)
    expect(await statuses(3, () => ask())).toEqual([200, 200, 429])
    expect((await gate.stats()).totals).toMatchObject({ requests: 5, allowed: 3, declined: 2 })
  })

  it('a forwarding header is nothing to Node: the client is the socket', async () => {
    const { ask } = await host({ rules }, (gate) => chain(gate, {}))
    const from = (index: number) =>
      ask('/', { headers: { 'x-forwarded-for': `203.0.113.${index}` } })
    expect(await statuses(4, from)).toEqual([200, 200, 200, 429])
  })

  it('the metrics and the admin routes answer too', async () => {
    const { ask } = await host({ rules, adminToken }, (gate) => (request, response) => {
      const fail = () => void response.writeHead(500).end()
      if (request.url === '/metrics') return gate.metrics(request, response, fail)
      return gate.admin(request, response, fail)
    })
    expect((await ask('/metrics')).text).toContain('tallygate_requests_total{outcome="allowed"} 0')
    expect((await ask('/stats')).status).toBe(401)
    expect((await ask('/nothing', bearing)).status).toBe(404)
    const { status, text } = await ask('/stats', bearing)
    expect([status, JSON.parse(text).scope]).toEqual([200, 'instance'])
  })
})

/*
 * The gate over real HTTP, with the clock set by hand: what passes, what is declined, what the answer says.
 */
import { connect } from 'node:net'
import type express from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Decision } from '../../src/core/decision.js'
import type { RuleOptions } from '../../src/core/rule.js'
import { createGate } from '../../src/gate/gate.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { until } from '../support/processes.js'
import { countOf, guarded, startMs, statuses } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'

const perAddress = (limit: number, more: Partial<RuleOptions> = {}): RuleOptions => ({
  name: 'ip',
  key: 'ip',
  limit,
  window: '1m',
  ...more,
})

describe('a guarded request', () => {
  it('carries both RateLimit fields of every exposed rule that applied', async () => {
    const rules = [
      { name: 'global', key: 'global' as const, limit: 1000, window: '1m' },
      perAddress(400),
      { name: 'odd', key: 'ip' as const, limit: 7, window: 1500 },
    ]
    const { ask } = await guarded({ rules })
    const { status, headers } = await ask()
    expect(status).toBe(200)
    expect(headers.get('ratelimit-policy')).toBe('"ip";q=400;w=60, "odd";q=7')
    expect(headers.get('ratelimit')).toBe('"ip";r=399;t=120, "odd";r=6;t=3')
  })

  it('HDR-04: remaining weighs the previous window and is whole', async () => {
    const { ask, clock } = await guarded({ rules: [perAddress(100, { window: '100s' })] })
    clock.set(startMs + 50_000)
    await statuses(50, () => ask())
    clock.set(startMs + 110_000)
    await statuses(9, () => ask())
    expect((await ask()).headers.get('ratelimit')).toBe('"ip";r=45;t=190')
  })

  it('is declined with a problem document, Retry-After and no caching', async () => {
    const { ask, clock } = await guarded({ rules: [perAddress(2)] })
    await statuses(2, () => ask())
    clock.advance(500)
    const { status, headers, text } = await ask()
    expect(status).toBe(429)
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('retry-after')).toBe('90')
    expect(headers.get('ratelimit')).toBe('"ip";r=0;t=90')
    expect(JSON.parse(text)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too many requests',
      status: 429,
      detail: 'ip allows 2 requests in 1m; retry in 90 s',
      'violated-policies': ['ip'],
      retryAfterMs: 89_500,
    })
  })

  it('HDR-01: waiting exactly as long as Retry-After says is enough', async () => {
    const { ask, clock } = await guarded({ rules: [perAddress(3, { window: '7s' })] })
    for (let round = 0; round < 20; round++) {
      clock.advance(137)
      const { status, headers } = await ask()
      if (status === 200) continue
      const seconds = Number(headers.get('retry-after'))
      expect(Number.isInteger(seconds) && seconds >= 1).toBe(true)
      clock.advance(seconds * 1000)
      expect((await ask()).status).toBe(200)
    }
  })

  it('HDR-08: a wait of milliseconds is one whole second', async () => {
    const { ask, clock } = await guarded({ rules: [perAddress(1, { window: '1s' })] })
    await ask()
    clock.advance(1_992)
    const { status, headers, text } = await ask()
    expect([status, headers.get('retry-after')]).toEqual([429, '1'])
    expect(JSON.parse(text).retryAfterMs).toBe(8)
  })

  it('HDR-03: a lowered limit still answers with the wait', async () => {
    const { ask, clock, gate } = await guarded({ rules: [perAddress(3)] })
    await statuses(3, () => ask())
    clock.advance(25_400)
    gate.limiter.configure('ip', { limit: 1 })
    const { status, headers } = await ask()
    // Usage 3 falls to 0 at 120 s, and one more fits where 3 · (120 − t) / 60 ≤ 0.
    expect([status, headers.get('retry-after')]).toEqual([429, '95'])
    expect(headers.get('ratelimit')).toBe('"ip";r=0;t=95')
  })

  it('CFG-04: a limit of 0 declines without a time to come back', async () => {
    const { ask } = await guarded({ rules: [perAddress(0)] })
    const { status, headers, text } = await ask()
    expect([status, headers.get('retry-after')]).toEqual([429, null])
    expect(headers.get('ratelimit')).toBe('"ip";r=0')
    expect(JSON.parse(text).retryAfterMs).toBe(null)
  })

  it('names a rule that is not exposed only where it declined', async () => {
    const { ask } = await guarded({ rules: [{ name: 'all', limit: 1, window: '1m' }] })
    expect((await ask()).headers.get('ratelimit-policy')).toBe(null)
    expect((await ask()).headers.get('ratelimit-policy')).toBe('"all";q=1;w=60')
  })

  it('is not declined by a rule in shadow, nor told of it', async () => {
    const { ask, gate } = await guarded({ rules: [perAddress(1, { mode: 'shadow' })] })
    expect(countOf(await statuses(3, () => ask()), 200)).toBe(3)
    expect((await ask()).headers.get('ratelimit')).toBe(null)
    const [rule] = (await gate.stats()).rules
    expect(rule?.totals).toEqual({ within: 0, near: 1, over: 3 })
  })

  it('HEAD is answered like GET, without a body', async () => {
    const { ask } = await guarded({ rules: [perAddress(1)] })
    await ask('/', { method: 'HEAD' })
    const { status, text } = await ask('/', { method: 'HEAD' })
    expect([status, text]).toEqual([429, ''])
  })

  it('CMB-07: parallel requests behind an asynchronous middleware never pass the limit', async () => {
    for (let round = 0; round < 20; round++) {
      const { ask } = await guarded({ rules: [perAddress(10)] }, (app, gate) => {
        app.use((_request, _response, next) => void setTimeout(next, 20))
        app.use(gate.middleware)
        app.get('/', (_request, response) => void response.send('ok'))
      })
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask()))
      const seen = answers.map((answer) => answer.status)
      expect([countOf(seen, 200), countOf(seen, 429)]).toEqual([10, 40])
    }
  })

  it('CMB-01: a declined request takes from no rule, whatever their order', async () => {
    const rules = [{ name: 'global', limit: 100, window: '1m' }, perAddress(2)]
    for (const ordered of [rules, rules.toReversed()]) {
      const { ask } = await guarded({ rules: ordered }, (app, gate) => {
        app.set('trust proxy', 1)
        app.use(gate.middleware)
        app.get('/', (_request, response) => void response.send('ok'))
      })
      const from = (ip: string) => ask('/', { headers: { 'x-forwarded-for': ip } })
      expect(countOf(await statuses(100, () => from('198.51.100.1')), 200)).toBe(2)
      const others = await statuses(120, (index) => from(`203.0.113.${index % 60}`))
      expect(countOf(others, 200)).toBe(98)
    }
  })
})

describe('a limited function', () => {
  const rules = [
    perAddress(5),
    { name: 'lookup', limit: 2, window: '1m', function: 'lookup', expose: true },
  ]
  const build = (app: express.Express, gate: ReturnType<typeof createGate>) => {
    app.use(gate.middleware)
    app.get('/', (_request, response) => void response.send('ok'))
    app.get('/lookup', gate.limit('lookup'), (_request, response) => void response.send('found'))
  }

  it('gives back what the request took before, and the fields say so', async () => {
    const { ask, gate } = await guarded({ rules }, build)
    await statuses(2, () => ask('/lookup'))
    const declined = await ask('/lookup')
    expect(declined.status).toBe(429)
    expect(declined.headers.get('ratelimit')).toBe('"ip";r=3;t=120, "lookup";r=0;t=90')
    expect(JSON.parse(declined.text)['violated-policies']).toEqual(['lookup'])
    expect(countOf(await statuses(5, () => ask('/')), 200)).toBe(3)
    expect((await gate.stats()).totals).toEqual({
      requests: 8,
      allowed: 5,
      declined: 3,
      exempt: 0,
    })
  })

  it('is not asked where a general rule has declined', async () => {
    const { ask, gate } = await guarded({ rules }, build)
    await statuses(5, () => ask('/'))
    expect((await ask('/lookup')).status).toBe(429)
    const lookup = (await gate.stats()).rules.find((rule) => rule.name === 'lookup')
    expect(lookup?.totals).toEqual({ within: 0, near: 0, over: 0 })
  })

  it('stands without the middleware in front, and the request is counted', async () => {
    const { ask, gate } = await guarded({ rules }, (app, only) => {
      app.get('/lookup', only.limit('lookup'), (_request, response) => void response.send('found'))
    })
    expect(await statuses(3, () => ask('/lookup'))).toEqual([200, 200, 429])
    expect((await gate.stats()).totals).toMatchObject({ requests: 3, declined: 1 })
  })

  it('asked before the general rules does not stand for them', async () => {
    const both = [perAddress(2), { ...perAddress(100), name: 'api', function: 'api' }]
    const { ask } = await guarded({ rules: both }, (app, gate) => {
      app.use(gate.limit('api'), gate.middleware)
      app.get('/', (_request, response) => void response.send('ok'))
    })
    expect(await statuses(4, () => ask())).toEqual([200, 200, 429, 429])
  })

  it('that declines a request twice gives back once', async () => {
    const both = [perAddress(10), { ...perAddress(1), name: 'item', function: 'item' }]
    const { ask } = await guarded({ rules: both }, (app, gate) => {
      const limit = gate.limit('item')
      app.use(gate.middleware)
      app.get('/', (_request, response) => void response.send('ok'))
      app.get('/batch', (request, response) => {
        for (let item = 0; item < 3; item++) limit(request, response, () => undefined)
      })
    })
    await statuses(5, () => ask())
    expect((await ask('/batch')).status).toBe(429)
    expect((await ask()).headers.get('ratelimit')).toMatch(/"ip";r=4;/)
  })

  it('that no rule has is refused when the route is built', () => {
    const gate = createGate({ rules: [perAddress(1)] })
    onTestFinished(() => gate.close())
    expect(() => gate.limit('lookup')).toThrow(
      "Cannot limit 'lookup': it must be the function of a rule, and no rule has one",
    )
  })
})

describe('a request is counted', () => {
  it('once, at its end, also where the client went away', async () => {
    const { gate, url } = await guarded({ rules: [perAddress(10)] }, (app, one) => {
      app.use(one.middleware)
      app.get('/slow', () => undefined)
    })
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write('GET /slow HTTP/1.1\r\nHost: test\r\n\r\n')
    await until(async () => (await gate.stats()).rules[0]?.totals.within === 1, 'the attempt')
    expect((await gate.stats()).totals.requests).toBe(0)
    socket.destroy()
    await until(async () => (await gate.stats()).totals.requests === 1, 'the count')
    expect((await gate.stats()).totals).toMatchObject({ allowed: 1, declined: 0 })
  })

  it('where the connection was gone before the gate was asked', async () => {
    let release: (() => void) | null = null
    const { gate, url } = await guarded({ rules: [perAddress(10)] }, (app, one) => {
      app.use((_request, response, next) => {
        response.on('close', () => setImmediate(next))
        release = () => undefined
      })
      app.use(one.middleware)
      app.get('/', (_request, response) => void response.send('ok'))
    })
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await until(async () => release !== null, 'the request to arrive')
    socket.destroy()
    await until(async () => (await gate.stats()).totals.requests === 1, 'the count')
    expect((await gate.stats()).totals).toMatchObject({ allowed: 1 })
  })

  it('where it waited behind another of its connection that closed', async () => {
    const { gate, url } = await guarded({ rules: [perAddress(4)] }, (app, one) => {
      app.use(one.middleware)
      app.get('/slow', () => undefined)
    })
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write('GET /slow HTTP/1.1\r\nHost: test\r\n\r\n'.repeat(6))
    await until(async () => (await gate.stats()).rules[0]?.totals.over === 2, 'the attempts')
    socket.destroy()
    await until(async () => (await gate.stats()).totals.requests === 6, 'the count')
    expect((await gate.stats()).totals).toMatchObject({ allowed: 4, declined: 2 })
  })

  it('alike by the metrics, the statistics and the client', async () => {
    const { ask, gate } = await guarded({ rules: [perAddress(2)] }, (app, one) => {
      app.get('/metrics', one.metrics)
      app.use(one.middleware)
      app.get('/', (_request, response) => void response.send('ok'))
    })
    const seen = await statuses(10, () => ask())
    const series = parseExposition((await ask('/metrics')).text)
    const totals = (await gate.stats()).totals
    for (const [outcome, count] of [
      ['allowed', countOf(seen, 200)],
      ['declined', countOf(seen, 429)],
      ['exempt', 0],
    ] as const) {
      expect(valueOf(series, 'tallygate_requests_total', { outcome })).toBe(count)
      expect(totals[outcome]).toBe(count)
    }
    const over = { rule: 'ip', mode: 'enforce', verdict: 'over' }
    expect(valueOf(series, 'tallygate_rule_decisions_total', over)).toBe(8)
  })
})

// Found by walking the list of them for each, 10,000 of one connection took five seconds.
it('finds each of thousands of pipelined requests at once, and counts each once', async () => {
  const { gate, url } = await guarded({ rules: [ipRule({ limit: 1_000_000 })] }, (app, one) => {
    app.use(one.middleware)
    app.use(one.middleware)
    app.get('/', () => {})
  })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20_000))
  const asked = () => gate.limiter.peek({ ip: '127.0.0.1' }) as Decision
  await until(async () => asked().verdicts[0]?.usage === 20_000, 'all have been asked about')
  socket.destroy()
  await until(async () => Number((await gate.stats()).totals.requests) > 0, 'they are counted')
  expect((await gate.stats()).totals).toMatchObject({ requests: 20_000, allowed: 20_000 })
})

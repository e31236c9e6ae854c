/*
 * What a declined client gets, over real HTTP: the problem document in the odd cases, the app's own answer
 * in its place, and what other middleware had set before.
 */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import express, { type ErrorRequestHandler, type Express } from 'express'
import { describe, expect, it } from 'vitest'
import type { RuleOptions } from '../../src/core/rule.js'
import { dialectNames } from '../../src/express/headers/index.js'
import type { GateParts } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { until } from '../support/processes.js'
import { guarded, statuses } from '../support/server.js'

const once1: RuleOptions = { name: 'ip', key: 'ip', limit: 1, window: '1m' }

/** The gate behind `before`; what it lets through is answered `served`. */
const behind = (before: express.RequestHandler) => (app: Express, gate: GateParts) => {
  app.use(before)
  app.use(gate.middleware)
  app.use((_request, response) => void response.send('served'))
}

describe('a declined request', () => {
  it('HEAD has every header of GET', async () => {
    const { url } = await guarded({ rules: [{ ...once1, limit: 0 }] })
    const headersOf = async (method: string) => {
      const sent = httpRequest(url, { method, agent: false }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      let size = 0
      for await (const chunk of response) size += (chunk as Buffer).length
      const { date: _date, ...headers } = response.headers
      return { status: response.statusCode, headers, size }
    }
    const got = await headersOf('GET')
    const head = await headersOf('HEAD')
    expect(head).toEqual({ ...got, size: 0 })
    expect(got.headers['content-length']).toBe(String(got.size))
  })

  it('is no 304 and no 206, whatever the client has already', async () => {
    const tagged = behind((_request, response, next) => {
      response.set({ ETag: '"one"', 'Last-Modified': 'Wed, 21 Oct 2015 07:28:00 GMT' })
      next()
    })
    const { ask } = await guarded({ rules: [{ ...once1, limit: 0 }] }, tagged)
    for (const headers of [
      { 'if-none-match': '"one"' },
      { 'if-none-match': '*' },
      { 'if-modified-since': 'Wed, 21 Oct 2026 07:28:00 GMT' },
      { range: 'bytes=0-9' },
    ]) {
      const { status, text } = await ask('/', { headers })
      expect([status, JSON.parse(text).status]).toEqual([429, 429])
    }
  })

  it('is never cached, whatever was allowed before, and varies as it did', async () => {
    const cached = behind((_request, response, next) => {
      response.set({ 'Cache-Control': 'public, max-age=600', Vary: 'Origin' })
      next()
    })
    const { ask } = await guarded({ rules: [once1] }, cached)
    expect((await ask()).headers.get('cache-control')).toBe('public, max-age=600')
    const { headers } = await ask()
    expect([headers.get('cache-control'), headers.get('vary')]).toEqual(['no-store', 'Origin'])
  })

  it('may be read by a page of another origin, with the time to come back, where CORS lets it', async () => {
    const exposing = ['', 'X-Total', '*', 'x-total, retry-AFTER', 'X-Retry-After']
    const exposed: (string | null)[] = []
    for (const names of exposing) {
      const cors = behind((_request, response, next) => {
        response.set('Access-Control-Allow-Origin', 'https://app.example')
        if (names !== '') response.set('Access-Control-Expose-Headers', names)
        next()
      })
      const { ask } = await guarded({ rules: [once1] }, cors)
      const served = await ask()
      expect(served.headers.get('access-control-expose-headers') ?? '').toBe(names)
      const { status, headers } = await ask()
      expect([status, headers.get('access-control-allow-origin')]).toEqual([
        429,
        'https://app.example',
      ])
      exposed.push(headers.get('access-control-expose-headers'))
    }
    expect(exposed).toEqual([
      'Retry-After',
      'X-Total, Retry-After',
      '*, Retry-After',
      'x-total, retry-AFTER',
      'X-Retry-After, Retry-After',
    ])
  })

  it('says nothing of CORS where nobody else did', async () => {
    const { ask } = await guarded({ rules: [once1] })
    expect((await ask()).status).toBe(200)
    const names = [...(await ask()).headers.keys()]
    expect(names.filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  it('whose answer was sent before keeps that answer, and is counted', async () => {
    const reached: string[] = []
    const errors: unknown[] = []
    const { ask, gate } = await guarded({ rules: [once1] }, (app, one) => {
      app.use((_request, response, next) => {
        response.send('early')
        next()
      })
      app.use(one.middleware)
      app.use((request) => void reached.push(request.path))
      app.use(((error, _request, _response, _next) => errors.push(error)) as ErrorRequestHandler)
    })
    for (const path of ['/allowed', '/declined']) {
      expect(await ask(path)).toMatchObject({ status: 200, text: 'early' })
    }
    await until(async () => (await gate.stats()).totals.requests === 2, 'the count')
    expect((await gate.stats()).totals).toMatchObject({ allowed: 1, declined: 1 })
    expect({ reached, errors }).toEqual({ reached: ['/allowed'], errors: [] })
  })

  it('whose answer was begun before gets no more of it', async () => {
    const begun = behind((_request, response, next) => {
      response.write('the first half')
      next()
    })
    const { ask, gate } = await guarded({ rules: [{ ...once1, limit: 0 }] }, begun)
    await expect(ask()).rejects.toThrow(/terminated|fetch failed/)
    await until(async () => (await gate.stats()).totals.declined === 1, 'the count')
  })

  it('whose client is gone is counted, and nothing is thrown', async () => {
    let isHeld = false
    const late = behind((_request, response, next) => {
      response.on('close', () => setImmediate(next))
      isHeld = true
    })
    const errors: unknown[] = []
    const { gate, url } = await guarded(
      { rules: [{ ...once1, limit: 0 }], onDecline: (_request, response) => response.end() },
      (app, one) => {
        late(app, one)
        app.use(((error, _request, _response, next) => {
          errors.push(error)
          next(error)
        }) as ErrorRequestHandler)
      },
    )
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await until(async () => isHeld, 'the request to arrive')
    socket.destroy()
    await until(async () => (await gate.stats()).totals.requests === 1, 'the count')
    expect((await gate.stats()).totals).toMatchObject({ declined: 1 })
    expect(errors).toEqual([])
  })

  it.each(dialectNames)('in %s waits until strict rules let it pass too', async (headers) => {
    const rules: RuleOptions[] = [
      {
        ...once1,
        limit: 2,
        window: '1h',
        strict: true,
        expose: false,
        algorithm: 'rolling-window',
      },
      { ...once1, name: 'item', function: 'item' },
    ]
    const { ask, clock } = await guarded({ rules, headers }, (app, gate) => {
      app.use(gate.middleware)
      app.get('/', gate.limit('item'), (_request, response) => void response.send('served'))
    })
    expect((await ask()).status).toBe(200)
    clock.advance(1_000)
    const declined = await ask()
    // The strict rule keeps this request's attempt and is full, though it declined nothing and is not named.
    expect([declined.status, declined.headers.get('retry-after')]).toEqual([429, '3599'])
    const body = JSON.parse(declined.text)
    expect([body['violated-policies'], body.retryAfterMs]).toEqual([['item'], 3_599_000])
    expect(declined.headers.get('ratelimit')).toBe(
      headers === 'draft-8' ? '"item";r=0;t=119' : null,
    )
    clock.advance(3_598_999)
    expect((await ask()).status).toBe(429)
  })
})

describe('onDecline', () => {
  const build = async (
    onDecline: GateOptions['onDecline'],
    more: Pick<GateOptions, 'headers'> = {},
  ) => {
    const reached: string[] = []
    const errors: unknown[] = []
    const made = await guarded({ rules: [once1], onDecline, ...more }, (app, gate) => {
      app.use(gate.middleware)
      app.use((_request, response) => {
        reached.push('handler')
        response.send('served')
      })
      app.use(((error, _request, response, _next) => {
        errors.push(error)
        response.send('failed')
      }) as ErrorRequestHandler)
    })
    expect((await made.ask()).status).toBe(200)
    reached.length = 0
    return { ...made, reached, errors }
  }

  it.each(dialectNames)('in %s finds status and headers set', async (headers) => {
    const { ask, gate, reached } = await build(
      (_request, response, decision) => response.json({ sorry: decision.rule }),
      { headers },
    )
    const { status, headers: got, text } = await ask()
    expect([status, JSON.parse(text)]).toEqual([429, { sorry: 'ip' }])
    expect(got.get('content-type')).toBe('application/json; charset=utf-8')
    expect([got.get('retry-after'), got.get('cache-control')]).toEqual(['120', 'no-store'])
    const names = [...got.keys()].filter((name) => name.includes('ratelimit'))
    expect(names.length).toBe({ 'draft-8': 2, 'draft-6': 4, legacy: 3, off: 0 }[headers])
    expect(reached).toEqual([])
    expect((await gate.stats()).totals).toMatchObject({ requests: 2, allowed: 1, declined: 1 })
  })

  it('is given the request, the response and the decision', async () => {
    const seen: unknown[] = []
    const { ask } = await build((request, response, { allowed, rule, limit, retryAfterMs }) => {
      seen.push(request.originalUrl, response.req === request, {
        allowed,
        rule,
        limit,
        retryAfterMs,
      })
      response.end()
    })
    expect(await ask('/there?x=1')).toMatchObject({ status: 429, text: '' })
    const decision = { allowed: false, rule: 'ip', limit: 1, retryAfterMs: 120_000 }
    expect(seen).toEqual(['/there?x=1', true, decision])
  })

  it('may choose another status, and is counted as declined all the same', async () => {
    const { ask, gate } = await build((_request, response) => {
      response.statusCode = 200
      response.removeHeader('Retry-After')
      response.end('a smaller page')
    })
    const { status, headers, text } = await ask()
    expect([status, headers.get('retry-after'), text]).toEqual([200, null, 'a smaller page'])
    expect((await gate.stats()).totals).toMatchObject({ declined: 1 })
  })

  it('may answer later', async () => {
    const { ask, reached } = await build(async (_request, response) => {
      await new Promise(setImmediate)
      response.send('later')
    })
    expect(await ask()).toMatchObject({ status: 429, text: 'later' })
    expect(reached).toEqual([])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('mine')
      },
    ],
    [
      'rejects a promise of another making',
      // oxlint-disable-next-line unicorn/no-thenable -- as promises of libraries are
      () => ({ then: (_: unknown, fail: (error: Error) => void) => fail(new Error('mine')) }),
    ],
  ])('that %s is answered by the app’s error handler', async (_how, onDecline) => {
    const { ask, errors, reached, gate } = await build(onDecline)
    expect(await ask()).toMatchObject({ status: 429, text: 'failed' })
    expect(errors).toEqual([new Error('mine')])
    expect(reached).toEqual([])
    expect((await gate.stats()).totals).toMatchObject({ declined: 1 })
  })

  it.each([undefined, null, 'route', 'router', 0, ''])(
    'that fails with %j, which Express takes for going on, does not let the request on',
    async (failure) => {
      for (const onDecline of [
        // oxlint-disable-next-line typescript/only-throw-error -- what callers without types may do
        () => {
          throw failure
        },
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- likewise
        () => Promise.reject(failure),
      ]) {
        const { ask, errors, reached } = await build(onDecline)
        expect((await ask()).text).toBe('failed')
        expect(reached).toEqual([])
        expect(String(errors)).toContain('onDecline must fail with an Error: received')
      }
    },
  )

  it('is called once for a request that a route declines, however often', async () => {
    const rules: RuleOptions[] = [
      { ...once1, limit: 9 },
      { ...once1, name: 'item', function: 'item' },
    ]
    const told: (string | null)[] = []
    const onDecline: GateOptions['onDecline'] = (_request, response, decision) => {
      told.push(decision.rule)
      setImmediate(() => response.end())
    }
    const { ask, gate } = await guarded({ rules, onDecline }, (app, one) => {
      const limit = one.limit('item')
      app.use(one.middleware)
      app.use((request, response) => {
        for (let item = 0; item < 4; item++) limit(request, response, () => undefined)
      })
    })
    const { status, headers } = await ask()
    expect([status, told]).toEqual([429, ['item']])
    expect(headers.get('ratelimit')).toBe('"ip";r=9;t=0, "item";r=0;t=120')
    expect((await gate.stats()).totals).toMatchObject({ declined: 1 })
  })

  it('is not called for a response that has begun', async () => {
    let calls = 0
    const onDecline = () => calls++
    const eager = behind((_request, response, next) => {
      response.send('early')
      next()
    })
    const { ask } = await guarded({ rules: [{ ...once1, limit: 0 }], onDecline }, eager)
    expect(await statuses(3, () => ask())).toEqual([200, 200, 200])
    expect(calls).toBe(0)
  })
})

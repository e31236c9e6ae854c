/*
 * What a request costs, and what gives it back: `cost`, `skipFailed`, `skipSuccessful`.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Express } from 'express'
import { describe, expect, it } from 'vitest'
import type { GateParts } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { until } from '../support/processes.js'
import { guarded, statuses, type Guarded } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'

type Options = Omit<GateOptions, 'clock'>

/** `GET /STATUS` is answered with that status; `/route` has a limit of its own; `/slow` begins and waits. */
function build(app: Express, gate: GateParts): void {
  app.use(gate.middleware)
  app.get('/slow', (_request, response) => void response.write('begun'))
  app.get('/route', gate.limit('route'), (_request, response) => void response.sendStatus(500))
  app.get(
    '/:status',
    (request, response) => void response.sendStatus(Number(request.params.status)),
  )
  app.use((error: Error, _request: unknown, response: { status: Function }, _next: unknown) => {
    response.status(503).send(error.message)
  })
}

const rules = [
  ipRule({ limit: 3 }),
  { name: 'route', key: 'ip', limit: 2, window: '1m', function: 'route' } as const,
]
const open = (options: Options = {}) => guarded({ rules, ...options }, build)

/** With another rule by address. */
const withRule = (fields: Parameters<typeof ipRule>[0]) => [ipRule(fields), ...rules.slice(1)]

async function usageOf({ gate }: Guarded, rule = 'ip'): Promise<number> {
  // Refunds follow the end of the response, which the client sees first.
  await new Promise((resolve) => void setImmediate(resolve))
  const decision = await gate.limiter.peek({ ip: '127.0.0.1' }, { also: 'route' })
  return decision.verdicts.find((each) => each.rule === rule)?.usage ?? NaN
}

describe('cost', () => {
  it('is what the request takes from every rule', async () => {
    const one = await open({ cost: ({ url }) => (url === '/200' ? 1 : 2) })
    expect(await statuses(2, () => one.ask('/201'))).toEqual([201, 429])
    expect((await one.ask('/200')).status).toBe(200)
    expect(await usageOf(one)).toBe(3)
  })

  it('of 0 charges the request to no rule', async () => {
    const one = await open({ cost: () => 0 })
    expect(new Set(await statuses(5, () => one.ask('/200')))).toEqual(new Set([200]))
    expect((await one.ask('/200')).headers.get('ratelimit')).toBeNull()
    expect((await one.gate.stats()).totals).toMatchObject({ allowed: 6, declined: 0 })
  })

  it('is asked once a request, and holds for its routes too', async () => {
    let askedCount = 0
    const one = await open({
      cost: () => {
        askedCount++
        return 2
      },
    })
    expect((await one.ask('/route')).status).toBe(500)
    expect(askedCount).toBe(1)
    expect([await usageOf(one), await usageOf(one, 'route')]).toEqual([2, 2])
  })

  it.each([
    ['a fraction', () => 1.5, 'cost must be a whole number from 0: received 1.5'],
    ['negative', () => -1, 'received -1'],
    ['NaN', () => NaN, 'received NaN'],
    ['a promise', (async () => 1) as unknown as () => number, 'must be known at once'],
    [
      'a promise that is rejected',
      (async () => Promise.reject(new Error('lost'))) as unknown as () => number,
      'must be known at once',
    ],
    [
      'an error',
      () => {
        throw new Error('no such tariff')
      },
      'no such tariff',
    ],
  ])('that is %s goes to the error handler, and nobody passes', async (_, cost, message) => {
    const one = await open({ cost })
    const { status, text } = await one.ask('/200')
    expect([status, text.includes(message)]).toEqual([503, true])
    expect((await one.gate.stats()).totals).toMatchObject({ requests: 1, declined: 0 })
  })
})

describe('a cost that fails', () => {
  it('leaves no request uncounted, though its client had gone before the gate was asked', async () => {
    const cost = () => {
      throw new Error('no such tariff')
    }
    const one = await guarded({ rules, cost }, (app, gate) => {
      app.use((_request, response, next) => void response.on('close', () => next()))
      app.use(gate.middleware)
      app.use((_error: Error, _request: unknown, _response: unknown, _next: unknown) => {})
    })
    const socket = connect(Number(new URL(one.url).port), '127.0.0.1')
    const arrived = once(one.server, 'request')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await arrived
    socket.destroy()
    await until(async () => (await one.gate.stats()).totals.requests === 1, 'it is counted')
    expect((await one.gate.stats()).totals).toMatchObject({ requests: 1, declined: 0 })
  })
})

describe('a request that failed', () => {
  it('gets back what it took with skipFailed, from its routes too', async () => {
    const one = await open({ skipFailed: true })
    expect(await statuses(6, () => one.ask('/404'))).toEqual([404, 404, 404, 404, 404, 404])
    expect(await statuses(4, () => one.ask('/route'))).toEqual([500, 500, 500, 500])
    expect([await usageOf(one), await usageOf(one, 'route')]).toEqual([0, 0])
    expect(await statuses(4, () => one.ask('/200'))).toEqual([200, 200, 200, 429])
  })

  it('keeps paying without it', async () => {
    const one = await open()
    expect(await statuses(4, () => one.ask('/404'))).toEqual([404, 404, 404, 429])
  })
})

describe('a request that went well', () => {
  it('gets back what it took with skipSuccessful: only failures count', async () => {
    const one = await open({ skipSuccessful: true })
    expect(new Set(await statuses(6, () => one.ask('/200')))).toEqual(new Set([200]))
    expect(await statuses(2, () => one.ask('/304'))).toEqual([304, 304])
    expect(await statuses(4, () => one.ask('/401'))).toEqual([401, 401, 401, 429])
    expect(await usageOf(one)).toBe(3)
  })

  it('keeps what it took in a strict rule', async () => {
    const one = await open({ rules: withRule({ limit: 3, strict: true }), skipSuccessful: true })
    expect(await statuses(4, () => one.ask('/200'))).toEqual([200, 200, 200, 429])
  })

  it('is not refunded for being declined', async () => {
    const one = await open({
      skipFailed: true,
      skipSuccessful: true,
      rules: withRule({ limit: 0 }),
    })
    expect(await statuses(3, () => one.ask('/200'))).toEqual([429, 429, 429])
    expect(await usageOf(one)).toBe(0)
  })
})

describe('a rule in shadow, and a candidate', () => {
  it('get back what an enforced one would, so that they foresee what it would decline', async () => {
    const one = await open({
      rules: withRule({ mode: 'shadow', limit: 5, candidates: [{ limit: 3 }] }),
      skipSuccessful: true,
    })
    await statuses(12, () => one.ask('/200'))
    const [shadow] = (await one.gate.stats()).rules
    expect(shadow?.totals).toEqual({ within: 12, near: 0, over: 0 })
    expect(await one.gate.exposition.text()).toContain(
      'tallygate_candidate_decisions_total{rule="ip",candidate="3/1m",verdict="over"} 0',
    )
  })
})

describe('a request that the client breaks off', () => {
  it.each([
    { skipFailed: true },
    { skipSuccessful: true },
    { skipFailed: true, skipSuccessful: true },
  ])('keeps what it took with %j: nobody gets work for nothing', async (options) => {
    const one = await open(options)
    for (let turn = 0; turn < 2; turn++) {
      const socket = connect(Number(new URL(one.url).port), '127.0.0.1')
      socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
      await once(socket, 'data')
      socket.destroy()
    }
    await until(async () => (await one.gate.stats()).totals.requests === 2, 'both are counted')
    expect(await usageOf(one)).toBe(2)
  })
})

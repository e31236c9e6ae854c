/*
 * Limits around functions: `gate.run` for a request, `gate.guard` by itself. Over real HTTP where a request
 * is concerned.
 */
import type { Express, Request } from 'express'
import { describe, expect, it } from 'vitest'
import { LimitExceeded } from '../../src/index.js'
import type { GateParts } from '../../src/gate/gate.js'
import { createGate } from '../../src/gate/gate.js'
import { manualClock } from '../../src/testing/index.js'
import { guarded, host, statuses, startMs, type Answer } from '../support/server.js'
import { ipRule, messageOf } from '../support/units/limits.js'

const perMinute = { window: '1m' }
const parsing = { name: 'parse', key: 'global', limit: 3, function: 'parse', ...perMinute } as const
const searching = { name: 'search', key: 'ip', limit: 2, function: 'search', ...perMinute } as const

/** A gate on a clock set by hand, closed when the test ends by itself: it keeps nothing alive. */
const gateOf = (...rules: Parameters<typeof createGate>[0]['rules'] & {}[]) =>
  createGate({ rules, clock: manualClock(startMs) })

/** What a promise rejects with; fails the test where it does not. */
async function rejectionOf(promise: Promise<unknown>): Promise<LimitExceeded> {
  try {
    await promise
  } catch (error) {
    return error as LimitExceeded
  }
  throw new Error('it did not reject')
}

const decisionsOf = async (gate: GateParts, name: string) =>
  (await gate.stats()).rules.find((rule) => rule.name === name)?.totals

describe('a guarded function', () => {
  it('is called with what it is given, and answers with what it gives', async () => {
    const guardedSum = gateOf(parsing).guard('parse', (a: number, b: number) => a + b)
    await expect(guardedSum(1, 2)).resolves.toBe(3)
    const later = gateOf(parsing).guard('parse', async (text: string) => text.length)
    await expect(later('four')).resolves.toBe(4)
  })

  it('keeps its this', async () => {
    const gate = gateOf(parsing)
    const counter = {
      count: 0,
      add: gate.guard('parse', function add(this: { count: number }, by: number) {
        return (this.count += by)
      }),
    }
    await counter.add(2)
    expect(counter.count).toBe(2)
  })

  it('rejects with what an answer needs once the limit is reached, and is not called', async () => {
    let callCount = 0
    const gate = gateOf(parsing)
    const work = gate.guard('parse', () => callCount++)
    for (let turn = 0; turn < 3; turn++) await work()
    const error = await rejectionOf(work())
    expect(error).toBeInstanceOf(LimitExceeded)
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({
      name: 'LimitExceeded',
      message: 'parse allows 3 requests in 1m; retry in 80 s',
      status: 429,
      headers: { 'Retry-After': '80', 'Cache-Control': 'no-store' },
      decision: { allowed: false, rule: 'parse', limit: 3, remaining: 0, retryAfterMs: 80_000 },
    })
    expect(callCount).toBe(3)
    expect(await decisionsOf(gate, 'parse')).toEqual({ within: 2, near: 1, over: 1 })
    expect((await gate.stats()).totals.requests).toBe(0)
  })

  it('rejects without Retry-After where waiting never helps', async () => {
    const { headers, decision } = await rejectionOf(
      gateOf({ ...parsing, limit: 0 }).guard('parse', () => 1)(),
    )
    expect(headers).toEqual({ 'Cache-Control': 'no-store' })
    expect(decision.retryAfterMs).toBe(Infinity)
  })

  it('CMB-07: lets no more through where calls are made in parallel', async () => {
    let running = 0
    const work = gateOf(parsing).guard('parse', async () => {
      running++
      await new Promise((resolve) => void setImmediate(resolve))
    })
    const settled = await Promise.allSettled(Array.from({ length: 50 }, () => work()))
    expect(settled.filter(({ status }) => status === 'fulfilled').length).toBe(3)
    expect(running).toBe(3)
  })

  it('rejects with the error of the function itself, and keeps what it took', async () => {
    const gate = gateOf({ ...parsing, limit: 1 })
    const work = gate.guard('parse', () => {
      throw new TypeError('its own')
    })
    await expect(work()).rejects.toThrow('its own')
    expect(await rejectionOf(work())).toBeInstanceOf(LimitExceeded)
  })

  it.each([
    ['a name that no rule has', 'pares', parsing, "Cannot guard 'pares': it must be the function"],
    ['a rule by address', 'search', searching, 'asks about a request (key ip)'],
    [
      'a rule with match',
      'parse',
      { ...parsing, match: { paths: ['/x'] } },
      'asks about a request (match), and a guarded function has none: use gate.run',
    ],
    [
      'a rule with plans',
      'parse',
      { ...parsing, limit: () => 1 },
      'asks about a request (limit is a function)',
    ],
  ])('is refused when it is built, for %s', (_, name, rule, message) => {
    const gate = gateOf(rule)
    expect(messageOf(() => gate.guard(name, () => 1))).toContain(message)
  })
})

/** `GET /work` runs the function that the query names, as often as it says; errors go to Express. */
function build(app: Express, gate: GateParts): void {
  app.use(gate.middleware)
  app.get('/work', async (request, response) => {
    const { name, times = '1' } = request.query as Record<string, string>
    const results: unknown[] = []
    for (let turn = 0; turn < Number(times); turn++) {
      results.push(await gate.run(name ?? '', request, () => `done ${turn}`))
    }
    response.json(results)
  })
  app.get('/caught', async (request, response) => {
    try {
      await gate.run('search', request, () => 1)
      response.send('fresh')
    } catch {
      response.send('stale')
    }
  })
  app.get('/parallel', async (request: Request, response) => {
    const runs = Array.from({ length: 5 }, () => gate.run('search', request, () => 1))
    const settled = await Promise.allSettled(runs)
    response.json(settled.map(({ status }) => status))
  })
}

const rules = [ipRule({ limit: 10 }), parsing, searching]
const work = (name: string, times = 1) => `/work?name=${name}&times=${times}`
const remainingOf = ({ headers }: Answer) => headers.get('ratelimit')

describe('gate.run', () => {
  it('does the work and tells the limits of both', async () => {
    const { ask } = await guarded({ rules }, build)
    const answer = await ask(work('search'))
    expect([answer.status, answer.text]).toEqual([200, '["done 0"]'])
    expect(remainingOf(answer)).toBe('"ip";r=9;t=120, "search";r=1;t=120')
  })

  it('is answered as a decline where nobody catches it, and gives back what the request took', async () => {
    const { ask, gate } = await guarded({ rules }, build)
    await ask(work('search', 2))
    const declined = await ask(work('search'))
    expect(declined.status).toBe(429)
    expect(declined.headers.get('retry-after')).toBe('90')
    expect(declined.headers.get('cache-control')).toBe('no-store')
    expect(remainingOf(declined)).toBe('"ip";r=9;t=120, "search";r=0;t=90')
    const { totals } = await gate.stats()
    expect(totals).toEqual({ requests: 2, allowed: 1, declined: 1, exempt: 0 })
  })

  it('counts the request as declined though its handler answers something else', async () => {
    const { ask, gate } = await guarded({ rules }, build)
    const answers = [await ask('/caught'), await ask('/caught'), await ask('/caught')]
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [200, 'fresh'],
      [200, 'fresh'],
      [200, 'stale'],
    ])
    expect((await gate.stats()).totals).toMatchObject({ allowed: 2, declined: 1 })
  })

  it('lets no more through where a request runs in parallel', async () => {
    const { ask } = await guarded({ rules }, build)
    const { text } = await ask('/parallel')
    expect(JSON.parse(text).filter((status: string) => status === 'fulfilled').length).toBe(2)
  })

  it('rejects for a name that no rule has', async () => {
    const { ask } = await guarded({ rules }, (app, gate) => {
      app.get('/', async (request, response) => {
        const error = await rejectionOf(gate.run('pares', request, () => 1))
        response.send(error.message)
      })
    })
    expect((await ask()).text).toContain("Cannot run 'pares': it must be the function of a rule")
  })

  it('counts a request that came by no middleware, once', async () => {
    const { ask, gate } = await guarded({ rules }, (app, one) => {
      app.get('/', async (request, response) => {
        response.send(await one.run('search', request, () => 'done'))
      })
    })
    expect(await statuses(3, () => ask())).toEqual([200, 200, 429])
    expect((await gate.stats()).totals).toMatchObject({ requests: 3, allowed: 2, declined: 1 })
  })

  it('asks nothing for an exempt request', async () => {
    const { ask, gate } = await guarded({ rules, exempt: { ips: ['127.0.0.0/8'] } }, build)
    expect(await statuses(4, () => ask(work('search')))).toEqual([200, 200, 200, 200])
    expect(await decisionsOf(gate, 'search')).toEqual({ within: 0, near: 0, over: 0 })
  })

  it('leaves what a declined request does afterwards unpaid, as all that it does', async () => {
    const { ask, gate } = await guarded(
      { rules: [{ ...searching, name: 'closed', function: 'closed', limit: 0 }, searching] },
      (app, one) => {
        app.use(one.middleware)
        app.get('/both', async (request, response) => {
          const runs = ['closed', 'search'].map((name) => one.run(name, request, () => 1))
          response.json(await Promise.allSettled(runs))
        })
      },
    )
    for (let turn = 0; turn < 3; turn++) await ask('/both')
    await new Promise((resolve) => void setImmediate(resolve))
    const { verdicts } = await gate.limiter.peek({ ip: '127.0.0.1' }, { function: 'search' })
    expect(verdicts[0]?.usage).toBe(0)
    expect((await gate.stats()).totals).toMatchObject({ allowed: 0, declined: 3 })
  })

  it('counts a request whose client had gone before the first attempt, once', async () => {
    let arrived = () => {}
    const here = new Promise<void>((resolve) => void (arrived = resolve))
    let done = () => {}
    const over = new Promise<void>((resolve) => void (done = resolve))
    const { gate, url } = await guarded({ rules }, (app, one) => {
      app.get('/', async (request, response) => {
        arrived()
        await new Promise((resolve) => void response.on('close', resolve))
        await one.run('search', request, () => 1)
        await one.run('search', request, () => 1)
        done()
      })
    })
    const controller = new AbortController()
    const asking = fetch(url, { signal: controller.signal }).catch(() => null)
    await here
    controller.abort()
    await asking
    await over
    expect((await gate.stats()).totals).toMatchObject({ requests: 1, allowed: 1 })
  })

  it('rejects once where both skip and cost fail, and leaves no rejection behind', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    const failing = {
      rules,
      skip: async () => Promise.reject(new Error('no skip')),
      cost: () => {
        throw new Error('no tariff')
      },
    }
    const { ask } = await host(failing, (gate) => async (request, response) => {
      const { message } = await rejectionOf(gate.run('search', request, () => 1))
      response.end(message)
    })
    expect((await ask()).text).toBe('no tariff')
    await new Promise((resolve) => void setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })

  it('does not begin work that is declined', async () => {
    let begunCount = 0
    const { ask } = await guarded({ rules }, (app, gate) => {
      app.get('/', async (request, response) => {
        await gate.run('search', request, () => begunCount++)
        response.end()
      })
    })
    await statuses(5, () => ask())
    expect(begunCount).toBe(2)
  })
})

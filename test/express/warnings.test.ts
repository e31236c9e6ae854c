/*
 * Mistakes that show in traffic: each is warned of once and counted each time, and what only looks like one
 * is not.
 */
import express, { type Express } from 'express'
import session from 'express-session'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { WarningCode } from '../../src/core/warnings.js'
import { createGate, type GateParts } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { manualClock } from '../../src/testing/index.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { until } from '../support/processes.js'
import { guarded, startMs, statuses } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'
import { collectingLogger } from '../support/units/log.js'

type Build = (app: Express, gate: GateParts) => void

const answerOk = (app: Express) =>
  void app.get('/', (_request, response) => void response.send('ok'))

/** A guarded app, with what it has warned of by then. */
async function watched(build: Build, options: Omit<GateOptions, 'clock'> = {}) {
  const { logger, lines } = collectingLogger()
  const parts = await guarded({ rules: [ipRule({ limit: 100 })], logger, ...options }, build)
  const codes = () => lines.map(({ fields }) => fields['code'])
  const countOf = async (code: WarningCode) =>
    valueOf(parseExposition(await parts.gate.exposition.text()), 'tallygate_warnings_total', {
      code,
    })
  return { ...parts, codes, countOf }
}

describe('TALLYGATE_WARN_TRUST_PROXY_TRUE', () => {
  const trusting =
    (trust: unknown): Build =>
    (app, gate) => {
      app.set('trust proxy', trust)
      app.use(gate.middleware)
      answerOk(app)
    }

  it('is said once where any client may forge its address', async () => {
    const { ask, codes, countOf } = await watched(trusting(true))
    await statuses(3, () => ask())
    expect(codes()).toEqual(['TALLYGATE_WARN_TRUST_PROXY_TRUE'])
    expect(await countOf('TALLYGATE_WARN_TRUST_PROXY_TRUE')).toBe(3)
  })

  it.each([false, 1, 2, 'loopback, 10.0.0.0/8'])('is not said of %j', async (trust) => {
    const { ask, codes } = await watched(trusting(trust))
    await statuses(3, () => ask())
    expect(codes()).toEqual([])
  })
})

describe('TALLYGATE_WARN_NO_ADDRESS', () => {
  it('is not said of a connection that closed before the gate was asked', async () => {
    const { codes, gate, url } = await watched((app, one) => {
      app.use((request, _response, next) => {
        request.socket.once('close', () => setImmediate(next)).destroy()
      })
      app.use(one.middleware)
    })
    expect(await fetch(url).catch(() => 'gone')).toBe('gone')
    await until(async () => (await gate.stats()).totals.requests === 1, 'the count')
    expect(codes()).toEqual([])
    expect(await gate.exposition.text()).toContain('identity_total{kind="missing"} 1\n')
  })
})

describe('TALLYGATE_WARN_MOUNTED_TWICE', () => {
  const twice = (first: GateParts, second: GateParts): Build => {
    return (app) => {
      const router = express.Router()
      router.use(second.middleware)
      app.use(first.middleware, router)
      answerOk(app)
    }
  }

  it('CMB-08: is said once where the same gate is mounted twice on one path', async () => {
    const { ask, gate, codes, countOf } = await watched(
      (app, both) => twice(both, both)(app, both),
      {
        rules: [ipRule({ limit: 10 })],
      },
    )
    const seen = await statuses(11, () => ask())
    expect(seen).toEqual([...Array.from({ length: 10 }, () => 200), 429])
    expect(codes()).toEqual(['TALLYGATE_WARN_MOUNTED_TWICE'])
    expect(await countOf('TALLYGATE_WARN_MOUNTED_TWICE')).toBe(10)
    expect((await gate.stats()).totals).toMatchObject({ allowed: 10, declined: 1 })
  })

  it('CMB-08: is not said of two gates on one path, nor of one gate on two', async () => {
    const { logger, lines } = collectingLogger()
    const other = createGate({ rules: [ipRule({ name: 'other' })], logger })
    onTestFinished(() => other.close())
    const { ask, codes } = await watched(
      (app, gate) => {
        app.use('/a', gate.middleware)
        app.use('/b', gate.middleware)
        twice(gate, other)(app, gate)
        app.get('/c', gate.limit('c'), (_request, response) => void response.send('ok'))
      },
      { rules: [ipRule(), ipRule({ name: 'c', function: 'c' })] },
    )
    await ask()
    await ask('/c')
    expect([...codes(), ...lines]).toEqual([])
  })
})

describe('TALLYGATE_WARN_SESSION_AFTER_GATE', () => {
  const sessionRules = [
    { name: 'session', key: 'session' as const, limit: 100, window: '1m' },
    ipRule({ limit: 100 }),
  ]
  const sessions = () =>
    session({ secret: 'of no account', resave: false, saveUninitialized: false })
  const after: Build = (app, gate) => {
    app.use(gate.middleware, sessions())
    answerOk(app)
  }
  const before: Build = (app, gate) => {
    app.use(sessions(), gate.middleware)
    answerOk(app)
  }
  const without: Build = (app, gate) => {
    app.use(gate.middleware)
    answerOk(app)
  }

  it('is said once where session() is mounted behind the gate', async () => {
    const { ask, codes, countOf } = await watched(after, { rules: sessionRules })
    await statuses(3, () => ask())
    expect(codes()).toEqual(['TALLYGATE_WARN_SESSION_AFTER_GATE'])
    expect(await countOf('TALLYGATE_WARN_SESSION_AFTER_GATE')).toBe(3)
  })

  it.each([
    ['in front of it', before, {}],
    ['nowhere', without, {}],
    ['behind it, and no rule asks for a session', after, { rules: [ipRule()] }],
    ['behind it, and the session comes from elsewhere', after, { session: () => 'somebody' }],
  ])('is not said where session() is %s', async (_, build, options) => {
    const { ask, codes } = await watched(build, { rules: sessionRules, ...options })
    const headers = { cookie: 'connect.sid=s%3Aabc.def' }
    await statuses(3, () => ask('/', { headers }))
    expect(codes()).toEqual([])
  })
})

describe('TALLYGATE_WARN_GATE_PER_REQUEST', () => {
  /** A gate for each request, made as the handler does it; `stepMs` pass before each. */
  function perRequest(stepMs: number) {
    const { logger, lines } = collectingLogger()
    const clock = manualClock(startMs)
    const build: Build = (app) => {
      const gates: GateParts[] = []
      onTestFinished(async () => void (await Promise.all(gates.map((gate) => gate.close()))))
      app.use(async (request, response, next) => {
        clock.advance(stepMs)
        await Promise.resolve()
        const gate = createGate({ rules: [ipRule({ limit: 1 })], clock, logger })
        gates.push(gate)
        gate.middleware(request, response, next)
      })
      answerOk(app)
    }
    return { build, codes: () => lines.map(({ fields }) => fields['code']) }
  }

  it('is said once where each request makes a gate', async () => {
    const { build, codes } = perRequest(10)
    const { ask } = await guarded({ rules: [ipRule()] }, build)
    await statuses(10, () => ask())
    expect(codes()).toEqual([])
    await statuses(30, () => ask())
    expect(codes()).toEqual(['TALLYGATE_WARN_GATE_PER_REQUEST'])
  })

  it('is not said of gates that are made now and then', async () => {
    const { build, codes } = perRequest(10_000)
    const { ask } = await guarded({ rules: [ipRule()] }, build)
    await statuses(40, () => ask())
    expect(codes()).toEqual([])
  })

  it('is not said of many gates that were made before the first request', async () => {
    const { logger, lines } = collectingLogger()
    const clock = manualClock(startMs)
    const { ask } = await guarded({ rules: [ipRule()], clock, logger }, (app) => {
      for (let count = 0; count < 40; count++) {
        clock.advance(1)
        const gate = createGate({ rules: [ipRule()], clock, logger })
        onTestFinished(() => gate.close())
        app.get(`/${count}`, gate.middleware, (_request, response) => void response.send('ok'))
      }
    })
    await statuses(40, (count) => ask(`/${count}`))
    expect(lines).toEqual([])
  })
})

describe('a warning that is silenced', () => {
  it('is counted and not logged, and the others are', async () => {
    const { ask, codes, countOf } = await watched(
      (app, gate) => {
        app.use(gate.middleware, gate.middleware)
        answerOk(app)
      },
      { silence: ['TALLYGATE_WARN_MOUNTED_TWICE'] },
    )
    await ask('/', { headers: { 'x-forwarded-for': '203.0.113.7' } })
    expect(codes()).toEqual(['TALLYGATE_WARN_UNTRUSTED_FORWARD'])
    expect(await countOf('TALLYGATE_WARN_MOUNTED_TWICE')).toBe(1)
  })
})

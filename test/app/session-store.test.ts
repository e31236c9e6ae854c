/*
 * express-session over rows in SQLite, on a real socket, with the date set by hand: when a row is written,
 * when it ends, and that it stays away once it is gone.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Express } from 'express'
import session from 'express-session'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { SessionStore } from '../../src/app/session-store.js'
import { epochMs } from '../support/units/limits.js'
import { sessionBench } from '../support/units/sessions.js'

declare module 'express-session' {
  interface SessionData {
    count: number
  }
}

const maxAgeMs = 60_000

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: epochMs }))
afterEach(() => void vi.useRealTimers())

type Options = Partial<session.SessionOptions>

async function bench(options: Options = {}, build: (app: Express) => void = () => undefined) {
  const { sessions: rows, connection, wallMs, stored, failures, state } = sessionBench()
  const rolling = options.rolling === true
  const app = express()
  app.use(
    session({
      secret: 'of no account',
      resave: false,
      saveUninitialized: false,
      cookie: { maxAge: maxAgeMs },
      store: new SessionStore({ rows, wallMs, maxAgeMs, rolling }),
      ...options,
    }),
  )
  addRoutes(app)
  build(app)
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (path: string, cookie = '') => {
    const response = await fetch(url + path, { headers: { cookie } })
    const set = response.headers.get('set-cookie')
    return {
      status: response.status,
      text: await response.text(),
      cookie: set?.split(';')[0] ?? null,
      endMs: set === null ? null : Date.parse(/Expires=([^;]+)/.exec(set)?.[1] ?? ''),
    }
  }
  const changes = () => (connection.prepare('SELECT total_changes() AS n').get() as { n: number }).n
  const begin = async () => (await ask('/count')).cookie ?? ''
  return { ask, begin, stored, changes, rows, failures, connection, state }
}

/** `/` looks at the session and no more; `/count` changes it; `/save` changes and saves it itself. */
function addRoutes(app: Express): void {
  app.get('/', (request, response) => void response.send(`${request.session.count ?? 'none'}`))
  app.get('/count', (request, response) => {
    request.session.count = (request.session.count ?? 0) + 1
    response.send(`${request.session.count}`)
  })
  app.get('/save', (request, response, next) => {
    request.session.count = (request.session.count ?? 0) + 1
    request.session.save((error: unknown) => {
      if (error !== undefined && error !== null) return next(error)
      response.send('saved')
    })
  })
}

const pass = (spanMs: number) => vi.setSystemTime(Date.now() + spanMs)

const allWays = [false, true].flatMap((resave) =>
  [false, true].flatMap((saveUninitialized) =>
    [false, true].map((rolling) => ({ resave, saveUninitialized, rolling })),
  ),
)
const fixed = allWays.filter(({ rolling }) => !rolling)
const rollingWays = allWays.filter(({ rolling }) => rolling)

describe('a session that is used', () => {
  it.each(allWays)('is one row, and ends when its cookie does: %j', async (options) => {
    const { ask, stored, rows } = await bench(options)
    const first = await ask('/count')
    const told = [first.endMs]
    const kept = [stored()[0]?.expires_ms]
    for (const path of ['/', '/count', '/', '/save', '/']) {
      pass(1_000)
      const { endMs } = await ask(path, first.cookie ?? '')
      await rows.flush()
      told.push(endMs ?? told.at(-1) ?? null)
      kept.push(stored()[0]?.expires_ms)
      expect(stored()).toHaveLength(1)
    }
    const ends = (options.rolling ? [0, 1, 2, 3, 4, 5] : [0, 0, 2, 2, 4, 4]).map(
      (second) => epochMs + maxAgeMs + second * 1_000,
    )
    expect([told, kept]).toEqual([ends, ends])
    expect((await ask('/', first.cookie ?? '')).text).toBe('3')
  })

  it.each(fixed)('SEC-07: is a new one after its end, however much used: %j', async (options) => {
    const { ask, begin, stored, changes } = await bench(options)
    const cookie = await begin()
    const [row] = stored()
    const written = changes()
    pass(59_000)
    const answer = await ask('/', cookie)
    expect([answer.text, answer.cookie]).toEqual(['1', null])
    expect([stored(), changes()]).toEqual([[row], written])
    pass(2_000)
    expect((await ask('/', cookie)).text).toBe('none')
  })

  it.each(rollingWays)('goes on for as long as it is used, where rolling: %j', async (options) => {
    const { ask, begin, rows } = await bench(options)
    const cookie = await begin()
    for (const spanMs of [59_000, 57_000, 57_000, 57_000]) {
      pass(spanMs)
      expect((await ask('/', cookie)).text).toBe('1')
      // The row is told late, at a sweep even: what waits goes before.
      pass(2_000)
      expect(await rows.sweep()).toBe(0)
    }
    pass(61_000)
    expect((await ask('/', cookie)).text).toBe('none')
  })

  it.each(rollingWays)(
    'is written once a flush where rolling, not with each request: %j',
    async (options) => {
      const { ask, begin, rows, changes } = await bench(options)
      const cookie = await begin()
      const written = changes()
      for (let count = 0; count < 20; count++) await ask('/', cookie)
      expect(changes()).toBe(written)
      await rows.flush()
      expect(changes()).toBe(written + 1)
      await rows.flush()
      expect(changes()).toBe(written + 1)
    },
  )

  it('ends with the cookie that is sent again after the app has saved it itself', async () => {
    const { ask, begin, stored, rows } = await bench()
    const cookie = await begin()
    pass(30_000)
    const { endMs } = await ask('/save', cookie)
    await rows.flush()
    expect([stored()[0]?.expires_ms, endMs]).toEqual([epochMs + 90_000, epochMs + 90_000])
  })

  it('without an end of its cookie ends at its greatest age, whatever is asked meanwhile', async () => {
    const { ask, begin, stored } = await bench({ cookie: {} })
    const cookie = await begin()
    expect(stored()[0]?.expires_ms).toBe(epochMs + maxAgeMs)
    pass(59_000)
    expect((await ask('/', cookie)).text).toBe('1')
    pass(1_000)
    expect((await ask('/', cookie)).text).toBe('none')
  })
})

describe('no row', () => {
  it('SES-01: is made for requests that do not use their session', async () => {
    const { ask, stored } = await bench()
    for (let count = 0; count < 20; count++) expect((await ask('/')).cookie).toBe(null)
    const forged = 'connect.sid=s%3Aabc.def'
    expect((await ask('/', forged)).cookie).toBe(null)
    expect(stored()).toEqual([])
  })

  it.each([
    ['', true],
    ['not JSON {', true],
    ['null', true],
    ['7', true],
    ['[]', true],
    ['{}', true],
    ['{"cookie":null,"count":9}', true],
    ['{"cookie":{},"count":9}', false],
  ])('is taken for a session where it holds none: %s', async (data, isNone) => {
    const { ask, begin, connection, state } = await bench()
    const cookie = await begin()
    // So that the row is read, and not the copy of it.
    state.isShared = true
    connection.prepare('UPDATE sessions SET data = ?').run(data)
    const answer = await ask('/', cookie)
    expect([answer.status, answer.text]).toEqual([200, isNone ? 'none' : '9'])
    const next = await ask('/count', cookie)
    expect([next.status, next.text]).toEqual([200, isNone ? '1' : '10'])
  })
})

describe('a session that was ended while a request still ran', () => {
  const held =
    (go: Promise<void>, change: (request: express.Request) => void) => (app: Express) => {
      app.get('/slow', async (request, response) => {
        change(request)
        response.write('begun')
        await go
        response.end()
      })
      app.get('/end', (request, response) => {
        request.session.destroy(() => response.send('ended'))
      })
    }
  const changes: Record<string, (request: express.Request) => void> = {
    'looks at it': () => undefined,
    'changes it': (request) => void (request.session.count = 9),
  }
  const ways = allWays.flatMap((options) =>
    Object.keys(changes).map((way) => ({ way, ...options })),
  )

  it.each(ways)('stays ended, where that request $way: %j', async ({ way, ...options }) => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => (go = resolve))
    const change = changes[way] ?? (() => undefined)
    const { ask, begin, stored, rows } = await bench(options, held(gone, change))
    const cookie = await begin()
    const slow = ask('/slow', cookie)
    await ask('/', cookie)
    await ask('/end', cookie)
    go()
    await slow
    await rows.flush()
    expect(stored()).toEqual([])
    expect((await ask('/', cookie)).text).toBe('none')
  })

  it('leaves the new one alone, where its id was changed', async () => {
    const build = (app: Express) => {
      app.get('/renew', (request, response) => {
        request.session.regenerate(() => {
          request.session.count = 100
          response.send('renewed')
        })
      })
      app.get('/stream', (request, response) => {
        response.write('begun')
        request.session.regenerate(() => response.end('done'))
      })
    }
    const { ask, begin, stored } = await bench({}, build)
    const old = await begin()
    const renewed = (await ask('/renew', old)).cookie ?? ''
    expect(stored()).toHaveLength(1)
    expect([(await ask('/', old)).text, (await ask('/', renewed)).text]).toEqual(['none', '100'])
    // While a response runs the new id cannot be told any more; the old one has ended all the same.
    expect((await ask('/stream', renewed)).status).toBe(200)
    expect((await ask('/', renewed)).text).toBe('none')
    expect(stored()).toHaveLength(1)
  })
})

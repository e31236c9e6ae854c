/*
 * Whose request is it: the session that express-session found, as long as the request's own cookie names it,
 * or what the option `session` says. A client that drops, invents or misspells a cookie gains nothing, and
 * the gate leaves sessions as they are.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Express, NextFunction, Request, Response } from 'express'
import session from 'express-session'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GateParts } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { countOf, guarded, host, statuses, type Guarded } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'

declare module 'express-session' {
  interface SessionData {
    user: string
  }
}

const secret = 'of no account'

/** As express-session signs an id. */
function sign(id: string, by: string): string {
  const signature = createHmac('sha256', by).update(id).digest('base64')
  return `${id}.${signature.replace(/=+$/, '')}`
}

/** Without a session such a request meets no rule. */
const strictly = (limit: number) => [
  { name: 'session', key: 'session', limit, window: '1m', absent: 'skip' } as const,
]

type Options = Partial<session.SessionOptions>

/** Sessions, then the gate, then `/`; `/login` makes a session in front of the gate. */
function withSessions(given: Options = {}, before?: (app: Express) => void) {
  return (app: Express, gate: GateParts): void => {
    app.use(session({ secret, resave: false, saveUninitialized: false, ...given }))
    app.get('/login', (request, response) => {
      request.session.user = 'somebody'
      response.send('welcome')
    })
    before?.(app)
    app.use(gate.middleware)
    app.get('/', (request, response) => {
      response.send(request.session?.user ?? 'nobody')
    })
    app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
      response.status(500).send(error.message)
    })
  }
}

async function login({ ask }: Guarded): Promise<string> {
  const given = (await ask('/login')).headers.get('set-cookie') ?? ''
  return given.split(';')[0] ?? ''
}

/** How many of ten requests pass. */
async function passing({ ask }: Guarded, cookieOf: (index: number) => string, path = '/') {
  const seen = await statuses(10, (index) => ask(path, { headers: { cookie: cookieOf(index) } }))
  return countOf(seen, 200)
}

/** The answer to a request as it is written. */
async function written({ url }: Guarded, lines: readonly string[]): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk))
  socket.write(lines.join('\r\n'))
  await once(socket, 'close')
  return text
}

describe('an established session', () => {
  const escaped = (text: string) => `%${text.charCodeAt(0).toString(16)}${text.slice(1)}`
  const spellings: Record<string, (id: string, signature: string) => string> = {
    'as it was given': (id, signature) => `s%3A${id}.${signature}`,
    'in small letters': (id, signature) => `s%3a${id}.${signature}`,
    unescaped: (id, signature) => `s:${id}.${signature}`,
    'in quotes': (id, signature) => `"s%3A${id}.${signature}"`,
    'behind spaces': (id, signature) => `${' '.repeat(500)}\ts%3A${id}.${signature} `,
    'with its first letter escaped': (id, signature) => `%73%3A${id}.${signature}`,
    'with a letter of its id escaped': (id, signature) => `s%3A${escaped(id)}.${signature}`,
    'with its full stop escaped': (id, signature) => `s%3A${id}%2e${signature}`,
    'with all of it escaped': (id, signature) =>
      Array.from(`s:${id}.${decodeURIComponent(signature)}`, escaped).join(''),
    'before another of its name': (id, signature) =>
      `s%3A${id}.${signature}; connect.sid=s%3Aother.x`,
    'beside a cookie that is not UTF-8': (id, signature) => `s%3A${id}.${signature}; a=%ff%fe%`,
  }

  for (const [spelling, spell] of Object.entries(spellings)) {
    it(`is counted, its cookie ${spelling}`, async () => {
      const app = await guarded({ rules: strictly(2) }, withSessions())
      const [, id, signature] = /=s%3A([^.]+)\.(.+)/.exec(await login(app)) ?? []
      const cookie = `connect.sid=${spell(id ?? '', signature ?? '')}`
      expect((await app.ask('/', { headers: { cookie } })).text).toBe('somebody')
      expect(await passing(app, () => cookie)).toBe(1)
    })
  }

  it('is counted whatever its cookie is called', async () => {
    const app = await guarded({ rules: strictly(2) }, withSessions({ name: '__Host-s.i~d' }))
    const cookie = await login(app)
    expect(cookie).toMatch(/^__Host-s\.i~d=/)
    expect(await passing(app, () => cookie)).toBe(2)
  })

  it('is counted where its secret has been replaced and the old one still verifies', async () => {
    const app = await guarded({ rules: strictly(2) }, withSessions({ secret: ['new', secret] }))
    const [, id = ''] = /=s%3A([^.]+)\./.exec(await login(app)) ?? []
    expect(await passing(app, () => `connect.sid=s:${sign(id, secret)}`)).toBe(2)
    expect(await passing(app, () => `connect.sid=s:${sign(id, 'new')}`)).toBe(0)
    // Not by a third: such a request has no session at all.
    expect(await passing(app, () => `connect.sid=s:${sign(id, 'other')}`)).toBe(10)
  })

  it('is counted where its ids have odd letters in them', async () => {
    let count = 0
    const genid = () => `${(count++).toString()} %41%ff/é"=;.,{}`
    const app = await guarded({ rules: strictly(2) }, withSessions({ genid }))
    const cookie = await login(app)
    expect((await app.ask('/', { headers: { cookie } })).text).toBe('somebody')
    expect(await passing(app, () => cookie)).toBe(1)
  })

  it('is counted in a header of its own beside another', async () => {
    const app = await guarded({ rules: strictly(1) }, withSessions())
    const cookie = await login(app)
    const lines = ['GET / HTTP/1.1', 'Host: x', 'Cookie: a=b', `Cookie: ${cookie}`, '', '']
    // Both requests in one go, the second while the first is answered.
    const last = ['GET / HTTP/1.1', 'Host: x', `Cookie: ${cookie}`, 'Connection: close', '', '']
    const text = await written(app, [...lines.slice(0, -1), ...last])
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 429'])
  })
})

describe('SES-03: nothing is gained', () => {
  const rules = [{ name: 'session', key: 'session', limit: 2, window: '1m' } as const]
  const signed = (id: string, by: string) => `connect.sid=s%3A${encodeURIComponent(sign(id, by))}`
  const cookies: Record<string, (index: number) => string> = {
    'without a cookie': () => '',
    'by an unsigned one': (index) => `connect.sid=made-up-${index}`,
    'by a forged one': (index) => signed(`made-up-${index}`, 'guess'),
    'by one without its signature': (index) => `connect.sid=s%3Amade-up-${index}.`,
    'by an empty one': () => 'connect.sid=',
    'by half of one': () => 'connect.sid=s%3A',
    'by one that is no cookie': (index) => `${index};;=;connect.sid;"`,
    'by a huge one': (index) => `connect.sid=s%3A${index}${'%41'.repeat(4_000)}.x`,
    'by many': (index) =>
      Array.from({ length: 100 }, (_, at) => `connect.sid=s%3A${index}-${at}.x`).join('; '),
    'by one that is signed and whose session is none': (index) => signed(`lost-${index}`, secret),
  }
  const ways = [false, true].flatMap((resave) =>
    [false, true].flatMap((saveUninitialized) =>
      [false, true].map((rolling) => ({ resave, saveUninitialized, rolling })),
    ),
  )

  for (const [way, cookieOf] of Object.entries(cookies)) {
    it(`${way}, however sessions are saved`, async () => {
      for (const options of ways) {
        const app = await guarded({ rules }, withSessions(options))
        expect([options, await passing(app, cookieOf)]).toEqual([options, 2])
      }
    })
  }

  it('by a session of its own for every request, where ids are short and stand in other cookies', async () => {
    let count = 0
    const app = await guarded({ rules }, withSessions({ genid: () => String(++count) }))
    const visitor = Array.from({ length: 12 }, (_, index) => `s${index}=GA1.${index}.s:${index}.7`)
    expect(await passing(app, () => visitor.join('; '))).toBe(2)
  })

  it('by a new id in front of the gate', async () => {
    const before = (app: Express) => {
      app.get('/', (request, _response, next) => request.session.regenerate(next))
    }
    const app = await guarded({ rules }, withSessions({}, before))
    const cookie = await login(app)
    expect(await passing(app, () => cookie)).toBe(2)
  })

  it('by ending the session in front of the gate', async () => {
    const before = (app: Express) => {
      app.get('/', (request, _response, next) => void request.session.destroy(next))
    }
    const app = await guarded({ rules }, withSessions({}, before))
    const cookie = await login(app)
    expect(await passing(app, () => cookie)).toBe(2)
  })
})

describe('the gate leaves a session as it is', () => {
  it('SES-01: none is made or kept, and no cookie told', async () => {
    const store = new session.MemoryStore()
    const app = await guarded(
      { rules: [ipRule({ limit: 1_000 }), ...strictly(5)] },
      withSessions({ store }),
    )
    for (let count = 0; count < 200; count++) {
      const { headers } = await app.ask('/')
      expect(headers.get('set-cookie')).toBe(null)
    }
    expect(Object.keys((store as unknown as { sessions: object }).sessions)).toEqual([])
  })

  it('a request that is declined tells no cookie', async () => {
    const app = await guarded({ rules: strictly(1) }, withSessions())
    const cookie = await login(app)
    const answers = [1, 2].map(() => app.ask('/', { headers: { cookie } }))
    const seen = await Promise.all(answers)
    expect(seen.filter(({ status }) => status === 429)).toHaveLength(1)
    expect(seen.map(({ headers }) => headers.get('set-cookie'))).toEqual([null, null])
  })

  it('no session is asked for that another library begins when asked', async () => {
    let asked = 0
    const app = await guarded({ rules: strictly(1) }, (one, gate) => {
      one.use((request, _response, next) => {
        Object.defineProperty(request, 'session', { get: () => ({ begun: ++asked }) })
        next()
      })
      one.use(gate.middleware)
      one.get('/', (_request, response) => void response.send('ok'))
    })
    expect(await passing(app, () => 'session=eyJhIjoxfQ==')).toBe(10)
    expect(asked).toBe(0)
  })

  it.each(['regenerate', 'destroy'] as const)(
    '%s in the middle of a request, behind it, ends well',
    async (method) => {
      const app = await guarded({ rules: strictly(20) }, (one, gate) => {
        withSessions()(one, gate)
        one.get('/before', (request, response, next) => {
          request.session[method]((error: unknown) =>
            error === null || error === undefined ? response.send('done') : next(error),
          )
        })
        one.get('/streaming', (request, response) => {
          response.write('begun, ')
          request.session[method](() => response.end('done'))
        })
      })
      for (const [path, text] of [
        ['/before', 'done'],
        ['/streaming', 'begun, done'],
      ] as const) {
        const cookie = await login(app)
        expect(await app.ask(path, { headers: { cookie } })).toMatchObject({ status: 200, text })
        expect((await app.ask('/', { headers: { cookie } })).text).toBe('nobody')
      }
      expect((await app.gate.stats()).totals).toMatchObject({ requests: 4, allowed: 4 })
    },
  )
})

describe('the option session', () => {
  const rules = [{ name: 'session', key: 'session', limit: 2, window: '1m' } as const]
  /** What a caller without types may give. */
  const giving = (say: (request: Request) => unknown) =>
    guarded({ rules, session: say as GateOptions['session'] }, withSessions())
  const cookies = (index: number) => `id=${index}`

  it('counts the sessions of any library by the ids that it gives', async () => {
    const app = await giving((request) => request.headers.cookie)
    expect(await passing(app, cookies)).toBe(10)
    expect(await passing(app, () => 'id=0')).toBe(1)
  })

  it('counts everybody as one where it gives everybody one id', async () => {
    expect(await passing(await giving(() => 'everybody'), cookies)).toBe(2)
  })

  it.each([[undefined], [null], [''], [false]])('says by %j that there is none', async (none) => {
    const app = await giving(() => none)
    expect(await passing(app, cookies)).toBe(2)
    const { rules: found } = await app.gate.stats()
    expect(found[0]?.trackedKeys).toBe(1)
    // By its address, and so apart from a session.
    const same = await guarded({ rules: strictly(2), session: () => none as null }, withSessions())
    expect(await passing(same, cookies)).toBe(10)
  })

  it.each([
    ['a number', (index: number) => index, 10],
    ['a large number', (index: number) => BigInt(index), 10],
    ['a list', (index: number) => [index], 2],
    ['an object', (index: number) => ({ index }), 2],
    ['true', () => true, 2],
    ['a symbol', () => Symbol('id'), 2],
    ['an object that cannot be text', () => Object.create(null) as unknown, 2],
  ])('takes %s, and frees nobody by it', async (_, say, count) => {
    let index = 0
    const app = await giving(() => say(index++))
    expect(await passing(app, cookies)).toBe(count)
  })

  it('hands an error that it throws to next', async () => {
    const app = await giving(() => {
      throw new Error('no session today')
    })
    expect(await app.ask()).toMatchObject({ status: 500, text: 'no session today' })
    expect((await app.gate.stats()).totals).toMatchObject({ requests: 1, allowed: 1 })
  })

  it('hands an error to next where there is no Express either', async () => {
    const fails = () => {
      throw new Error('no session today')
    }
    const { ask } = await host({ rules, session: fails }, (gate) => (request, response) => {
      gate.middleware(request, response, (error) => response.end(String(error)))
    })
    expect((await ask()).text).toBe('Error: no session today')
  })

  it.each([
    ['kept', () => Promise.resolve('somebody')],
    ['broken', () => Promise.reject(new Error('too late'))],
  ])('refuses a promise, %s or not, with an error that says so', async (_, say) => {
    const late: unknown[] = []
    const note = (reason: unknown) => void late.push(reason)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const app = await giving(say)
    expect(await app.ask()).toMatchObject({
      status: 500,
      text: 'Cannot decide: the session of a request must be known at once: its function gave a promise',
    })
    expect(late).toEqual([])
  })

  it('KEY-08: what it gives is shown nowhere', async () => {
    const id = 'raw-session-id-1234'
    const app = await giving(() => id)
    const answers = [await app.ask(), await app.ask(), await app.ask()]
    const shown = JSON.stringify([
      answers.map(({ headers, text }) => [[...headers], text]),
      await app.gate.stats(),
      await app.gate.exposition.text(),
    ])
    expect(answers[2]?.status).toBe(429)
    expect(shown.includes(id)).toBe(false)
  })
})

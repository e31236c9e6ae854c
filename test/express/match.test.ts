/*
 * Rules with `match` over real Express apps: whatever request Express takes to a handler must meet the rules
 * of that handler's path. Targets are written to the socket as they are, because a client library would
 * tidy them up.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import express, { Router, type Express, type Request } from 'express'
import express4 from 'express4'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuleOptions } from '../../src/core/rule.js'
import type { GateParts } from '../../src/gate/gate.js'
import { countOf, guarded, host, statuses } from '../support/server.js'

const ruleFor = (paths: string[], more: Partial<RuleOptions> = {}): RuleOptions => ({
  name: 'login',
  key: 'ip',
  limit: 1_000_000,
  window: '1m',
  match: { paths },
  ...more,
})

interface Seen {
  /** Whether the handler of the path was reached. */
  isReached: boolean
  /** Whether the rule of that path applied. */
  isGuarded: boolean
}

/** Sends a target as it is, and says what became of it. */
async function send(url: string, target: string, method = 'GET'): Promise<Seen> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setEncoding('latin1')
  let text = ''
  socket.on('data', (chunk: string) => (text += chunk))
  const head = `${method} ${target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`
  socket.write(head, 'latin1')
  await once(socket, 'close')
  return { isReached: /^x-reached:/im.test(text), isGuarded: /^ratelimit:/im.test(text) }
}

const reached = (_request: unknown, response: express.Response) =>
  void response.setHeader('x-reached', '1').end()

/** Odd spellings of a path of letters and slashes. */
const spellingsOf = (path: string): string[] => [
  path,
  path.toUpperCase(),
  path.replace(/^\/[^/]+/, (first) => first.toUpperCase()),
  `${path}/`,
  `${path}//`,
  `${path}///`,
  `/${path}`,
  `/${path}/`,
  path.replace('/', '/./'),
  `/x/..${path}`,
  path.replaceAll('/', '//'),
  path.replace(/^(\/[^/]+)\//, '$1//'),
  path.replace('l', '%6C'),
  path.replace('l', '%6c'),
  `${path}%2F`,
  `${path}%20`,
  `${path}%00`,
  `${path};x=1`,
  `${path}.`,
  `${path}?`,
  `${path}?a=/b`,
  `${path}/?a=b`,
  `${path}??`,
  `${path}#`,
  `${path}#a?b`,
  `${path}/#a`,
  `${path}?a#b`,
  `${path.toUpperCase()}/?a#b`,
  `http://host${path}`,
  `HTTP://host${path.toUpperCase()}/`,
  `http://user:pass@host:80${path}?a=b`,
  `https://host${path}#x`,
  `x://host${path}`,
  `http://host/${path}`,
  `http://host${path.replace(/^(\/[^/]+)\//, '$1//')}`,
  `http:///host${path}`,
  `http://host${path.replaceAll('/', '\\')}`,
  `${path}\\`,
  path.replaceAll('/', '\\'),
  `${path}\u00A0`,
  `${path}\u00FF`,
  `//host${path}`,
  'http://host',
  'http://host/',
  'http://host?/login',
  '*',
  '/',
  '//',
]

/** What differs between versions of Express. */
interface Kit {
  readonly express: typeof express
  readonly everythingBelow: string
}

const kits: Record<string, Kit> = {
  'Express 5': { express, everythingBelow: '/*rest' },
  'Express 4': { express: express4 as unknown as typeof express, everythingBelow: '/*' },
}

interface Site {
  /** Of the handlers that answer with `reached`. */
  paths: string[]
  build: (app: Express, gate: GateParts, kit: Kit) => void
}

const sites: Record<string, Site> = {
  'a route': {
    paths: ['/login'],
    build(app, gate) {
      app.use(gate.middleware)
      app.get('/login', reached)
    },
  },
  'a route spelt otherwise': {
    paths: ['/Login/'],
    build(app, gate) {
      app.use(gate.middleware)
      app.get('/loGIN/', reached)
    },
  },
  'a router': {
    paths: ['/api/login'],
    build(app, gate, kit) {
      app.use(gate.middleware)
      app.use('/api', kit.express.Router().get('/login', reached))
    },
  },
  'the root of a router': {
    paths: ['/login'],
    build(app, gate, kit) {
      app.use(gate.middleware)
      app.use('/login', kit.express.Router().get('/', reached))
    },
  },
  'a router with the gate in it': {
    paths: ['/api/login', '/api'],
    build(app, gate, kit) {
      const router = kit.express
        .Router()
        .use(gate.middleware)
        .get('/login', reached)
        .get('/', reached)
      app.use('/api/', router)
    },
  },
  'two routers, the gate in the second': {
    paths: ['/v1/api/login'],
    build(app, gate, kit) {
      const inner = kit.express.Router().use(gate.middleware).get('/login', reached)
      app.use('/v1', kit.express.Router().use('/api', inner))
    },
  },
  'an app in an app': {
    paths: ['/api/login'],
    build(app, gate, kit) {
      app.use(gate.middleware)
      app.use('/api', kit.express().get('/login', reached))
    },
  },
  'an app that is case sensitive in one that is not, the gate in it': {
    paths: ['/api/login'],
    build(app, gate, kit) {
      const inner = kit.express().enable('case sensitive routing').use(gate.middleware)
      app.use('/api', inner.get('/login', reached))
    },
  },
  'a strict app': {
    paths: ['/api/login'],
    build(app, gate) {
      app.enable('strict routing').enable('case sensitive routing').use(gate.middleware)
      app.get('/api/login', reached)
    },
  },
  'a part of the tree': {
    paths: ['/api', '/api/*'],
    build(app, gate, { everythingBelow }) {
      app.use(gate.middleware)
      app.get(`/api${everythingBelow}`, reached)
    },
  },
  'whatever begins with a path': {
    paths: ['/api', '/api/*'],
    build(app, gate) {
      app.use(gate.middleware)
      app.use('/api', reached)
    },
  },
  'an address that was rewritten before the gate': {
    paths: ['/login'],
    build(app, gate) {
      app.use((request, _response, next) => {
        request.url = request.url.replace(/^\/v\d\//, '/')
        next()
      })
      app.use(gate.middleware)
      app.get('/login', reached)
    },
  },
}

describe('KEY-05: a request that Express takes to a handler meets the rule of its path', () => {
  const cases = Object.keys(kits).flatMap((version) =>
    Object.keys(sites).map((name) => [version, name] as const),
  )

  it.each(cases)('%s: %s', async (version, name) => {
    const kit = kits[version] as Kit
    const { paths, build } = sites[name] as Site
    const { url } = await host({ rules: [ruleFor(paths)] }, (gate) => {
      const app = kit.express()
      build(app, gate, kit)
      return app
    })
    const targets = [...paths, '/v2/login'].flatMap((path) =>
      spellingsOf(path.toLowerCase().replace('*', 'login').replace(/\/$/, '')),
    )
    let reachedCount = 0
    for (const target of new Set(targets)) {
      const { isReached, isGuarded } = await send(url, target)
      if (isReached) reachedCount++
      expect(isReached && !isGuarded ? target : null).toBeNull()
    }
    expect(reachedCount).toBeGreaterThanOrEqual(3)
  })

  it('a route, whatever target is made up', async () => {
    const { url } = await guarded({ rules: [ruleFor(['/ab'])] }, (app, gate) => {
      app.use(gate.middleware)
      app.get('/ab', reached)
    })
    const piece = fc.constantFrom('a', 'b', 'A', '/', '//', '?', '#', '.', '%61', '\\', ':', '*')
    const target = fc.array(piece, { maxLength: 5 }).map((pieces) => `/a${pieces.join('')}`)
    const origin = fc.constantFrom('', '', 'http://h', 'x://h:1')
    await fc.assert(
      fc.asyncProperty(origin, target, async (before, after) => {
        const { isReached, isGuarded } = await send(url, before + after)
        expect(isReached && !isGuarded).toBe(false)
      }),
      { numRuns: 300 },
    )
  })
})

describe('KEY-05: a rule for one path', () => {
  it('counts all spellings of it together', async () => {
    const rules = [ruleFor(['/lang'], { limit: 3, match: { methods: ['POST'], paths: ['/lang'] } })]
    let reachedCount = 0
    const { ask } = await guarded({ rules }, (app, gate) => {
      app.use(gate.middleware)
      app.post('/lang', (_request, response) => {
        reachedCount++
        response.end()
      })
      app.get('/lang', reached)
    })
    const paths = ['/lang', '/LANG', '/lang/', '/Lang/']
    const seen = await statuses(8, (index) => ask(paths[index % 4], { method: 'POST' }))
    expect(countOf(seen, 200)).toBe(3)
    expect(reachedCount).toBe(3)
    expect((await ask('/lang')).status).toBe(200)
  })

  it('leaves alone what Express takes elsewhere', async () => {
    const { url } = await guarded({ rules: [ruleFor(['/login'])] }, (app, gate) => {
      app.use(gate.middleware)
      app.get('/login', reached)
    })
    for (const target of ['/', '/log', '/loginx', '/login/x', '//login', '/%6Cogin', '/x?/login']) {
      expect(await send(url, target)).toEqual({ isReached: false, isGuarded: false })
    }
  })

  it('tells letter case and a slash at the end apart where the app does', async () => {
    const { url } = await guarded({ rules: [ruleFor(['/login'])] }, (app, gate) => {
      app.enable('strict routing').enable('case sensitive routing').use(gate.middleware)
      app.get('/login', reached)
      app.get('/Login', reached)
    })
    expect(await send(url, '/login')).toEqual({ isReached: true, isGuarded: true })
    expect(await send(url, '/Login')).toEqual({ isReached: true, isGuarded: false })
    expect(await send(url, '/login/')).toEqual({ isReached: false, isGuarded: false })
  })

  it('for GET is for HEAD too, and for no other method', async () => {
    const rules = [ruleFor(['/login'], { match: { methods: ['GET'], paths: ['/login'] } })]
    const { url } = await guarded({ rules }, (app, gate) => {
      app.use(gate.middleware)
      app.all('/login', reached)
    })
    const guardedBy = async (method: string) => (await send(url, '/login', method)).isGuarded
    expect(await guardedBy('GET')).toBe(true)
    expect(await guardedBy('HEAD')).toBe(true)
    expect(await guardedBy('POST')).toBe(false)
    expect(await guardedBy('OPTIONS')).toBe(false)
  })

  it('holds in a server without Express', async () => {
    const { gate } = await guarded({ rules: [ruleFor(['/login'], { limit: 1 })] })
    const { createServer } = await import('node:http')
    const server = createServer((request, response) => {
      gate.middleware(request, response, () => void response.end())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const seen = await statuses(4, async (index) => {
      const path = index % 2 === 0 ? '/login?a' : '/other'
      const response = await fetch(`http://127.0.0.1:${port}${path}`)
      return { status: response.status, headers: response.headers, text: await response.text() }
    })
    server.closeAllConnections()
    server.close()
    expect(seen).toEqual([200, 200, 429, 200])
  })
})

describe('a function of a rule', () => {
  it('sees the request, its headers, method and path, and whom it is from', async () => {
    const seen: unknown[] = []
    const rules: RuleOptions[] = [
      {
        name: 'mine',
        key: ({ ip, method, path, headers, request }) => {
          seen.push({ ip, method, path, user: (request as Request).query['user'] })
          return headers?.['x-user']
        },
        limit: ({ path }) => (path === '/api/a' ? 1 : 2),
        window: '1m',
      },
    ]
    const { ask } = await guarded({ rules }, (app, gate) => {
      app.use('/api', Router().use(gate.middleware).get('/a', reached).get('/b', reached))
    })
    const headers = { 'x-user': 'me' }
    expect((await ask('/api/a?user=1', { headers })).headers.get('ratelimit-policy')).toContain(
      '"mine";q=1;',
    )
    expect(seen).toEqual([{ ip: '127.0.0.1', method: 'GET', path: '/api/a', user: '1' }])
    expect((await ask('/api/b', { headers })).headers.get('ratelimit')).toContain('"mine";r=0')
    expect((await ask('/api/b', { headers })).status).toBe(429)
    expect((await ask('/api/b')).headers.get('ratelimit')).toBeNull()
  })

  it('that throws fails the request by next(error), and the request is counted once', async () => {
    const key = (): string => {
      throw new Error('no tenant')
    }
    const rules: RuleOptions[] = [{ name: 'mine', key, limit: 1, window: '1m' }]
    const { ask, gate } = await guarded({ rules }, (app, parts) => {
      app.use(parts.middleware)
      app.use(((error, _request, response, _next) => {
        response.status(503).send((error as Error).message)
      }) as express.ErrorRequestHandler)
    })
    expect(await ask()).toMatchObject({ status: 503, text: 'no tenant' })
    expect((await gate.stats()).totals.requests).toBe(1)
  })

  it('that gives an object, as a query may, neither fails the request nor frees it', async () => {
    const key = ({ request }: { request?: unknown }) => (request as Request).query['u'] as string
    const rules: RuleOptions[] = [{ name: 'mine', key, limit: 1, window: '1m' }]
    const { ask } = await guarded({ rules }, (app, gate) => {
      app.set('query parser', 'extended').use(gate.middleware)
      app.get('/', reached)
    })
    expect(await statuses(3, (index) => ask(`/?u[a]=${index}`))).toEqual([200, 429, 429])
    expect((await ask('/?u=a')).status).toBe(200)
  })
})

describe('a header as key', () => {
  it('KEY-08: tells clients apart, and is shown nowhere', async () => {
    const secret = 'sk-live-1234567890abcdef'
    const rules: RuleOptions[] = [
      { name: 'api', key: 'header:Authorization', limit: 2, window: '1m' },
      { name: 'both', key: ['ip', 'header:x-api-key'], limit: 9, window: '1m' },
    ]
    const { ask, gate } = await guarded(
      { rules, adminToken: 'c0ffee5c0ffee5c0ffee5' },
      (app, parts) => {
        app.get('/metrics', parts.metrics)
        app.use(parts.middleware)
        app.get('/', (_request, response) => void response.send('ok'))
      },
    )
    const as = (token: string) => ({ headers: { authorization: token, 'x-api-key': token } })
    const seen = await statuses(3, () => ask('/', as(secret)))
    expect(seen).toEqual([200, 200, 429])
    expect((await ask('/', as('other'))).status).toBe(200)
    const declined = await ask('/', as(secret))
    const texts = [
      declined.text,
      JSON.stringify([...declined.headers]),
      (await ask('/metrics')).text,
      JSON.stringify(await gate.stats()),
    ]
    expect(texts.join('\n')).not.toContain(secret)
    expect(texts[2]).toContain('key="header:authorization"')
    expect(texts[2]).toContain('key="ip+header:x-api-key"')
    expect((await gate.stats()).rules.map(({ key }) => key)).toEqual([
      'header:authorization',
      'ip+header:x-api-key',
    ])
  })
})

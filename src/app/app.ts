/*
 * The bundled app: the gate in front of a few routes to try it on. What is mounted before the gate, the
 * metrics, the health checks and the admin routes, is outside limits and tallies; everything after it,
 * unknown paths too, is guarded and counted.
 */
import { createHash } from 'node:crypto'
import express, { type Express } from 'express'
import session from 'express-session'
import type { Clock } from '../core/clock.js'
import type { Logger } from '../core/logger.js'
import type { GateParts } from '../gate/gate.js'
import { SessionBuffer } from '../sqlite/session-buffer.js'
import type { CountingDatabase } from '../gate/counting.js'
import { composeParser, type Composition } from '../url/compose.js'
import { PageFetcher } from '../url/fetch-page.js'
import type { PageCache } from '../url/page-cache.js'
import type { Settings } from './environment.js'
import { homePage, homeScript, homeStyle } from './home-page.js'
import { ParseCounts } from './parse-counts.js'
import { parseRoute } from './parse-route.js'
import { errorHandler, sendProblem } from './problems.js'
import { RequestDuration } from './request-duration.js'
import { sessionClock } from './session-clock.js'
import { SessionStore } from './session-store.js'

export interface AppParts {
  readonly gate: GateParts
  readonly database: CountingDatabase
  readonly settings: Settings
  readonly clock: Clock
  readonly logger: Logger
  /** Whether the app is on its way down. */
  readonly isClosing: () => boolean
}

export interface BundledApp {
  readonly app: Express
  readonly sessions: SessionBuffer
  readonly pages: PageCache
  readonly fetcher: PageFetcher
}

declare module 'express-session' {
  interface SessionData {
    startedAt: string
  }
}

export function createApp(parts: AppParts): BundledApp {
  const { gate, settings, clock } = parts
  const app = express()
  const endingMs = sessionClock(clock)
  const sessions = bufferedSessions(parts, endingMs)
  const parseCounts = new ParseCounts()
  const fetcher = new PageFetcher({ allow: settings.urlAllow })
  const { parser, cache: pages } = pageParser(parts, fetcher, parseCounts)
  const duration = new RequestDuration(clock)
  gate.exposition.add({
    httpRequestDuration: () => duration.samples(),
    sessions: async () => [{ labels: {}, value: await sessions.count() }],
    ...parseCounts.sources(() => pages.count()),
  })

  app.disable('x-powered-by')
  app.set('trust proxy', settings.trustProxy)
  app.use(duration.middleware)
  app.get('/metrics', gate.metrics)
  addHealthRoutes(app, parts)
  app.use('/admin', gate.admin)
  app.use(
    session({
      name: 'tallygate.sid',
      secret: settings.sessionSecret,
      store: new SessionStore({
        rows: sessions,
        wallMs: endingMs,
        maxAgeMs: settings.sessionMaxAgeMs,
        rolling: false,
      }),
      resave: false,
      saveUninitialized: false,
      rolling: false,
      cookie: { httpOnly: true, sameSite: 'lax', secure: 'auto', maxAge: settings.sessionMaxAgeMs },
    }),
  )
  app.use(gate.middleware)
  addRoutes(app, gate, () => clock.wallMs())
  app.get('/api/parse', parseRoute(gate, parser))
  app.use((_request, response) => sendProblem(response, 404))
  app.use(errorHandler(parts.logger))
  return { app, sessions, pages, fetcher }
}

function bufferedSessions({ database, logger }: AppParts, wallMs: () => number): SessionBuffer {
  const { thread, archive } = database
  return new SessionBuffer({
    rows: thread.service('sessions', ['get', 'set', 'update', 'delete', 'count', 'sweep']),
    wallMs,
    isShared: () => archive.isShared,
    replacedCount: () => thread.changes.replacedCount,
    onFailure(error) {
      if (error === null) logger.info({}, 'sessions are written again')
      else logger.error({ err: error }, 'sessions cannot be written; they wait in memory')
    },
  })
}

function pageParser(
  { database, logger, clock }: AppParts,
  fetcher: PageFetcher,
  observer: ParseCounts,
): Composition {
  return composeParser({
    fetcher,
    database: database.thread,
    clock,
    observer,
    onFailure(error) {
      if (error === null) logger.info({}, 'pages are kept again')
      else logger.error({ err: error }, 'pages cannot be kept; they wait in memory')
    },
  })
}

function addHealthRoutes(app: Express, { gate, isClosing }: AppParts): void {
  app.get('/healthz', (_request, response) => {
    response.setHeader('Cache-Control', 'no-store')
    response.json({ status: 'ok' })
  })
  app.get('/readyz', (_request, response) => {
    response.setHeader('Cache-Control', 'no-store')
    if (isClosing()) return void response.status(503).json({ status: 'closing', degraded: [] })
    const degraded = gate.degraded()
    response.json({ status: degraded.length === 0 ? 'ready' : 'degraded', degraded })
  })
}

function addRoutes(app: Express, gate: GateParts, wallMs: () => number): void {
  app.get('/', (_request, response) => {
    response.setHeader('Content-Security-Policy', contentSecurityPolicy)
    response.setHeader('Cache-Control', 'no-cache')
    response.type('html').send(homePage(gate.limiter.rules))
  })
  app.post('/api/session', (request, response) => {
    request.session.startedAt ??= new Date(wallMs()).toISOString()
    response.status(201).json({ startedAt: request.session.startedAt })
  })
  app.delete('/api/session', (request, response, next) => {
    // One that was made for this request has no row that could end.
    if (request.session.startedAt === undefined) return void response.status(204).end()
    request.session.destroy((error: unknown) => {
      if (error !== undefined && error !== null) return next(error)
      response.clearCookie('tallygate.sid')
      response.status(204).end()
    })
  })
  app.get('/api/ping', (_request, response) => void response.json({ ok: true }))
}

function digestSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

const contentSecurityPolicy =
  `default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; ` +
  `frame-ancestors 'none'; script-src ${digestSource(homeScript)}; style-src ${digestSource(homeStyle)}`

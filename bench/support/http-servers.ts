/*
 * The servers of the HTTP benchmark: Express 5 with one route, bare or behind a limiter. Limits are so high
 * that nothing is declined, or so low that everything is.
 */
import express, { type Express } from 'express'
import { rateLimit } from 'express-rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type * as Package from '../../src/index.js'

type GateOptions = Package.GateOptions

/** What ships, as an application loads it. */
const shipped = new URL('../../../dist/index.js', import.meta.url).href
const { tallygate } = (await import(shipped)) as typeof Package

/** Mounts what stands before the route; `database` is a file to keep tallies in. */
export type Mount = (app: Express, database: string) => void

const windowMs = 60_000
const most = 1_000_000_000

const fourRules = (limit: number): GateOptions['rules'] => [
  { name: 'global', key: 'global', limit, window: windowMs },
  { name: 'ip', key: 'ip', limit, window: windowMs },
  { name: 'session', key: 'session', limit, window: windowMs },
  { name: 'hourly', key: 'ip', limit, window: '1h' },
]

const gate =
  (limit: number, more: Partial<GateOptions> = {}): Mount =>
  (app, database) => {
    const made = tallygate({ rules: fourRules(limit), database, ...more })
    app.get('/metrics', made.metrics)
    app.use(made.middleware)
  }

const expressRateLimits =
  (count: number, limit: number): Mount =>
  (app) => {
    for (let turn = 0; turn < count; turn++) {
      app.use(rateLimit({ windowMs, limit, standardHeaders: 'draft-8', legacyHeaders: false }))
    }
  }

/** As its documentation shows it: four limiters asked in turn, two header fields by hand. */
const rateLimiterFlexible: Mount = (app) => {
  const limiters = Array.from(
    { length: 4 },
    () => new RateLimiterMemory({ points: most, duration: windowMs / 1000 }),
  )
  app.use(async (request, response, next) => {
    let remaining = Infinity
    for (const limiter of limiters) {
      const answer = await limiter.consume(request.ip ?? '')
      remaining = Math.min(remaining, answer.remainingPoints)
    }
    response.setHeader('RateLimit-Policy', `"ip";q=${most};w=60`)
    response.setHeader('RateLimit', `"ip";r=${remaining};t=60`)
    next()
  })
}

const plainHeaders: Mount = (app) => {
  app.use((_request, response, next) => {
    response.setHeader('RateLimit-Policy', '"ip";q=1000000000;w=60')
    response.setHeader('RateLimit', '"ip";r=999999999;t=60')
    next()
  })
}

export const mounts = {
  'bare Express 5': () => undefined,
  tallygate: gate(most),
  'tallygate, headers off': gate(most, { headers: 'off' }),
  'express-rate-limit': expressRateLimits(1, most),
  'express-rate-limit, four': expressRateLimits(4, most),
  'rate-limiter-flexible, four': rateLimiterFlexible,
  'two plain headers': plainHeaders,
  'tallygate, all declined': gate(0),
  'express-rate-limit, all declined': expressRateLimits(1, 0),
} satisfies Record<string, Mount>

export type ServerName = keyof typeof mounts

export function serverOf(name: ServerName, database: string): Express {
  const app = express()
  mounts[name](app, database)
  app.get('/', (_request, response) => void response.json({ ok: true }))
  return app
}

/*
 * The admin routes, all behind the admin token, whatever the method or the spelling of the path: the check
 * comes first. Without a token nothing is there. Wrong tokens are limited like any other abuse, by a rule
 * of our own; a right one always passes. No answer may be cached.
 */
import type { ServerResponse } from 'node:http'
import express, { type RequestHandler } from 'express'
import type { Clock } from '../core/clock.js'
import { bearerCheck } from '../core/secret.js'
import { clientAddressOf } from '../express/client-key.js'
import { retryAfterSeconds } from '../express/headers/seconds.js'
import { createLimiter } from '../limiter/index.js'
import type { Statistics } from './statistics.js'

export interface AdminOptions {
  readonly token: string | undefined
  readonly clock: Clock
  readonly stats: () => Statistics
  /** Told of each request that carried a wrong token. */
  readonly onWrongToken: () => void
}

export function createAdmin(options: AdminOptions): RequestHandler {
  const router = express.Router()
  router.use((_request, response, next) => {
    response.setHeader('Cache-Control', 'no-store')
    next()
  })
  if (options.token !== undefined) {
    router.use(requireToken(options.token, options))
    router
      .route('/stats')
      .get((_request, response) => {
        // Indented: it is read by people as much as by programs.
        answer(response, 200, 'application/json', JSON.stringify(options.stats(), null, 2))
      })
      .all((_request, response) => {
        response.setHeader('Allow', 'GET, HEAD')
        problem(response, 405, 'Method not allowed')
      })
  }
  router.use((_request, response) => problem(response, 404, 'Not found'))
  return router
}

function requireToken(token: string, { clock, onWrongToken }: AdminOptions): RequestHandler {
  const check = bearerCheck(token)
  const wrongTokens = createLimiter({
    rules: [{ name: 'wrong-tokens', key: 'ip', limit: 10, window: '1m', maxKeys: 10_000 }],
    clock,
  })
  return (request, response, next) => {
    const sent = check(request.headers.authorization)
    if (sent === 'right') return next()
    if (sent === 'wrong') {
      onWrongToken()
      const decision = wrongTokens.decide({ ip: clientAddressOf(request) })
      if (!decision.allowed) {
        response.setHeader('Retry-After', String(retryAfterSeconds(decision.retryAfterMs)))
        return problem(response, 429, 'Too many wrong tokens')
      }
    }
    response.setHeader('WWW-Authenticate', 'Bearer realm="tallygate admin"')
    problem(response, 401, 'The admin token is needed')
  }
}

function problem(response: ServerResponse, status: number, title: string): void {
  const body = JSON.stringify({ type: 'about:blank', title, status })
  answer(response, status, 'application/problem+json', body)
}

/** By Node's own means: under Express 4 or none, a response lacks what Express 5 adds. */
function answer(response: ServerResponse, status: number, type: string, json: string): void {
  response.statusCode = status
  response.setHeader('Content-Type', `${type}; charset=utf-8`)
  response.end(`${json}\n`)
}

/*
 * Who may use the admin routes: whoever bears the token. Wrong ones are limited like any other abuse, by a
 * rule of our own, and counted; a request without one is neither; a right one always passes.
 */
import type { RequestHandler } from 'express'
import type { Clock } from '../core/clock.js'
import { bearerCheck } from '../core/secret.js'
import { clientAddressOf } from '../express/client-key.js'
import { retryAfterSeconds } from '../express/headers/seconds.js'
import { createLimiter } from '../limiter/index.js'
import { answerProblem } from './answers.js'

export interface TokenOptions {
  readonly clock: Clock
  /** Told of each request that carried a wrong token. */
  readonly onWrongToken: () => void
}

export function requireToken(token: string, { clock, onWrongToken }: TokenOptions): RequestHandler {
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
        return answerProblem(response, 429, { title: 'Too many wrong tokens' })
      }
    }
    response.setHeader('WWW-Authenticate', 'Bearer realm="tallygate admin"')
    answerProblem(response, 401, { title: 'The admin token is needed' })
  }
}

/*
 * CORS preflights: judged by the same rules under keys of their own, so they neither use up a client's limit
 * nor escape it.
 */
import type { Express } from 'express'
import { describe, expect, it } from 'vitest'
import type { GateParts } from '../../src/gate/gate.js'
import { guarded, type Guarded } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'

const origin = 'https://shop.example'
const preflight = {
  method: 'OPTIONS',
  headers: { origin, 'access-control-request-method': 'POST' },
}
const post = { method: 'POST', headers: { origin } }

/** As a CORS middleware does that lets preflights through to the routes. */
function build(app: Express, gate: GateParts): void {
  app.use((_request, response, next) => {
    response.setHeader('Access-Control-Allow-Origin', origin)
    response.setHeader('Access-Control-Expose-Headers', 'RateLimit')
    next()
  })
  app.use(gate.middleware)
  app.options('/', (_request, response) => void response.sendStatus(204))
  app.post('/', (_request, response) => void response.send('ok'))
}

const statusOf = async ({ ask }: Guarded, init: RequestInit) => (await ask('/', init)).status

describe('a CORS preflight', () => {
  it('HDR-10: ten pairs pass, an eleventh preflight is refused, and the page can read why', async () => {
    const one = await guarded({ rules: [ipRule({ limit: 10 })] }, build)
    for (let pair = 0; pair < 10; pair++) {
      expect([await statusOf(one, preflight), await statusOf(one, post)]).toEqual([204, 200])
    }
    const refused = await one.ask('/', preflight)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('access-control-allow-origin')).toBe(origin)
    expect(refused.headers.get('access-control-expose-headers')).toBe('RateLimit, Retry-After')
    expect(await statusOf(one, post)).toBe(429)
  })

  it('does not use up the limit of everybody together, nor of a list of keys', async () => {
    const rules = [
      { name: 'global', key: 'global', limit: 1, window: '1m' } as const,
      { name: 'pair', key: ['ip', 'header:origin'], limit: 1, window: '1m' } as const,
    ]
    const one = await guarded({ rules }, build)
    expect([await statusOf(one, preflight), await statusOf(one, post)]).toEqual([204, 200])
    expect([await statusOf(one, preflight), await statusOf(one, post)]).toEqual([429, 429])
  })

  it('is no plain OPTIONS request, which counts like any other', async () => {
    const one = await guarded({ rules: [ipRule({ limit: 1 })] }, build)
    expect(await statusOf(one, { method: 'OPTIONS' })).toBe(204)
    expect(await statusOf(one, post)).toBe(429)
  })
})

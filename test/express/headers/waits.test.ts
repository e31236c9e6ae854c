/*
 * A client that believes what it is told, over real HTTP and random sets of rules: one that waits exactly
 * as long as Retry-After says is served, whichever dialect the rest of the fields speak, and an answer
 * without Retry-After comes from a rule that can never allow the request.
 */
import * as fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import type { RuleOptions } from '../../../src/core/rule.js'
import { dialectNames } from '../../../src/express/headers/index.js'
import { createGate, type GateParts } from '../../../src/gate/gate.js'
import { manualClock } from '../../../src/testing/index.js'
import { guarded, startMs, type Answer } from '../../support/server.js'
import { rateLimitFields } from '../../support/structured-fields.js'
import { ruleSets } from '../../support/units/rule-sets.js'

const most = { limit: 9, windowMs: 3_600_000, rules: 4 }
const requests = fc.array(
  fc.record({
    gapMs: fc.oneof(fc.nat(50), fc.nat(5_000), fc.double({ min: 0, max: 900_000, noNaN: true })),
    path: fc.constantFrom('/', '/item'),
    session: fc.constantFrom('', 's1'),
  }),
  { minLength: 4, maxLength: 16 },
)

/** How a patient client fared with one request. */
interface Patience {
  /** Waits until the general rules allowed it, and then until the route's did too. */
  general: number
  route: number
  /** `served`, or the limits of the rules that can never allow it. */
  end: 'served' | number[]
}

/** Sends a request, and again after each announced wait, until it is served or told never to come back. */
async function patiently(
  send: () => Promise<Answer>,
  wait: (ms: number) => void,
  rules: readonly RuleOptions[],
): Promise<Patience> {
  const fared: Patience = { general: 0, route: 0, end: 'served' }
  while (fared.general + fared.route < 10) {
    const { status, headers, text } = await send()
    // Read strictly, whatever they say.
    rateLimitFields(headers)
    if (status === 200) return fared
    const body = JSON.parse(text)
    const violated = rules.filter(({ name }) => body['violated-policies'].includes(name))
    const seconds = headers.get('retry-after')
    const millisecondsSay =
      body.retryAfterMs === null ? null : String(Math.max(1, Math.ceil(body.retryAfterMs / 1000)))
    expect([status, seconds]).toEqual([429, millisecondsSay])
    if (seconds === null) return { ...fared, end: violated.map(({ limit }) => Number(limit)) }
    fared[violated.some((rule) => rule.function === undefined) ? 'general' : 'route']++
    wait(Number(seconds) * 1000)
  }
  return fared
}

it.each(dialectNames)(
  'in %s a client that waits exactly Retry-After is served',
  async (headers) => {
    const clock = manualClock(startMs)
    const unused = { rules: [{ name: 'unused', limit: 1, window: '1m' }] }
    let gate: GateParts | null = null
    const { ask } = await guarded(unused, (app) => {
      const current = () => gate as GateParts
      app.use((request, response, next) => current().middleware(request, response, next))
      app.use('/item', (request, response, next) => {
        if (!current().limiter.hasFunction('item')) return next()
        current().limit('item')(request, response, next)
      })
      app.use((_request, response) => void response.send('served'))
    })
    const logger = { info() {}, warn() {}, error() {} }
    let waitCount = 0
    const property = fc.asyncProperty(ruleSets(most), requests, async (rules, sequence) => {
      const opened = createGate({
        rules,
        clock,
        headers,
        logger,
        session: (request) => String(request.headers['x-session'] ?? '') || undefined,
      })
      gate = opened
      onTestFinished(() => opened.close())
      for (const { gapMs, path, session } of sequence) {
        clock.advance(gapMs)
        const send = () => ask(path, session === '' ? {} : { headers: { 'x-session': session } })
        const { general, route, end } = await patiently(send, (ms) => clock.advance(ms), rules)
        // A route's rules are asked only once the general ones allow: one wait for each at most.
        expect(general).toBeLessThanOrEqual(1)
        expect(route).toBeLessThanOrEqual(1)
        expect(end === 'served' || end.includes(0)).toBe(true)
        waitCount += general + route
      }
    })
    await fc.assert(property, { numRuns: 40 })
    expect(waitCount).toBeGreaterThan(40)
  },
)

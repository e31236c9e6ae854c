/*
 * Exempt requests: passed, counted as exempt, charged to no rule, told of no limit.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Express } from 'express'
import { describe, expect, it } from 'vitest'
import { compileExempt } from '../../src/express/exemption.js'
import type { GateParts } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { until } from '../support/processes.js'
import { countOf, guarded, statuses, type Answer } from '../support/server.js'
import { ipRule, messageOf } from '../support/units/limits.js'
import { collectingLogger } from '../support/units/log.js'

const rules = [ipRule({ limit: 2 }), { name: 'search', limit: 1, window: '1m', function: 'search' }]

/** Behind one proxy; `GET /search` is a function, and an error tells its text. */
function build(app: Express, gate: GateParts): void {
  app.set('trust proxy', 1)
  app.use(gate.middleware)
  app.get('/', (_request, response) => void response.send('ok'))
  app.get('/search', gate.limit('search'), (_request, response) => void response.send('found'))
  app.use((error: Error, _request: unknown, response: { status: Function }, _next: unknown) => {
    response.status(500).send(error.message)
  })
}

/** A promise of another library. */
function promiseLike(said: boolean): Promise<boolean> {
  const like = {} as Promise<boolean>
  // oxlint-disable-next-line unicorn/no-thenable
  return Object.assign(like, { then: (done: (said: boolean) => void) => done(said) })
}

type Options = Omit<GateOptions, 'clock'>

const exempting = (options: Options) => guarded({ rules, ...options }, build)

const fieldsOf = ({ headers }: Answer) => [
  headers.get('ratelimit'),
  headers.get('ratelimit-policy'),
]

describe('an exempt request', () => {
  const waysOfSaying: Record<string, Options> = {
    'by its address': { exempt: { ips: ['127.0.0.0/8'] } },
    'by skip': { skip: () => true },
    'by a promise of skip': { skip: async () => true },
    'by what is like a promise': { skip: () => promiseLike(true) },
  }

  it.each(Object.entries(waysOfSaying))(
    '%s passes, counted and charged to no rule',
    async (...given) => {
      const { ask, gate } = await exempting(given[1])
      for (const path of ['/', '/search']) {
        const answers = [await ask(path), await ask(path), await ask(path)]
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
        expect(answers.map(fieldsOf)).toEqual([
          [null, null],
          [null, null],
          [null, null],
        ])
      }
      const { totals, rules: found } = await gate.stats()
      expect(totals).toEqual({ requests: 6, allowed: 0, declined: 0, exempt: 6 })
      expect(found.map((rule) => Number(rule.totals.within) + Number(rule.totals.near))).toEqual([
        0, 0,
      ])
      expect(await gate.exposition.text()).toContain(
        'tallygate_requests_total{outcome="exempt"} 6\n',
      )
    },
  )

  it('is told by its client and not by the proxy', async () => {
    const { ask } = await exempting({ exempt: { ips: ['10.0.0.0/8', '2001:db8:1::/48'] } })
    const from = (ip: string) => () => ask('/', { headers: { 'x-forwarded-for': ip } })
    for (const ip of ['10.9.8.7', '::ffff:10.9.8.7', '[2001:db8:1::5]:80', '2001:DB8:1:2:3::']) {
      expect([ip, ...(await statuses(3, from(ip)))]).toEqual([ip, 200, 200, 200])
    }
    for (const ip of ['11.9.8.7', '2001:db8:2::5', '::1']) {
      expect([ip, ...(await statuses(3, from(ip)))]).toEqual([ip, 200, 200, 429])
    }
  })

  it('is not one whose forwarding header nobody trusts', async () => {
    const { logger } = collectingLogger()
    const { ask } = await guarded({ rules, logger, exempt: { ips: ['10.0.0.0/8'] } })
    const seen = await statuses(3, () => ask('/', { headers: { 'x-forwarded-for': '10.0.0.1' } }))
    expect(seen).toEqual([200, 200, 429])
  })

  it('is so for every gate.limit that it comes to, and skip is asked once', async () => {
    let askedCount = 0
    const skip = async () => ++askedCount > 0
    const { ask } = await exempting({ skip })
    expect((await ask('/search')).status).toBe(200)
    expect(askedCount).toBe(1)
  })

  it('is so where gate.limit stands alone', async () => {
    const { ask, gate } = await guarded({ rules, skip: () => true }, (app, only) => {
      app.get('/search', only.limit('search'), (_request, response) => void response.send('found'))
    })
    expect(await statuses(3, () => ask('/search'))).toEqual([200, 200, 200])
    expect((await gate.stats()).totals.exempt).toBe(3)
  })
})

describe('skip', () => {
  it('is asked only of clients that are not exempt by address', async () => {
    let askedCount = 0
    const skip = () => ++askedCount < 0
    const { ask } = await exempting({ skip, exempt: { ips: ['127.0.0.1'] } })
    await ask()
    await ask('/', { headers: { 'x-forwarded-for': '203.0.113.7' } })
    expect(askedCount).toBe(1)
  })

  it.each([false, undefined, null, 0, '', Promise.resolve(false), promiseLike(false)])(
    'that says %o exempts nobody',
    async (said) => {
      const { ask, gate } = await exempting({ skip: () => said as boolean })
      expect(await statuses(3, () => ask())).toEqual([200, 200, 429])
      expect((await gate.stats()).totals).toMatchObject({ allowed: 2, declined: 1, exempt: 0 })
    },
  )

  it.each([
    [
      'throws',
      () => {
        throw new Error('skip is broken')
      },
    ],
    ['is rejected', () => Promise.reject(new Error('skip is broken'))],
  ])('that %s is an error of the request, charged to no rule and counted', async (_, skip) => {
    const { ask, gate } = await exempting({ skip })
    const { status, text } = await ask()
    expect([status, text]).toEqual([500, 'skip is broken'])
    const { totals, rules: found } = await gate.stats()
    expect(totals).toEqual({ requests: 1, allowed: 1, declined: 0, exempt: 0 })
    expect(found[0]?.totals).toEqual({ within: 0, near: 0, over: 0 })
  })

  it.each([
    [true, 2, 'exempt'],
    [false, 2, 'allowed'],
    [false, 0, 'declined'],
  ])('that says %s after the client has gone: limit %i, counted as %s', async (...given) => {
    const [isExempt, limit, outcome] = given
    let say: ((isExempt: boolean) => void) | undefined
    const skip = () => new Promise<boolean>((resolve) => (say = resolve))
    const { gate, server, url } = await guarded({ rules: [ipRule({ limit })], skip })
    const { hostname, port } = new URL(url)
    const closed = once(server, 'connection').then(async ([socket]) => once(socket, 'close'))
    const socket = connect(Number(port), hostname)
    socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
    await until(async () => say !== undefined, 'skip to be asked')
    socket.destroy()
    await closed
    expect((await gate.stats()).totals.requests).toBe(0)
    say?.(isExempt)
    await until(async () => (await gate.stats()).totals.requests === 1, 'the count')
    expect((await gate.stats()).totals).toMatchObject({ [outcome]: 1 })
  })

  it('that takes its time lets no request past the limit', async () => {
    const skip = () => new Promise<boolean>((resolve) => setImmediate(resolve, false))
    const { ask } = await exempting({ skip })
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask()))
    expect(
      countOf(
        answers.map(({ status }) => status),
        200,
      ),
    ).toBe(2)
  })
})

describe('exempt', () => {
  it.each([
    [null, 'exempt must be a mapping such as { ips: [10.0.0.0/8] }: received null'],
    ['10.0.0.0/8', 'exempt must be a mapping'],
    [['10.0.0.0/8'], 'exempt must be a mapping'],
    [{ ip: ['10.0.0.0/8'] }, 'unknown field "ip" of exempt: did you mean ips?'],
    [{ somethingElse: 1 }, 'unknown field "somethingElse" of exempt: known fields are ips'],
    [{ ips: null }, 'exempt.ips must be a list of addresses and ranges: received null'],
    [{ ips: '10.0.0.0/8' }, 'exempt.ips must be a list'],
    [
      { ips: ['10.0.0.0/8', '10.0.0.0/33'] },
      'exempt.ips[1] must be an address such as 192.0.2.7, or a range such as 10.0.0.0/8 or ' +
        '2001:db8::/32: received "10.0.0.0/33" (TALLYGATE_CONFIG_FIELD)',
    ],
    [{ ips: ['localhost'] }, 'received "localhost"'],
    [{ ips: [''] }, 'received ""'],
    [{ ips: [10] }, 'received 10'],
    [{ ips: [{ '2001:db8:': null }] }, '(in YAML put an IPv6 address in quotes)'],
    [{ ips: ['::ffff:10.0.0.0/8'] }, '(an IPv4 range is written without ::ffff:)'],
  ])('%j is refused, with what would be right', (given, message) => {
    expect(messageOf(() => compileExempt(given))).toContain(message)
  })

  it('has no hole that is passed over', () => {
    const ips: string[] = []
    ips[1] = '10.0.0.1'
    expect(messageOf(() => compileExempt({ ips }))).toContain('exempt.ips[0] must be')
  })

  it.each([undefined, {}, { ips: [] }, { ips: undefined }])('%j exempts nobody', (given) => {
    expect(compileExempt(given).isEmpty).toBe(true)
  })
})

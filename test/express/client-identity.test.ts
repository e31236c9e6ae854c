/*
 * Who a request is from, over real connections: whose address counts, what spellings are one client, and
 * what the gate counts of it. `trust proxy` set by each test as it needs.
 */
import { once } from 'node:events'
import { createServer, request as httpRequest, type RequestOptions } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express, { type Express } from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { addressKinds } from '../../src/core/address-kind.js'
import { createGate, type GateParts } from '../../src/gate/gate.js'
import { manualClock } from '../../src/testing/index.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { temporaryFolder } from '../support/processes.js'
import { countOf, guarded, startMs, statuses } from '../support/server.js'
import { ipRule } from '../support/units/limits.js'
import { collectingLogger } from '../support/units/log.js'

const behind = (trust: unknown) => (app: Express, gate: GateParts) => {
  app.set('trust proxy', trust)
  app.use(gate.middleware)
  app.get('/', (_request, response) => void response.send('ok'))
}
const guardAll = behind(false)

const seriesOf = async (gate: GateParts) => parseExposition(await gate.exposition.text())

/** The counts that are not 0, by kind of address. */
async function kindsOf(gate: GateParts): Promise<Record<string, number>> {
  const series = await seriesOf(gate)
  const counts = addressKinds.map(
    (kind) => [kind, valueOf(series, 'tallygate_client_identity_total', { kind })] as const,
  )
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

const untrustedOf = async (gate: GateParts) =>
  valueOf(await seriesOf(gate), 'tallygate_untrusted_forward_total')

/** An Express app that listens where `guarded` does not: both families, or a Unix socket. */
async function listening(limit: number, where: { host: string } | { path: string }) {
  const { logger, lines } = collectingLogger()
  const gate = createGate({ rules: [ipRule({ limit })], clock: manualClock(startMs), logger })
  const app = express()
  guardAll(app, gate)
  const server = createServer(app).listen('host' in where ? { ...where, port: 0 } : where)
  onTestFinished(async () => {
    server.close()
    await gate.close()
  })
  await once(server, 'listening')
  const ask = (options: RequestOptions) =>
    new Promise<number>((resolve, reject) => {
      const sent = httpRequest({ path: '/', agent: false, ...options }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      sent.on('error', reject).end()
    })
  return { gate, lines, server, ask }
}

describe('a client behind a trusted proxy', () => {
  const from = (ask: Awaited<ReturnType<typeof guarded>>['ask']) => (ip: string) =>
    ask('/', { headers: { 'x-forwarded-for': ip } })

  it('IP-01: is one key in every spelling of its address', async () => {
    const { ask } = await guarded({ rules: [ipRule({ limit: 3 })] }, behind(1))
    const one = ['::ffff:1.2.3.4', '::FFFF:102:304', '1.2.3.4', '[::ffff:1.2.3.4]:99']
    expect(await statuses(4, (turn) => from(ask)(one[turn] ?? ''))).toEqual([200, 200, 200, 429])
    const other = ['2001:db8:1234:5678::1.2.3.4', '2001:db8:1234:5678::102:304']
    const seen = await statuses(4, (turn) => from(ask)(other[turn % 2] ?? ''))
    expect(seen).toEqual([200, 200, 200, 429])
    expect((await from(ask)('64:ff9b::1.2.3.4')).status).toBe(200)
  })

  it('IP-04: owns its /64 of IPv6, or a /56 where the rule says so', async () => {
    for (const [ipv6Prefix, neighbour] of [
      [undefined, 200],
      [56, 429],
    ] as const) {
      const { ask } = await guarded({ rules: [ipRule({ limit: 5, ipv6Prefix })] }, behind(1))
      const address = (turn: number) => `2001:db8:1:2::${(turn + 1).toString(16)}`
      const seen = await statuses(20, (turn) => from(ask)(address(turn)))
      expect(countOf(seen, 200)).toBe(5)
      expect((await from(ask)('2001:db8:1:3::1')).status).toBe(neighbour)
    }
  })

  it('IP-12: is apart from others that came through NAT64', async () => {
    const { ask } = await guarded({ rules: [ipRule({ limit: 2 })] }, behind(1))
    for (const client of ['64:ff9b::c633:6401', '64:ff9b::c633:6402']) {
      expect(await statuses(3, () => from(ask)(client))).toEqual([200, 200, 429])
    }
  })

  it('IP-11: is the socket where the header has no address, and counted as such', async () => {
    const { ask, gate } = await guarded({ rules: [ipRule({ limit: 4 })] }, behind(1))
    const rubbish = ['unknown', '', 'a,b,,', 'A'.repeat(10_000), '1.2.3.4.5', '::ffff:1::2']
    const seen = await statuses(rubbish.length, (turn) => from(ask)(rubbish[turn] ?? ''))
    expect(seen).toEqual([200, 200, 200, 200, 429, 429])
    expect(await kindsOf(gate)).toEqual({ loopback: rubbish.length })
  })

  it('is counted by where its address lies, once a request', async () => {
    const { logger } = collectingLogger()
    const rules = [ipRule({ limit: 100 })]
    const { ask, gate } = await guarded({ rules, logger }, (app, one) => {
      app.set('trust proxy', 1)
      app.use(one.middleware, one.middleware)
      app.get('/', (_request, response) => void response.send('ok'))
    })
    const clients = ['203.0.113.7', '10.1.1.1', '::ffff:192.168.1.1', '2001:db8::1', '127.0.0.1']
    await statuses(clients.length, (turn) => from(ask)(clients[turn] ?? ''))
    expect(await kindsOf(gate)).toEqual({ public: 2, private: 2, loopback: 1 })
  })
})

describe('a socket', () => {
  it('IP-02: of IPv4 on a server for both families is a client of its own', async () => {
    const { gate, server, ask } = await listening(2, { host: '::' })
    const { port } = server.address() as AddressInfo
    const from = (localAddress: string) => ask({ host: '127.0.0.1', port, localAddress })
    const first = [await from('127.0.0.2'), await from('127.0.0.2'), await from('127.0.0.2')]
    expect(first).toEqual([200, 200, 429])
    expect([await from('127.0.0.3'), await from('127.0.0.3')]).toEqual([200, 200])
    expect(await kindsOf(gate)).toEqual({ loopback: 5 })
  })

  it('IP-06: of a Unix path has no address: all share one key, warned of once', async () => {
    const socketPath = join(temporaryFolder(), 'app.sock')
    const { gate, lines, ask } = await listening(3, { path: socketPath })
    const seen: number[] = []
    for (let turn = 0; turn < 4; turn++) seen.push(await ask({ socketPath }))
    expect(seen).toEqual([200, 200, 200, 429])
    expect(lines.map(({ fields }) => fields['code'])).toEqual(['TALLYGATE_WARN_NO_ADDRESS'])
    expect(await kindsOf(gate)).toEqual({ missing: 4 })
  })
})

describe('a forwarding header that is not trusted', () => {
  const headersOf = {
    'x-forwarded-for': '203.0.113.9',
    forwarded: 'for=203.0.113.9',
    'x-real-ip': '203.0.113.9',
  }

  it('IP-07: changes nobody: a new one for each request passes the limit and no more', async () => {
    const { logger } = collectingLogger()
    const { ask, gate } = await guarded({ rules: [ipRule({ limit: 5 })], logger })
    const seen = await statuses(200, (turn) =>
      ask('/', {
        headers: Object.fromEntries(
          Object.entries(headersOf).map(([name, value]) => [name, value.replace(/9$/, `${turn}`)]),
        ),
      }),
    )
    expect(countOf(seen, 200)).toBe(5)
    expect(await kindsOf(gate)).toEqual({ loopback: 200 })
  })

  it.each(Object.entries(headersOf))(
    'IP-10: %s warns once, naming the setting, and is counted each time',
    async (name, value) => {
      const { logger, lines } = collectingLogger()
      const { ask, gate } = await guarded({ rules: [ipRule({ limit: 2 })], logger })
      const seen = await statuses(3, () => ask('/', { headers: { [name]: value } }))
      expect(seen).toEqual([200, 200, 429])
      expect(lines).toHaveLength(1)
      expect(lines[0]?.message).toContain("'trust proxy'")
      expect(lines[0]?.fields['code']).toBe('TALLYGATE_WARN_UNTRUSTED_FORWARD')
      expect(await untrustedOf(gate)).toBe(3)
    },
  )

  it('IP-10: is counted once a request, however many there are', async () => {
    const { logger } = collectingLogger()
    const { ask, gate } = await guarded({ rules: [ipRule()], logger })
    await ask('/', { headers: headersOf })
    await ask()
    expect(await untrustedOf(gate)).toBe(1)
  })

  it.each([0, '', null, []])('is one too where trust proxy is %j', async (trust) => {
    const { logger } = collectingLogger()
    const { ask, gate } = await guarded({ rules: [ipRule()], logger }, (app, one) => {
      // Express cannot compile an empty text; it stands for settings from elsewhere.
      if (trust === '') app.settings['trust proxy'] = trust
      else app.set('trust proxy', trust)
      app.use(one.middleware)
      app.get('/', (_request, response) => void response.send('ok'))
    })
    await ask('/', { headers: headersOf })
    expect(await untrustedOf(gate)).toBe(1)
  })

  it.each([1, 'loopback', ['127.0.0.1'], () => true])(
    'is none where trust proxy is %o',
    async (trust) => {
      const { logger, lines } = collectingLogger()
      const { ask, gate } = await guarded({ rules: [ipRule()], logger }, behind(trust))
      await ask('/', { headers: headersOf })
      expect(await untrustedOf(gate)).toBe(0)
      expect(lines).toEqual([])
    },
  )

  it('is none in an app that has its setting from the one it is mounted in', async () => {
    const { logger, lines } = collectingLogger()
    const { ask, gate } = await guarded({ rules: [ipRule({ limit: 1 })], logger }, (app, one) => {
      app.set('trust proxy', 1)
      const inner = express()
      guardRoot(inner, one)
      app.use(inner)
    })
    const from = (ip: string) => ask('/', { headers: { 'x-forwarded-for': ip } })
    expect((await from('203.0.113.1')).status).toBe(200)
    expect((await from('203.0.113.2')).status).toBe(200)
    expect([await untrustedOf(gate), lines]).toEqual([0, []])
  })

  it('is found in a server without Express', async () => {
    const { logger, lines } = collectingLogger()
    const { server, gate, ask } = await guarded({ rules: [ipRule({ limit: 2 })], logger })
    server.removeAllListeners('request')
    server.on('request', (request, response) => {
      gate.middleware(request, response, () => response.end('ok'))
    })
    const seen = await statuses(3, () => ask('/', { headers: headersOf }))
    expect(seen).toEqual([200, 200, 429])
    expect(await untrustedOf(gate)).toBe(3)
    expect(lines).toHaveLength(1)
  })

  it('is none where something in front has read it and set the address', async () => {
    const { logger, lines } = collectingLogger()
    const { ask, gate } = await guarded({ rules: [ipRule({ limit: 1 })], logger }, (app, one) => {
      app.use((request, _response, next) => {
        Object.defineProperty(request, 'ip', { value: request.headers['x-real-ip'] })
        next()
      })
      guardRoot(app, one)
    })
    for (const ip of ['203.0.113.1', '203.0.113.2']) {
      expect((await ask('/', { headers: { 'x-real-ip': ip } })).status).toBe(200)
    }
    expect([await untrustedOf(gate), lines]).toEqual([0, []])
  })
})

function guardRoot(app: Express, gate: GateParts): void {
  app.use(gate.middleware)
  app.get('/', (_request, response) => void response.send('ok'))
}

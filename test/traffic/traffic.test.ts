/*
 * A run against the built app, and against servers that go, redirect or stay silent.
 */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/clock.js'
import type { TrafficReport } from '../../src/traffic/report.js'
import { runTraffic } from '../../src/traffic/traffic.js'
import { startApp, type StartedApp } from '../support/processes.js'

const clock = systemClock

describe('traffic to an app that trusts its proxy', () => {
  let app: StartedApp
  let report: TrafficReport
  const progress: number[] = []

  beforeAll(async () => {
    const TALLYGATE_CONFIG = fileURLToPath(new URL('low-limits.yml', import.meta.url))
    app = await startApp({ TRUST_PROXY: '1', TALLYGATE_CONFIG })
    report = await runTraffic({
      url: app.url,
      clock,
      durationMs: 4_000,
      rate: 60,
      seed: 42,
      onProgress: ({ sent }) => progress.push(sent),
    })
  })
  afterAll(() => app.end())

  it('counts what the app counts, to the last request', async () => {
    const { totals } = await app.stats()
    expect(report.sent).toBe(report.answered + report.failed)
    expect(report.failed).toBe(0)
    expect(totals.requests).toBe(report.sent)
    expect(totals.declined).toBe(report.statuses['429'])
    const counted = Object.values(report.statuses).reduce((sum, count) => sum + count, 0)
    expect(counted).toBe(report.answered)
  })

  it('names the rules that declined, each as often as its verdicts say', async () => {
    const { rules } = await app.stats()
    const over = rules.map(({ name, totals }) => [name, Number(totals.over)] as const)
    expect(over.filter(([, count]) => count > 0).length).toBeGreaterThan(1)
    expect(Object.fromEntries(over.filter(([, count]) => count > 0))).toEqual(report.declinedBy)
  })

  it('comes from several addresses and keeps sessions', async () => {
    const { rules } = await app.stats()
    const keysOf = (name: string) => rules.find((rule) => rule.name === name)?.trackedKeys ?? 0
    // A client that was declined each time took nothing, and so is not tracked.
    expect(keysOf('ip')).toBeLessThanOrEqual(report.clientCount)
    expect(keysOf('ip')).toBeGreaterThan(5)
    expect(report.sessions.begun).toBe(report.statuses['201'])
    expect(report.sessions.begun).toBeGreaterThan(2)
    expect(keysOf('session')).toBeGreaterThan(2)
    expect(report.isAddressShared).toBe(false)
  })

  it('tells each second how far it is', () => {
    expect(progress.length).toBeGreaterThanOrEqual(3)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
  })
})

describe('traffic to an app that trusts no proxy', () => {
  it('sees that all clients are one address', async () => {
    const app = await startApp()
    try {
      const report = await runTraffic({
        url: app.url,
        clock,
        durationMs: 2_000,
        rate: 100,
        seed: 1,
      })
      expect(report.isAddressShared).toBe(true)
    } finally {
      await app.end()
    }
  })
})

describe('traffic to other servers', () => {
  it('follows no redirect, and tells nothing of addresses where no rule ip is shown', async () => {
    await withServer(
      (_request, response) => response.writeHead(302, { Location: 'http://192.0.2.1/' }).end(),
      async (url) => {
        const report = await runTraffic({ url, clock, durationMs: 1_000, rate: 50 })
        expect(report.statuses).toEqual({ '302': report.sent })
        expect(report.isAddressShared).toBeNull()
      },
    )
  })

  it('gives up on a server that has gone, and still counts every request once', async () => {
    let requestCount = 0
    await withServer(
      (request, response) => (++requestCount > 20 ? request.socket.destroy() : response.end('ok')),
      async (url) => {
        const report = await runTraffic({ url, clock, durationMs: 60_000, rate: 500 })
        expect(report.stoppedBy).toBe('failures')
        expect(report.answered).toBe(20)
        expect(report.sent).toBe(report.answered + report.failed)
      },
    )
  })

  it('stops at a signal, waits for what is on its way, and reports', async () => {
    const stop = new AbortController()
    let requestCount = 0
    await withServer(
      (_request, response) => {
        if (++requestCount === 10) stop.abort()
        response.end('ok')
      },
      async (url) => {
        const { signal } = stop
        const report = await runTraffic({ url, clock, durationMs: 60_000, rate: 100, signal })
        expect(report.stoppedBy).toBe('signal')
        expect(report.sent).toBe(requestCount)
        expect(report.answered).toBe(requestCount)
      },
    )
  })

  it('never has more than 64 requests on their way', async () => {
    let open = 0
    let openMax = 0
    await withServer(
      (_request, response) => {
        openMax = Math.max(openMax, ++open)
        setTimeout(() => {
          open--
          response.end('ok')
        }, 300)
      },
      async (url) => {
        const report = await runTraffic({ url, clock, durationMs: 2_000, rate: 500 })
        expect(report.failed).toBe(0)
        expect(openMax).toBeGreaterThan(32)
        expect(openMax).toBeLessThanOrEqual(64)
      },
    )
  })
})

async function withServer(
  listener: RequestListener,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    await use(`http://127.0.0.1:${port}`)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

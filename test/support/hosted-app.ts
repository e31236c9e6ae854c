/*
 * The bundled app within the test's own process: a clock that is set by hand, and a database and a log that
 * can be looked into. What a test of the process itself needs is in processes.ts.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createApp } from '../../src/app/app.js'
import { readEnvironment } from '../../src/app/environment.js'
import type { RuleOptions } from '../../src/core/rule.js'
import { createGate, type GateParts } from '../../src/gate/gate.js'
import type { CountingDatabase } from '../../src/gate/counting.js'
import { manualClock, type ManualClock } from '../../src/testing/index.js'
import type { PageCache } from '../../src/url/page-cache.js'
import { parseExposition, type SeriesValue } from './exposition.js'
import { temporaryFolder } from './processes.js'
import { startMs } from './server.js'
import { collectingLogger, type LogLine } from './units/log.js'

export interface HostedApp {
  readonly url: string
  readonly gate: GateParts
  readonly clock: ManualClock
  readonly database: CountingDatabase
  readonly pages: PageCache
  readonly lines: LogLine[]
  /** Asks for a page; headers may say who asks. */
  parse(url: string, headers?: Record<string, string>): Promise<Parsed>
  scrape(): Promise<SeriesValue[]>
}

export interface Parsed {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

export interface HostedAppOptions {
  readonly rules?: readonly RuleOptions[]
  /** Servers of this machine that pages may be fetched from. */
  readonly servers?: readonly { port: number }[]
}

export async function hostedApp({
  rules,
  servers = [],
}: HostedAppOptions = {}): Promise<HostedApp> {
  const clock = manualClock(startMs)
  const { logger, lines } = collectingLogger()
  const gate = createGate({
    rules: rules ?? [{ name: 'ip', key: 'ip', limit: 100_000, window: '1h' }],
    database: join(temporaryFolder(), 'x.db'),
    clock,
    logger,
  })
  const database = gate.database as CountingDatabase
  const settings = readEnvironment({
    TALLYGATE_URL_ALLOW: servers.map(({ port }) => `127.0.0.1/32:${port}`).join(', '),
    TRUST_PROXY: '1',
  })
  const isClosing = () => false
  const { app, pages, fetcher } = createApp({ gate, database, settings, clock, logger, isClosing })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await fetcher.close()
    await gate.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    gate,
    clock,
    database,
    pages,
    lines,
    async parse(page, headers = {}) {
      const response = await fetch(`${url}/api/parse?url=${encodeURIComponent(page)}`, { headers })
      const body = (await response.json()) as Record<string, unknown>
      return { status: response.status, headers: response.headers, body }
    },
    scrape: async () => parseExposition(await (await fetch(`${url}/metrics`)).text()),
  }
}

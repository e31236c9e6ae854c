/*
 * The main job of tallygate on real parts: the built app with a database of its own, a real Prometheus that
 * scrapes it each second, and half a minute of real HTTP that goes past every limit. Afterwards what the
 * clients saw, /metrics, /admin/stats and the SQLite rows agree to the last request, also after a restart;
 * each rule declined when it should and only then; and every query of the board finds its data.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Statistics } from '../../src/admin/statistics.js'
import { ask, boardQueries, filledIn } from '../support/board.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import {
  root,
  startApp,
  startPrometheus,
  temporaryFolder,
  type StartedApp,
  type StartedPrometheus,
} from '../support/processes.js'
import { describeWith, findTool } from '../support/tools.js'
import { Model, type ModelRule, type Sender } from './model.js'

const board = join(root, 'dashboards/json/overview.json')

/** The rules that ship, with windows of a day: see `Model`. */
const rules: ModelRule[] = [
  { name: 'global', key: 'global', limit: 1000 },
  { name: 'ip', key: 'ip', limit: 400 },
  { name: 'session', key: 'session', limit: 200 },
  { name: 'parse-url', key: 'global', limit: 60, function: 'parse-url' },
]

const ticks = 30
const heavy: Sender = { address: '203.0.113.7', session: null }

class Clients {
  readonly model = new Model(rules)
  readonly #app: () => StartedApp
  passed = 0
  declined = 0
  #cookie: string | null = null

  constructor(app: () => StartedApp) {
    this.#app = app
  }

  /** One request, whose answer must be the one that the model expects. */
  async send(sender: Sender, path: string, init: RequestInit = {}): Promise<Response> {
    const expected = this.model.expect(sender, path.startsWith('/api/parse') ? 'parse-url' : null)
    const headers: Record<string, string> = { 'x-forwarded-for': sender.address }
    if (sender.session !== null && this.#cookie !== null) headers['cookie'] = this.#cookie
    const response = await fetch(this.#app().url + path, { ...init, headers })
    const text = await response.text()
    if (response.status === 429) this.declined++
    else this.passed++
    const told = response.status === 429 ? JSON.parse(text)['violated-policies'] : []
    expect({ path, sender, told }).toEqual({ path, sender, told: expected })
    expect(response.status).toBeLessThan(500)
    return response
  }

  async beginSession(address: string): Promise<void> {
    const started = await this.send({ address, session: null }, '/api/session', { method: 'POST' })
    this.#cookie = started.headers.get('set-cookie')?.split(';')[0] ?? null
    expect(this.#cookie).not.toBe(null)
  }
}

describeWith(['prometheus'], 'the whole path', () => {
  const folder = temporaryFolder()
  const database = join(folder, 'counts.db')
  // Each fetch is of another page, so that each is charged.
  let pageCount = 0
  const pages = createServer((_request, response) => void response.end('<title>Page</title>'))
  const nextPage = () =>
    encodeURIComponent(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/${pageCount++}`)
  let app: StartedApp
  let prometheus: StartedPrometheus
  const clients = new Clients(() => app)

  const start = () => {
    const config = join(folder, 'tallygate.yml')
    const written = rules.map((rule) => ({
      ...rule,
      window: '1d',
      ...(rule.key === 'session' ? { absent: 'skip' } : {}),
    }))
    writeFileSync(config, JSON.stringify({ rules: written }))
    return startApp({
      TALLYGATE_CONFIG: config,
      TALLYGATE_DATABASE: database,
      TRUST_PROXY: '1',
      TALLYGATE_URL_ALLOW: `127.0.0.1/32:${(pages.address() as AddressInfo).port}`,
    })
  }

  const scraped = async () => parseExposition(await (await fetch(`${app.url}/metrics`)).text())

  const expectAgreement = (stats: Statistics) => {
    const { passed, declined } = clients
    const totals = { requests: passed + declined, allowed: passed, declined, exempt: 0 }
    expect(stats.totals).toEqual(totals)
    // A day or week may end while the test runs: then its two windows hold the sum.
    for (const { current, previous } of [stats.windows.day, stats.windows.week]) {
      expect(Number(current.allowed) + Number(previous.allowed)).toBe(passed)
      expect(Number(current.declined) + Number(previous.declined)).toBe(declined)
    }
    for (const rule of stats.rules) {
      const { within, near, over } = rule.totals
      expect({ name: rule.name, over }).toEqual({
        name: rule.name,
        over: clients.model.over.get(rule.name) ?? 0,
      })
      expect(Number(within) + Number(near) + Number(over)).toBe(
        clients.model.judged.get(rule.name) ?? 0,
      )
    }
  }

  beforeAll(async () => {
    await once(pages.listen(0, '127.0.0.1'), 'listening')
    app = await start()
    prometheus = await startPrometheus(findTool('prometheus') ?? '', app.url)
  })
  afterAll(async () => {
    await prometheus.end()
    await app.end()
    pages.close()
  })

  it('declines when it should and only then, through half a minute of traffic', async () => {
    await clients.beginSession('198.51.100.1')
    for (let tick = 0; tick < ticks; tick++) {
      const endMs = Date.now() + 1000
      for (let sent = 0; sent < 18; sent++) await clients.send(heavy, '/api/ping')
      for (let sent = 0; sent < 9; sent++) {
        const roaming = { address: `198.51.100.${sent + 1}`, session: 'one' }
        await clients.send(roaming, '/')
      }
      for (let sent = 0; sent < 4; sent++) {
        const caller = { address: `2001:db8:0:${tick}::${sent + 1}`, session: null }
        const address = caller.address.split('::')[0] ?? ''
        // Addresses of one /64 are one client.
        await clients.send({ ...caller, address: `${address}::` }, `/api/parse?url=${nextPage()}`)
      }
      for (let sent = 0; sent < 12; sent++) {
        const light = { address: `192.0.2.${sent + 1}`, session: null }
        await clients.send(light, sent % 4 === 0 ? `/unknown/${tick}` : '/api/ping')
      }
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, endMs - Date.now())))
    }
    for (const rule of rules) expect(clients.model.over.get(rule.name)).toBeGreaterThan(0)
    expect(clients.passed).toBe(1000)
  }, 90_000)

  it('shows the same figures to clients, /metrics and /admin/stats', async () => {
    const series = await scraped()
    const requests = (outcome: string) => valueOf(series, 'tallygate_requests_total', { outcome })
    expect(requests('allowed')).toBe(clients.passed)
    expect(requests('declined')).toBe(clients.declined)
    expect(requests('exempt')).toBe(0)
    for (const { name } of rules) {
      const labels = { rule: name, mode: 'enforce', verdict: 'over' }
      const over = valueOf(series, 'tallygate_rule_decisions_total', labels)
      expect(over).toBe(clients.model.over.get(name))
    }
    expectAgreement(await app.stats())
  })

  it('is seen by Prometheus to the last request', async () => {
    const query = 'sum by (outcome) (tallygate_requests_total)'
    const seen = async () => {
      const series = await ask(prometheus.url, query, true)
      return Object.fromEntries(series.map(({ metric, values }) => [metric['outcome'], values[0]]))
    }
    const { passed, declined } = clients
    await expect.poll(seen, { timeout: 5_000 }).toEqual({ allowed: passed, declined, exempt: 0 })
  })

  it('answers every query of the board with data and no NaN', async () => {
    const queries = boardQueries(board)
    expect(queries.length).toBeGreaterThan(10)
    for (const { panel, refId, expr, isInstant } of queries) {
      const series = await ask(prometheus.url, filledIn(expr), isInstant)
      const values = series.flatMap((one) => one.values)
      const found = { panel, refId, isEmpty: values.length === 0, isNaN: values.some(Number.isNaN) }
      expect(found).toEqual({ panel, refId, isEmpty: false, isNaN: false })
    }
  })

  it('keeps every count over a restart, in SQLite and in the statistics', async () => {
    const before = { passed: clients.passed, declined: clients.declined }
    expect((await app.end()).code).toBe(0)
    const connection = new Sqlite(database, { readonly: true })
    const sums = connection.prepare(
      `SELECT window, outcome, sum(count) AS count FROM request_tallies
       GROUP BY window, outcome ORDER BY window, outcome`,
    )
    const expected = ['day', 'hour', 'minute', 'week'].flatMap((window) => [
      { window, outcome: 'allowed', count: before.passed },
      { window, outcome: 'declined', count: before.declined },
    ])
    expect(sums.all()).toEqual(expected)
    connection.close()

    app = await start()
    expectAgreement(await app.stats())
    expect(valueOf(await scraped(), 'tallygate_requests_total', { outcome: 'allowed' })).toBe(0)
  })

  it('counts on after a restart: the totals are the sum of what each process counted', async () => {
    const before = clients.passed
    for (let sent = 0; sent < 50; sent++) {
      const response = await fetch(`${app.url}/api/ping`)
      await response.arrayBuffer()
      expect(response.status).toBe(200)
    }
    const series = await scraped()
    expect(valueOf(series, 'tallygate_requests_total', { outcome: 'allowed' })).toBe(50)
    const { totals } = await app.stats()
    expect(totals.allowed).toBe(before + 50)
    expect(totals.declined).toBe(clients.declined)
  })
})

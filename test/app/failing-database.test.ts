/*
 * The app over a database that does not take writes: requests go on, nothing is lost that fits in memory,
 * and it shows.
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as passing } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RuleOptions } from '../../src/core/rule.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { damage } from '../support/files.js'
import { hostedApp } from '../support/hosted-app.js'
import { startApp, temporaryFolder, until, type StartedApp } from '../support/processes.js'
import { requestsIn, writerOf } from '../support/units/keepers.js'
import { deltaOf, mondayMs } from '../support/units/tallies.js'

const secret = 'kept-over-restarts-0123456789'

const rules: RuleOptions[] = [
  { name: 'session', key: 'session', limit: 100_000, window: '1h', absent: 'skip' },
]

async function appAt(path: string, env: Record<string, string> = {}): Promise<StartedApp> {
  const config = join(temporaryFolder(), 'tallygate.yml')
  writeFileSync(config, JSON.stringify({ rules }))
  const settings = { TALLYGATE_CONFIG: config, TALLYGATE_DATABASE: path, SESSION_SECRET: secret }
  const app = await startApp({ ...settings, ...env })
  onTestFinished(() => void app.end())
  return app
}

const ready = async ({ url }: { url: string }) =>
  (await (await fetch(`${url}/readyz`)).json()) as { status: string; degraded: string[] }

const begin = async ({ url }: { url: string }) => {
  const response = await fetch(`${url}/api/session`, { method: 'POST' })
  await response.arrayBuffer()
  return {
    status: response.status,
    cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '',
  }
}

/** Whether the limit of sessions applies to a request: it carries one that is known. */
const hasSession = async ({ url }: { url: string }, cookie: string) => {
  const response = await fetch(`${url}/api/ping`, { headers: { cookie } })
  await response.arrayBuffer()
  return (
    response.status === 200 && response.headers.get('ratelimit')?.includes('"session"') === true
  )
}

const end = async ({ url }: { url: string }, cookie: string) => {
  const response = await fetch(`${url}/api/session`, { method: 'DELETE', headers: { cookie } })
  expect(response.status).toBe(204)
}

const sessionsIn = (path: string) => {
  const connection = new Sqlite(path, { readonly: true })
  const count = connection.prepare('SELECT count(*) FROM sessions').pluck().get() as number
  connection.close()
  return count
}

const linesWith = (text: string, log: string) =>
  log.split('\n').filter((line) => line.includes(text))

/** 50 requests a second for 8 s, every tenth of which begins a session; the others have one of those. */
async function load(app: StartedApp, cookie: string) {
  const cookies = [cookie]
  const startedMs = performance.now()
  const ask = async (turn: number) => {
    const askedMs = performance.now()
    let isRight = true
    if (turn % 10 === 0) {
      const begun = await begin(app)
      isRight = begun.status === 201
      cookies.push(begun.cookie)
    } else isRight = await hasSession(app, cookies[turn % cookies.length] ?? '')
    return { isRight, tookMs: performance.now() - askedMs }
  }
  const asked: ReturnType<typeof ask>[] = []
  for (let turn = 0; turn < 400; turn++) {
    asked.push(ask(turn))
    await passing(Math.max(0, startedMs + (turn + 1) * 20 - performance.now()))
  }
  return Promise.all(asked)
}

describe('a database that another process has locked', () => {
  // Once more where the machine was busy with something else.
  const options = { retry: 1, timeout: 60_000 }

  it(
    'SQL-01: delays none of 400 requests in 8 s, and has them soon afterwards',
    options,
    async () => {
      const path = join(temporaryFolder(), 'counts.db')
      const app = await appAt(path)
      const { cookie } = await begin(app)
      const other = new Sqlite(path)
      onTestFinished(() => void other.close())
      other.exec('BEGIN IMMEDIATE')
      const answers = await load(app, cookie)
      expect(answers.filter(({ isRight }) => !isRight)).toEqual([])
      expect(await ready(app)).toEqual({ status: 'degraded', degraded: ['database'] })
      const series = parseExposition(await (await fetch(`${app.url}/metrics`)).text())
      expect(valueOf(series, 'tallygate_database_up')).toBe(0)
      expect(valueOf(series, 'tallygate_tally_pending_requests')).toBeGreaterThanOrEqual(400)
      other.exec('COMMIT')
      await until(async () => requestsIn(path) === 401, 'the requests', 5_000)
      await until(async () => sessionsIn(path) === 41, 'the sessions', 5_000)
      await until(async () => (await ready(app)).status === 'ready', 'it to recover')
      const { code, stderr } = await app.end()
      expect(code).toBe(0)
      expect(linesWith('tallies cannot be written', stderr)).toHaveLength(1)
      expect(linesWith('sessions cannot be written', stderr)).toHaveLength(1)
      const [p99 = NaN] = answers
        .map(({ tookMs }) => tookMs)
        .toSorted((x, y) => y - x)
        .slice(3)
      expect(p99).toBeLessThan(250)
    },
  )
})

describe('a database whose thread is busy', () => {
  it('delays no request: sessions are read from their copies, and new ones begin', async () => {
    const app = await hostedApp({ rules })
    const { thread } = app.database
    const { cookie } = await begin(app)
    await until(async () => sessionsIn(thread.path) === 1, 'the session')
    const other = new Sqlite(thread.path)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    // Waits for the lock for seconds, and everything after it waits too.
    thread.bePatient()
    const busy = thread.ask(
      'tallies',
      'exchange',
      writerOf('busy')(deltaOf('week', mondayMs)),
      [],
      mondayMs,
    )
    const startedMs = performance.now()
    for (let turn = 0; turn < 20; turn++) {
      expect(await hasSession(app, cookie)).toBe(true)
      const { status, cookie: another } = await begin(app)
      expect([status, await hasSession(app, another)]).toEqual([201, true])
    }
    await end(app, cookie)
    expect(await hasSession(app, cookie)).toBe(false)
    // Not half of what one of them would have waited.
    expect(performance.now() - startedMs).toBeLessThan(2_500)
    expect(thread.waitingCount).toBeGreaterThan(1)
    other.exec('COMMIT')
    await busy
    await until(async () => sessionsIn(thread.path) === 20, 'the sessions')
  })
})

describe('a database file that is removed under the app', () => {
  it('is begun anew: it shows, requests and sessions go on, also after a restart', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    const app = await appAt(path)
    const { cookie } = await begin(app)
    await until(async () => sessionsIn(path) === 1, 'the session')
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
    await until(async () => (await ready(app)).degraded.length > 0, 'it to be noticed')
    expect(await ready(app)).toEqual({ status: 'degraded', degraded: ['database-replaced'] })
    expect(await hasSession(app, cookie)).toBe(true)
    await until(async () => sessionsIn(path) === 1, 'the session to be in the new file')
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(linesWith('was damaged, removed or replaced under the app', stderr)).toHaveLength(1)
    expect(requestsIn(path)).toBeGreaterThanOrEqual(1)
    const again = await appAt(path)
    expect(await ready(again)).toEqual({ status: 'ready', degraded: [] })
    expect(await hasSession(again, cookie)).toBe(true)
  })
})

describe('a database file that is damaged', () => {
  it('under the app is moved aside: nothing that waits is lost, and everything tells of it', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'counts.db')
    const app = await appAt(path)
    const { cookie } = await begin(app)
    await until(async () => sessionsIn(path) === 1 && requestsIn(path) === 1, 'what was written')
    const connection = new Sqlite(path)
    connection.exec(`INSERT INTO meta VALUES ('x', 'y')`)
    connection.pragma('wal_checkpoint(TRUNCATE)')
    connection.close()
    damage(path)
    await until(async () => (await ready(app)).degraded.includes('database-replaced'), 'it to show')
    for (let sent = 0; sent < 7; sent++) expect(await hasSession(app, cookie)).toBe(true)
    await until(async () => requestsIn(path) === 7, 'the requests')
    const name = readdirSync(folder).find((each) => /\.damaged-\w+$/.test(each)) ?? ''
    const { persistence, totals, since } = await app.stats()
    expect([persistence.movedAside, totals.requests]).toEqual([join(folder, name), 7])
    expect(Date.now() - Date.parse(since)).toBeLessThan(60_000)
    await until(async () => sessionsIn(path) === 1, 'the session to be in the new file')
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(linesWith('was damaged, removed or replaced under the app', stderr)).toHaveLength(1)
    expect(linesWith(name, stderr)).toHaveLength(1)
  })

  it('at the start is moved aside too, until the restart after that', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'counts.db')
    writeFileSync(path, 'this is no database '.repeat(500))
    const app = await appAt(path)
    expect(await ready(app)).toEqual({ status: 'degraded', degraded: ['database-replaced'] })
    const { movedAside } = (await app.stats()).persistence
    expect(readdirSync(folder)).toContain(movedAside?.slice(folder.length + 1))
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(linesWith('was moved aside', stderr)).toHaveLength(1)
    const again = await appAt(path)
    expect(await ready(again)).toEqual({ status: 'ready', degraded: [] })
    expect((await again.stats()).persistence.movedAside).toBe(null)
  })
})

describe('a file system without WAL', () => {
  it('SQL-14: is warned of once, and counts and sessions are kept all the same', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'counts.db')
    const preload = join(folder, 'no-wal.cjs')
    // In every thread: SQLite grants what it would grant there.
    writeFileSync(
      preload,
      `const Sqlite = require(${JSON.stringify(join(process.cwd(), 'node_modules/better-sqlite3'))})
       const { pragma } = Sqlite.prototype
       Sqlite.prototype.pragma = function (text, options) {
         const granted = text === 'journal_mode = WAL' ? 'journal_mode = DELETE' : text
         return pragma.call(this, granted, options)
       }`,
    )
    const app = await appAt(path, { NODE_OPTIONS: `--require ${preload}` })
    const { cookie } = await begin(app)
    expect(await hasSession(app, cookie)).toBe(true)
    await until(async () => sessionsIn(path) === 1 && requestsIn(path) === 2, 'what was written')
    expect(readdirSync(folder).filter((name) => name.endsWith('-wal'))).toEqual([])
    expect(await ready(app)).toEqual({ status: 'ready', degraded: [] })
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(linesWith('SQLite cannot use WAL there', stderr)).toHaveLength(1)
    expect(requestsIn(path)).toBe(2)
  })
})

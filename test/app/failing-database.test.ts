/*
 * A database that does not take writes: requests go on, nothing is lost that fits in memory, and it shows.
 */
import { rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseExposition, valueOf } from '../support/exposition.js'
import {
  cli,
  run,
  startApp,
  temporaryFolder,
  until,
  type StartedApp,
} from '../support/processes.js'

const ready = async (app: StartedApp) =>
  (await (await fetch(`${app.url}/readyz`)).json()) as { status: string; degraded: string[] }

const begin = async (app: StartedApp) => {
  const response = await fetch(`${app.url}/api/session`, { method: 'POST' })
  await response.arrayBuffer()
  return {
    status: response.status,
    cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '',
  }
}

const hasSession = async (app: StartedApp, cookie: string) => {
  const response = await fetch(`${app.url}/api/ping`, { headers: { cookie } })
  await response.arrayBuffer()
  return response.headers.get('ratelimit')?.includes('"session"') === true
}

describe('a database that another process has locked', () => {
  it('SQL-01: delays no request, and every count and session is there afterwards', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    const app = await startApp({ TALLYGATE_DATABASE: path })
    onTestFinished(() => void app.end())
    const before = await begin(app)
    const other = new Sqlite(path)
    other.exec('BEGIN IMMEDIATE')
    const cookies: string[] = []
    for (let sent = 0; sent < 40; sent++) {
      const { status, cookie } = await begin(app)
      expect(status).toBe(201)
      cookies.push(cookie)
    }
    await until(async () => (await ready(app)).status === 'degraded', 'it to show')
    expect(await ready(app)).toEqual({ status: 'degraded', degraded: ['database'] })
    const series = parseExposition(await (await fetch(`${app.url}/metrics`)).text())
    expect(valueOf(series, 'tallygate_database_up')).toBe(0)
    expect(valueOf(series, 'tallygate_tally_pending_requests')).toBeGreaterThanOrEqual(40)
    for (const cookie of [before.cookie, ...cookies])
      expect(await hasSession(app, cookie)).toBe(true)
    other.exec('COMMIT')
    await until(async () => (await ready(app)).status === 'ready', 'it to recover')
    const rows = other.prepare('SELECT count(*) AS count FROM sessions')
    await until(async () => (rows.get() as { count: number }).count === 41, 'the sessions')
    other.close()
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(stderr.match(/tallies cannot be written/g)).toHaveLength(1)
    expect(stderr.match(/sessions cannot be written/g)).toHaveLength(1)
    const counts = new Sqlite(path, { readonly: true })
    const sum = counts.prepare(
      `SELECT sum(count) AS count FROM request_tallies WHERE window = 'day'`,
    )
    expect(sum.get()).toEqual({ count: 82 })
    counts.close()
  })
})

describe('a database file that is removed under the app', () => {
  it('is noticed: it shows, and requests go on', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    const app = await startApp({ TALLYGATE_DATABASE: path })
    onTestFinished(() => void app.end())
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true })
    await until(async () => (await ready(app)).status === 'degraded', 'it to be noticed')
    expect((await fetch(`${app.url}/api/ping`)).status).toBe(200)
    expect((await app.stats()).totals.requests).toBe(1)
    const { stderr } = await app.end()
    expect(stderr).toContain('was removed or replaced under the app')
    expect(stderr).toContain('closing with requests that could not be written')
  })
})

describe('a database file that is damaged', () => {
  it('stops the start with one line, not a stack', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    await (await startApp({ TALLYGATE_DATABASE: path })).end()
    const { size } = statSync(path)
    truncateSync(path, 8192)
    writeFileSync(path, Buffer.alloc(size - 4096, 7), { flag: 'r+' })
    const { code, stderr } = await run(process.execPath, [cli, 'serve'], {
      PORT: '0',
      LOG_LEVEL: 'silent',
      TALLYGATE_DATABASE: path,
    }).finished
    expect(code).toBe(1)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stderr).toContain(`Cannot open the database ${path}: `)
  })
})

/*
 * A database that does not take writes: requests go on, nothing is lost that fits in memory, and it shows.
 */
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseExposition, valueOf } from '../support/exposition.js'
import { startApp, temporaryFolder, until, type StartedApp } from '../support/processes.js'

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

/** Fills a file with what no database is, from the second page on, in place. */
const damage = (path: string) => {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(statSync(path).size - 100, 7), 0, null, 100)
  closeSync(file)
}

const requestsIn = (path: string) => {
  const connection = new Sqlite(path, { readonly: true })
  const sum = `SELECT sum(count) AS count FROM request_tallies WHERE window = 'day'`
  const { count } = connection.prepare(sum).get() as { count: number | null }
  connection.close()
  return count ?? 0
}

describe('a database file that is removed under the app', () => {
  it('is begun anew, with what was pending; it shows until the restart', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    const app = await startApp({ TALLYGATE_DATABASE: path })
    onTestFinished(() => void app.end())
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true })
    for (let sent = 0; sent < 5; sent++) await (await fetch(`${app.url}/api/ping`)).arrayBuffer()
    await until(async () => (await ready(app)).degraded.length > 0, 'it to be noticed')
    expect(await ready(app)).toEqual({ status: 'degraded', degraded: ['database-replaced'] })
    expect((await app.stats()).totals.requests).toBe(5)
    const { code, stderr } = await app.end()
    expect(code).toBe(0)
    expect(stderr.match(/counting goes on in a new file/g)).toHaveLength(1)
    expect(requestsIn(path)).toBe(5)
    const again = await startApp({ TALLYGATE_DATABASE: path })
    expect(await ready(again)).toEqual({ status: 'ready', degraded: [] })
    await again.end()
  })
})

describe('a database file that is damaged', () => {
  it('at the start is moved aside, and that shows', async () => {
    const path = join(temporaryFolder(), 'counts.db')
    await (await startApp({ TALLYGATE_DATABASE: path })).end()
    damage(path)
    const app = await startApp({ TALLYGATE_DATABASE: path })
    onTestFinished(() => void app.end())
    for (let sent = 0; sent < 3; sent++) {
      expect((await fetch(`${app.url}/api/ping`)).status).toBe(200)
    }
    expect(await ready(app)).toEqual({ status: 'degraded', degraded: ['database-replaced'] })
    const { movedAside } = (await app.stats()).persistence
    expect(movedAside).toMatch(/counts\.db\.damaged-\d{8}T\d{6}Z$/)
    expect((await app.end()).code).toBe(0)
    expect(requestsIn(path)).toBe(3)
  })
})

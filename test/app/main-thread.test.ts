/*
 * After the start the main thread makes no call to SQLite, whatever the app does: in a process of its own
 * better-sqlite3 is made to throw there, and the app is used and closed.
 */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../support/processes.js'
import { distUrl, runModule } from '../support/units/dist.js'

const source = `
  import Sqlite from 'better-sqlite3'
  import { startApp } from '${distUrl('app/main.js')}'
  const [path] = process.argv.slice(-1)
  const token = '0123456789abcdef'
  const { address, close } = await startApp(
    { PORT: '0', LOG_LEVEL: 'error', TALLYGATE_DATABASE: path, TALLYGATE_ADMIN_TOKEN: token },
    () => {},
  )

  let callCount = 0
  const statement = Object.getPrototypeOf(new Sqlite(':memory:').prepare('SELECT 1'))
  for (const prototype of [Sqlite.prototype, statement]) {
    for (const name of Object.getOwnPropertyNames(prototype)) {
      const { value } = Object.getOwnPropertyDescriptor(prototype, name)
      if (typeof value !== 'function' || name === 'constructor') continue
      prototype[name] = () => {
        callCount++
        throw new Error('SQLite on the main thread: ' + name)
      }
    }
  }

  const statuses = {}
  const ask = async (path, init) => {
    const response = await fetch(address + path, init)
    const text = await response.text()
    statuses[response.status] = (statuses[response.status] ?? 0) + 1
    return { text, cookie: response.headers.get('set-cookie')?.split(';')[0] }
  }
  const passing = async (timeMs) => new Promise((resolve) => setTimeout(resolve, timeMs))
  const use = async () => {
    const { cookie } = await ask('/api/session', { method: 'POST' })
    const headers = { cookie }
    for (let sent = 0; sent < 10; sent++) await ask('/api/ping', { headers })
    await ask('/api/ping', { headers: { cookie: cookie + 'forged' } })
    await ask('/api/parse?url=https://10.0.0.1/')
    await ask('/metrics')
    await ask('/readyz')
    await ask('/admin/stats', { headers: { authorization: 'Bearer ' + token } })
    await ask('/api/session', { method: 'DELETE', headers })
  }
  await use()
  // Long enough for a flush of everything, and one more.
  await passing(1_200)
  await use()
  await passing(1_200)
  await use()
  await close()

  // What was looked for would have been found.
  const seen = callCount
  try { new Sqlite(path).pragma('user_version') } catch {}
  try { statement.run() } catch {}
  console.log(JSON.stringify({ statuses, seen, found: callCount - seen }))`

describe('the main thread', () => {
  it('makes no call to SQLite after the start, through traffic, flushes, sessions, statistics and the end', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const { status, stdout, stderr } = await runModule(source, [path])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({
      statuses: { 200: 42, 201: 3, 204: 3, 403: 3 },
      seen: 0,
      found: 2,
    })
    const connection = new Sqlite(path, { readonly: true })
    onTestFinished(() => void connection.close())
    const sum = connection.prepare(
      `SELECT sum(count) AS count FROM request_tallies WHERE window = 'week'`,
    )
    expect(sum.get()).toEqual({ count: 42 })
  })
})

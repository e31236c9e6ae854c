/*
 * How often the app writes: as time passes, not as requests come.
 */
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commitsInLog } from '../support/log-file.js'
import { startApp, temporaryFolder, until } from '../support/processes.js'
import { requestsIn } from '../support/units/keepers.js'

const requestCount = 10_000

/** Sends requests over a few connections that are kept. */
async function send(url: string, count: number): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  let passed = 0
  let left = count
  const one = () =>
    new Promise<void>((resolve, reject) => {
      get(url, { agent }, (response) => {
        if (response.statusCode === 200) passed++
        response.resume().on('end', resolve)
      }).on('error', reject)
    })
  const client = async () => {
    while (left-- > 0) await one()
  }
  await Promise.all(Array.from({ length: 8 }, client))
  agent.destroy()
  return passed
}

describe('the commits', () => {
  it('the log reader counts transactions', () => {
    const path = join(temporaryFolder(), 'x.db')
    const connection = new Sqlite(path)
    onTestFinished(() => void connection.close())
    connection.pragma('journal_mode = WAL')
    connection.exec('CREATE TABLE t (a)')
    for (let turn = 0; turn < 5; turn++) connection.exec(`INSERT INTO t VALUES (randomblob(20000))`)
    connection.transaction(() => {
      for (let turn = 0; turn < 5; turn++) connection.exec('INSERT INTO t VALUES (1)')
    })()
    expect(commitsInLog(path)).toBe(7)
    connection.pragma('wal_checkpoint(RESTART)')
    connection.exec('INSERT INTO t VALUES (1)')
    expect(commitsInLog(path)).toBe(1)
  })

  it('SQL-10: of 10,000 requests are no more than the seconds they took, and two', async () => {
    const folder = temporaryFolder()
    const config = join(folder, 'tallygate.yml')
    const path = join(folder, 'counts.db')
    // Whose state is not saved: that takes commits of its own.
    const rules = [{ name: 'ip', key: 'ip', limit: 100_000, window: '1m' }]
    writeFileSync(config, JSON.stringify({ rules }))
    const app = await startApp({ TALLYGATE_CONFIG: config, TALLYGATE_DATABASE: path })
    onTestFinished(() => void app.end())
    const before = commitsInLog(path)
    const startedMs = performance.now()
    expect(await send(`${app.url}/api/ping`, requestCount)).toBe(requestCount)
    await until(async () => requestsIn(path) === requestCount, 'all to be written')
    const seconds = Math.floor((performance.now() - startedMs) / 1_000)
    const commits = commitsInLog(path) - before
    expect(commits).toBeGreaterThan(0)
    expect(commits).toBeLessThanOrEqual(seconds + 2)
  })
})

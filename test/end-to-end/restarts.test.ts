/*
 * Counts over restarts, under load: one that is told to end loses nothing, and one that is killed loses at
 * most what came since its last flush; never is more counted than was sent, and the file stays whole.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as passing } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startApp, temporaryFolder } from '../support/processes.js'
import { Load } from './load.js'

function bench() {
  const folder = temporaryFolder()
  const path = join(folder, 'counts.db')
  const config = join(folder, 'tallygate.yml')
  // So many that both outcomes come up in each run; the rule begins anew with each.
  writeFileSync(
    config,
    JSON.stringify({
      rules: [{ name: 'ip', key: 'ip', limit: 200, window: '1d', persist: false }],
    }),
  )
  const start = () => startApp({ TALLYGATE_CONFIG: config, TALLYGATE_DATABASE: path })
  return { path, start }
}

/** What the file has, in each kind of window; all kinds have the same. */
function countsIn(path: string): { allowed: number; declined: number } {
  const connection = new Sqlite(path)
  const rows = connection
    .prepare(
      'SELECT window, outcome, sum(count) AS count FROM request_tallies GROUP BY window, outcome',
    )
    .all() as { window: string; outcome: string; count: number }[]
  connection.close()
  const [minute, hour, day, week] = ['minute', 'hour', 'day', 'week'].map((window) => {
    const of = (outcome: string) =>
      rows.find((row) => row.window === window && row.outcome === outcome)?.count ?? 0
    return { allowed: of('allowed'), declined: of('declined') }
  })
  expect([minute, hour, day]).toEqual([week, week, week])
  return week ?? { allowed: 0, declined: 0 }
}

describe('an app that is told to end', () => {
  it('loses no count, however often, under load', async () => {
    const { path, start } = bench()
    let app = await start()
    onTestFinished(() => void app.end('SIGKILL'))
    const load = new Load(app.url)
    for (let turn = 0; turn < 5; turn++) {
      await passing(700 + turn * 150)
      const { code } = await app.end('SIGTERM')
      expect(code).toBe(0)
      if (turn === 4) break
      app = await start()
      load.moveTo(app.url)
    }
    await load.end()
    const seen = { allowed: load.answered(200, 201), declined: load.answered(429) }
    expect(seen.allowed).toBeGreaterThan(500)
    expect(seen.declined).toBeGreaterThan(100)
    expect(countsIn(path)).toEqual(seen)
  })
})

/** From one flush to the next, with what a flush takes, on a machine that has other things to do too. */
const flushIntervalMs = 1_500

describe('an app that is killed', () => {
  it('loses no more than what came since its last flush, and counts nothing twice', async () => {
    const { path, start } = bench()
    let before = 0
    for (let kill = 0; kill < 20; kill++) {
      const app = await start()
      const load = new Load(app.url)
      // Some die before their first flush, some in the midst of one, some long after it.
      await passing(kill % 4 === 3 ? 2_000 + kill * 10 : 300 + (kill % 4) * 150 + kill * 20)
      const killedMs = performance.now()
      await app.end('SIGKILL')
      await load.end()
      const { allowed, declined } = countsIn(path)
      const counted = allowed + declined - before
      before = allowed + declined
      const sure = load.asked.filter(
        ({ sentMs, status }) => status !== null && sentMs < killedMs - flushIntervalMs,
      )
      const sent = load.asked.filter(({ sentMs }) => sentMs <= killedMs + 50)
      expect(counted).toBeGreaterThanOrEqual(sure.length)
      expect(counted).toBeLessThanOrEqual(sent.length)
    }
    expect(before).toBeGreaterThan(500)
    const connection = new Sqlite(path)
    expect(connection.pragma('integrity_check', { simple: true })).toBe('ok')
    connection.close()
    const app = await start()
    expect((await app.stats()).totals.requests).toBe(before)
    expect((await app.end()).code).toBe(0)
  }, 90_000)
})

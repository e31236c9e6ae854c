/*
 * What rows need while nobody asks for them, sessions for example.
 */
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import { SessionBuffer } from '../../src/sqlite/session-buffer.js'
import { SqliteSessionRows, type SessionRows } from '../../src/sqlite/sessions.js'
import { startUpkeep } from '../../src/sqlite/upkeep.js'
import { temporaryFolder } from '../support/processes.js'
import { epochMs } from '../support/units/limits.js'

function bench(wrap: (rows: SessionRows) => SessionRows = (rows) => rows) {
  const database = openDatabase(join(temporaryFolder(), 'x.db'), epochMs)
  onTestFinished(() => database.close())
  const wallMs = () => Date.now()
  const rows = wrap(new SqliteSessionRows(database, wallMs))
  const sessions = new SessionBuffer({ rows, wallMs, onFailure: () => undefined })
  const failures: unknown[] = []
  const start = () => {
    const timer = startUpkeep(sessions, (error) => failures.push(error))
    onTestFinished(() => clearInterval(timer))
    return timer
  }
  const stored = () => database.connection.prepare('SELECT id_hash FROM sessions').all().length
  return { sessions, start, stored, failures }
}

describe('the upkeep', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

  it('SES-07: deletes what has expired within a minute, and nothing that lives', async () => {
    const { sessions, start, stored } = bench()
    start()
    for (let count = 0; count < 1_000; count++) {
      await sessions.set(`short-${count}`, '{}', Date.now() + 1_000)
    }
    await sessions.set('long', '{}', Date.now() + 3_600_000)
    expect(stored()).toBe(1_001)
    await vi.advanceTimersByTimeAsync(60_000)
    await vi.waitFor(() => expect(stored()).toBe(1))
    expect(await sessions.get('long')).toBe('{}')
  })

  it('writes what waits each second', async () => {
    const { sessions, start, stored } = bench()
    start()
    await sessions.set('a', '{}', Date.now() + 1_500)
    sessions.extend('a', '{"n":1}', Date.now() + 90_000)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([await sessions.get('a'), stored()]).toEqual(['{"n":1}', 1])
  })

  it('goes on after a sweep that failed, and tells of it', async () => {
    const state = { failures: 2 }
    const { sessions, start, stored, failures } = bench((rows) => ({
      ...boundTo(rows),
      sweep: () =>
        state.failures-- > 0 ? Promise.reject(new Error('disk I/O error')) : rows.sweep(),
    }))
    start()
    await sessions.set('a', '{}', Date.now() + 1_000)
    await vi.advanceTimersByTimeAsync(61_000)
    await vi.waitFor(() => expect(stored()).toBe(0))
    expect(failures).toEqual([new Error('disk I/O error'), new Error('disk I/O error')])
  })
})

describe('the timer of the upkeep', () => {
  it('SES-07: does not keep the process alive', () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const { start } = bench()
    const timer = start()
    expect([timers(), timer.hasRef()]).toEqual([before, false])
    timer.ref()
    expect(timers()).toBe(before + 1)
  })
})

function boundTo(rows: SessionRows): SessionRows {
  return {
    get: (id) => rows.get(id),
    set: (...given) => rows.set(...given),
    update: (...given) => rows.update(...given),
    delete: (id) => rows.delete(id),
    count: () => rows.count(),
    sweep: () => rows.sweep(),
  }
}

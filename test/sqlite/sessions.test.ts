/*
 * Session rows: no id in clear, gone when their time is over, and not brought back by being read or
 * extended.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import { SqliteSessionRows } from '../../src/sqlite/sessions.js'
import { manualClock } from '../../src/testing/index.js'
import { temporaryFolder } from '../support/processes.js'
import { epochMs } from '../support/units/limits.js'

function bench() {
  const path = join(temporaryFolder(), 'x.db')
  const database = openDatabase(path, epochMs)
  onTestFinished(() => database.close())
  const clock = manualClock(epochMs)
  return { path, database, clock, rows: new SqliteSessionRows(database, () => clock.wallMs()) }
}

describe('session rows', () => {
  it('give back what was set, and the latest of two', async () => {
    const { rows } = bench()
    await rows.set('a', '{"n":1}', epochMs + 1_000)
    await rows.set('b', '{"n":2}', epochMs + 1_000)
    await rows.set('a', '{"n":3}', epochMs + 1_000)
    expect([await rows.get('a'), await rows.get('b'), await rows.get('c')]).toEqual([
      '{"n":3}',
      '{"n":2}',
      null,
    ])
    expect(await rows.count()).toBe(2)
  })

  it('KEY-08: hold no session id in clear', async () => {
    const { path, database, rows } = bench()
    await rows.set('s3cr3t-session-id', '{}', epochMs + 1_000)
    const stored = database.connection.prepare('SELECT id_hash FROM sessions').all()
    expect(stored).toEqual([{ id_hash: expect.stringMatching(/^[\w-]{43}$/) as unknown }])
    database.connection.pragma('wal_checkpoint(TRUNCATE)')
    expect(readFileSync(path).includes('s3cr3t-session-id')).toBe(false)
  })

  it('end exactly at their time', async () => {
    const { clock, rows } = bench()
    await rows.set('a', '{}', epochMs + 1_000)
    clock.advance(999)
    expect([await rows.get('a'), await rows.count()]).toEqual(['{}', 1])
    clock.advance(1)
    expect([await rows.get('a'), await rows.count()]).toEqual([null, 0])
  })

  it('SEC-07: live no longer for being read', async () => {
    const { clock, rows } = bench()
    await rows.set('a', '{}', epochMs + 60_000)
    clock.advance(59_000)
    expect(await rows.get('a')).toBe('{}')
    clock.advance(2_000)
    expect(await rows.get('a')).toBeNull()
  })

  it('are extended while they live', async () => {
    const { clock, rows } = bench()
    await rows.set('a', '{"n":1}', epochMs + 1_000)
    clock.advance(500)
    await rows.update('a', '{"n":2}', epochMs + 5_000, clock.wallMs())
    clock.advance(4_000)
    expect(await rows.get('a')).toBe('{"n":2}')
  })

  it('SEC-07: are not brought back by being extended: not deleted, expired or unknown ones', async () => {
    const { clock, rows } = bench()
    await rows.set('deleted', '{}', epochMs + 1_000)
    await rows.set('expired', '{}', epochMs + 1_000)
    await rows.delete('deleted')
    clock.advance(1_000)
    for (const id of ['deleted', 'expired', 'unknown']) {
      await rows.update(id, '{}', epochMs + 60_000, clock.wallMs())
      expect(await rows.get(id)).toBeNull()
    }
    expect(await rows.count()).toBe(0)
  })

  it('SES-07: are swept when expired, live ones untouched', async () => {
    const { clock, database, rows } = bench()
    for (let n = 0; n < 1_000; n++) await rows.set(`short-${n}`, '{}', epochMs + 1_000)
    await rows.set('long', '{}', epochMs + 60_000)
    expect(await rows.sweep()).toBe(0)
    clock.advance(1_000)
    expect(await rows.sweep()).toBe(1_000)
    expect(database.connection.prepare('SELECT count(*) AS n FROM sessions').get()).toEqual({
      n: 1,
    })
    expect(await rows.get('long')).toBe('{}')
  })

  it('are swept in pieces, with the turn of others in between', async () => {
    const { clock, rows } = bench()
    for (let n = 0; n < 2_600; n++) await rows.set(`short-${n}`, '{}', epochMs + 1_000)
    clock.advance(1_000)
    let turns = 0
    const turn = () => {
      turns++
      timer = setImmediate(turn)
    }
    let timer = setImmediate(turn)
    expect(await rows.sweep()).toBe(2_600)
    clearImmediate(timer)
    expect(turns).toBeGreaterThanOrEqual(5)
  })

  it('are changed where they lived when that was asked for, though their end has passed since', async () => {
    const { clock, rows } = bench()
    await rows.set('a', '1', epochMs + 1_000)
    clock.advance(1_500)
    await rows.update('a', '2', epochMs + 5_000, epochMs + 999)
    expect(await rows.get('a')).toBe('2')
    await rows.update('a', '3', epochMs + 9_000, epochMs + 5_000)
    expect(await rows.get('a')).toBe('2')
  })

  it('take hostile ids as ids like any other', async () => {
    const { rows } = bench()
    const ids = ['', '__proto__', "'; DROP TABLE sessions; --", '\u0000', 'x'.repeat(100_000)]
    for (const id of ids) await rows.set(id, JSON.stringify(id.length), epochMs + 1_000)
    expect(await Promise.all(ids.map((id) => rows.get(id)))).toEqual(
      ids.map((id) => String(id.length)),
    )
  })
})

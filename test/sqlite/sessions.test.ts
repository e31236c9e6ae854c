/*
 * Session rows: no id in clear, gone when their time is over, and not brought back by being read or
 * extended.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import { SessionRows, sweptCountMax } from '../../src/sqlite/sessions.js'
import { temporaryFolder } from '../support/processes.js'
import { epochMs } from '../support/units/limits.js'

function bench() {
  const path = join(temporaryFolder(), 'x.db')
  const database = openDatabase(path, epochMs)
  onTestFinished(() => database.close())
  const rows = new SessionRows(database)
  /** The data of a session so many milliseconds after the beginning. */
  const dataAt = (id: string, afterMs: number) => rows.get(id, epochMs + afterMs)?.data ?? null
  const fill = (count: number, expiresMs: number) =>
    database.connection.transaction(() => {
      for (let n = 0; n < count; n++) rows.set(`short-${n}`, '{}', expiresMs)
    })()
  return { path, database, rows, dataAt, fill }
}

describe('session rows', () => {
  it('give back what was set, and the latest of two', () => {
    const { rows, dataAt } = bench()
    rows.set('a', '{"n":1}', epochMs + 1_000)
    rows.set('b', '{"n":2}', epochMs + 1_000)
    rows.set('a', '{"n":3}', epochMs + 2_000.7)
    expect([dataAt('a', 0), dataAt('b', 0), dataAt('c', 0)]).toEqual(['{"n":3}', '{"n":2}', null])
    expect(rows.get('a', epochMs)).toEqual({ data: '{"n":3}', expiresMs: epochMs + 2_000 })
    expect(rows.count(epochMs)).toBe(2)
  })

  it('KEY-08: hold no session id in clear', () => {
    const { path, database, rows } = bench()
    rows.set('s3cr3t-session-id', '{}', epochMs + 1_000)
    const stored = database.connection.prepare('SELECT id_hash FROM sessions').all()
    expect(stored).toEqual([{ id_hash: expect.stringMatching(/^[\w-]{43}$/) as unknown }])
    database.connection.pragma('wal_checkpoint(TRUNCATE)')
    expect(readFileSync(path).includes('s3cr3t-session-id')).toBe(false)
  })

  it('end exactly at their time', () => {
    const { rows, dataAt } = bench()
    rows.set('a', '{}', epochMs + 1_000)
    expect([dataAt('a', 999), rows.count(epochMs + 999)]).toEqual(['{}', 1])
    expect([dataAt('a', 1_000), rows.count(epochMs + 1_000)]).toEqual([null, 0])
  })

  it('SEC-07: live no longer for being read', () => {
    const { rows, dataAt } = bench()
    rows.set('a', '{}', epochMs + 60_000)
    expect(dataAt('a', 59_000)).toBe('{}')
    expect(dataAt('a', 61_000)).toBeNull()
  })

  it('are extended while they live', () => {
    const { rows, dataAt } = bench()
    rows.set('a', '{"n":1}', epochMs + 1_000)
    rows.update('a', '{"n":2}', epochMs + 5_000, epochMs + 500)
    expect(dataAt('a', 4_500)).toBe('{"n":2}')
  })

  it('SEC-07: are not brought back by being extended: not deleted, expired or unknown ones', () => {
    const { rows, dataAt } = bench()
    rows.set('deleted', '{}', epochMs + 1_000)
    rows.set('expired', '{}', epochMs + 1_000)
    rows.delete('deleted')
    for (const id of ['deleted', 'expired', 'unknown']) {
      rows.update(id, '{}', epochMs + 60_000, epochMs + 1_000)
      expect(dataAt(id, 1_000)).toBeNull()
    }
    expect(rows.count(epochMs + 1_000)).toBe(0)
  })

  it('SES-07: are swept when expired, live ones untouched, in pieces that are soon done', () => {
    const { database, rows, dataAt, fill } = bench()
    fill(2 * sweptCountMax + 100, epochMs + 1_000)
    rows.set('long', '{}', epochMs + 60_000)
    const sweeps = () => Array.from({ length: 4 }, () => rows.sweep(epochMs + 1_000))
    expect(rows.sweep(epochMs + 999)).toBe(0)
    expect(sweeps()).toEqual([sweptCountMax, sweptCountMax, 100, 0])
    expect(database.connection.prepare('SELECT count(*) AS n FROM sessions').get()).toEqual({
      n: 1,
    })
    expect(dataAt('long', 1_000)).toBe('{}')
  })

  it('are changed where they lived when that was asked for, though their end has passed since', () => {
    const { rows, dataAt } = bench()
    rows.set('a', '1', epochMs + 1_000)
    rows.update('a', '2', epochMs + 5_000, epochMs + 999)
    expect(dataAt('a', 1_500)).toBe('2')
    rows.update('a', '3', epochMs + 9_000, epochMs + 5_000)
    expect(dataAt('a', 1_500)).toBe('2')
  })

  it('take hostile ids as ids like any other', () => {
    const { rows, dataAt } = bench()
    const ids = ['', '__proto__', "'; DROP TABLE sessions; --", '\u0000', 'x'.repeat(100_000)]
    for (const id of ids) rows.set(id, JSON.stringify(id.length), epochMs + 1_000)
    expect(ids.map((id) => dataAt(id, 0))).toEqual(ids.map((id) => String(id.length)))
  })
})

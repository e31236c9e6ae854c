/*
 * Rows of tallies: added whole or not at all, once however often a batch comes, read back as they were
 * written, kept as long as each kind of window is kept.
 */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase, type OpenDatabase } from '../../src/sqlite/database.js'
import { TallyRows } from '../../src/sqlite/tally-rows.js'
import type { WindowDelta } from '../../src/tally/archive.js'
import { temporaryFolder } from '../support/processes.js'
import { writerOf } from '../support/units/keepers.js'
import { allowed, declined, deltaOf, exempt, mondayMs, slots } from '../support/units/tallies.js'

const minuteMs = 60_000
const dayMs = 86_400_000

function databaseAt(path: string): OpenDatabase {
  const database = openDatabase(path, mondayMs)
  onTestFinished(() => database.close())
  return database
}

function bench(path = join(temporaryFolder(), 'x.db')) {
  const database = databaseAt(path)
  const rows = new TallyRows(database, slots.ruleNames)
  const batchOf = writerOf('one')
  return {
    path,
    database,
    rows,
    batchOf,
    add: (...deltas: WindowDelta[]) => rows.exchange(batchOf(...deltas), [], mondayMs),
    totals: () => rows.read([]).stored.totals[allowed],
    rowsOf: (sql: string) => database.connection.prepare(sql).all(),
  }
}

const weekOf = (count: number) => deltaOf('week', mondayMs, count)

describe('an exchange', () => {
  it('reads back what is stored by now: the totals, and each window that was asked for', () => {
    const { rows, batchOf } = bench()
    const counts = slots.blank()
    for (const [slot, count] of [
      [allowed, 3],
      [declined, 2],
      [exempt, 1],
      [slots.ofVerdict(1, 2), 4],
    ] as const) {
      counts[slot] = count
    }
    const wanted = [
      { window: 'hour', startMs: mondayMs },
      { window: 'minute', startMs: mondayMs - minuteMs },
      { window: 'week', startMs: mondayMs },
    ] as const
    const deltas = (['minute', 'hour', 'day', 'week'] as const).map((window) => ({
      window,
      startMs: mondayMs,
      counts,
    }))
    const once = [3, 2, 1, 0, 0, 0, 0, 0, 4]
    for (const times of [1, 2]) {
      const { stored } = rows.exchange(batchOf(...deltas), wanted, mondayMs)
      const expected = once.map((count) => count * times)
      expect([...stored.totals]).toEqual(expected)
      expect(stored.windows.map((each) => [...each])).toEqual([
        expected,
        [...slots.blank()],
        expected,
      ])
    }
  })

  it('keeps requests in request_tallies, as whole numbers, under the names of the contract', () => {
    const { add, rowsOf } = bench()
    const counts = slots.blank()
    counts[allowed] = 2
    counts[declined] = 1
    add(
      { window: 'minute', startMs: mondayMs, counts },
      { window: 'week', startMs: mondayMs, counts },
    )
    const row = { start_ms: mondayMs, types: 'integerinteger' }
    expect(
      rowsOf(`SELECT window, start_ms, outcome, count, typeof(start_ms) || typeof(count) AS types
        FROM request_tallies ORDER BY window, outcome`),
    ).toEqual([
      { ...row, window: 'minute', outcome: 'allowed', count: 2 },
      { ...row, window: 'minute', outcome: 'declined', count: 1 },
      { ...row, window: 'week', outcome: 'allowed', count: 2 },
      { ...row, window: 'week', outcome: 'declined', count: 1 },
    ])
  })

  it('counts exactly as far as numbers are exact', () => {
    const { add, totals } = bench()
    add(weekOf(Number.MAX_SAFE_INTEGER - 1))
    add(weekOf(1))
    expect(totals()).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('passes over rules that no longer exist, and keeps their rows', () => {
    const { add, database, rowsOf } = bench()
    add(weekOf(7))
    const other = new TallyRows(database, ['global', 'new'])
    expect([...other.read([]).stored.totals]).toEqual([7, 0, 0, 0, 0, 0, 0, 0, 0])
    expect(rowsOf(`SELECT count FROM rule_tallies WHERE rule = 'ip'`)).toEqual([{ count: 7 }])
  })

  it('adds all or nothing', () => {
    const { rows, batchOf, totals } = bench()
    const batch = batchOf(weekOf(7), { ...weekOf(1), window: null as never })
    expect(() => rows.exchange(batch, [], mondayMs)).toThrow('NOT NULL')
    expect(totals()).toBe(0)
    // Nor is it known: what comes under its number now is new.
    const { writer, sequence } = batch
    rows.exchange({ writer, sequence, deltas: [weekOf(7)] }, [], mondayMs)
    expect(totals()).toBe(7)
  })

  it('has nothing left that could fail once it has added', () => {
    const { database, batchOf, totals } = bench()
    const state = { fails: true }
    const failing = {
      ...database,
      sizeBytes() {
        if (state.fails) throw new Error('disk I/O error')
        return 1
      },
    }
    const rows = new TallyRows(failing, slots.ruleNames)
    const batch = batchOf(weekOf(7))
    expect(() => rows.exchange(batch, [], mondayMs)).toThrow('disk I/O error')
    expect(totals()).toBe(0)
    state.fails = false
    rows.exchange(batch, [], mondayMs)
    expect(totals()).toBe(7)
  })

  it('tells what the database is, and whether others have written to it', () => {
    const { rows, path, add, database } = bench()
    const { facts } = add(weekOf(1))
    expect(facts).toEqual({
      id: database.id,
      sinceMs: mondayMs,
      sizeBytes: expect.any(Number) as unknown,
      isShared: false,
    })
    expect(add(weekOf(1)).facts.isShared).toBe(false)
    const other = bench(path)
    expect(rows.read([]).facts.isShared).toBe(false)
    other.rows.exchange(writerOf('other')(weekOf(5)), [], mondayMs)
    const { stored, facts: later } = rows.read([])
    expect([stored.totals[allowed], later.isShared]).toEqual([7, true])
    expect(rows.read([]).facts.isShared).toBe(false)
  })
})

describe('a batch that comes again', () => {
  it('is added once, and answered as if it were new', () => {
    const { rows, batchOf, totals } = bench()
    const batch = batchOf(weekOf(7))
    const answers = [1, 2, 3].map(() => rows.exchange(batch, [], mondayMs).stored.totals[allowed])
    expect(answers).toEqual([7, 7, 7])
    rows.exchange(batchOf(weekOf(1)), [], mondayMs)
    rows.exchange(batch, [], mondayMs)
    expect(totals()).toBe(8)
  })

  it('is added once also over another connection: its number is in the file', () => {
    const { path, rows, batchOf, totals } = bench()
    const batch = batchOf(weekOf(7))
    rows.exchange(batch, [], mondayMs)
    bench(path).rows.exchange(batch, [], mondayMs)
    expect(totals()).toBe(7)
  })

  it('is another where another process sends it', () => {
    const { rows, totals } = bench()
    for (const writer of ['one', 'other']) rows.exchange(writerOf(writer)(weekOf(7)), [], mondayMs)
    expect(totals()).toBe(14)
  })

  it('takes no number where it is empty, nor a lock', () => {
    const { rows, path, batchOf, rowsOf } = bench()
    rows.exchange(batchOf(weekOf(1)), [], mondayMs)
    const other = databaseAt(path).connection
    other.exec('BEGIN IMMEDIATE')
    rows.exchange(batchOf(), [], mondayMs)
    other.exec('COMMIT')
    expect(rowsOf('SELECT id, sequence FROM writers')).toEqual([{ id: 'one', sequence: 1 }])
  })

  it('has its number kept for a day after its writer was last heard of', () => {
    const { rows, rowsOf } = bench()
    const [one, other] = [writerOf('one'), writerOf('other')]
    rows.exchange(one(weekOf(1)), [], mondayMs)
    const writers = () =>
      rowsOf('SELECT id FROM writers ORDER BY id').map((row) => (row as { id: string }).id)
    rows.exchange(other(weekOf(1)), [], mondayMs + dayMs)
    expect(writers()).toEqual(['one', 'other'])
    rows.exchange(other(weekOf(1)), [], mondayMs + dayMs + 3_600_000)
    expect(writers()).toEqual(['other'])
  })
})

describe('a history of rows', () => {
  it('has the windows of a kind that begin in a span, in order, with all their counts', () => {
    const { add, rows } = bench()
    for (const minute of [5, 1, 3, 2]) add(deltaOf('minute', mondayMs + minute * minuteMs, minute))
    add(deltaOf('hour', mondayMs, 11))
    const found = rows.history('minute', mondayMs + minuteMs, mondayMs + 5 * minuteMs)
    expect(
      found.map(({ startMs, counts }) => [(startMs - mondayMs) / minuteMs, counts[allowed]]),
    ).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
    expect(found[2]?.counts[slots.ofVerdict(0, 0)]).toBe(3)
    expect(rows.history('hour', 0, mondayMs)).toEqual([])
    expect(rows.history('hour', 0, mondayMs + 1)).toHaveLength(1)
  })

  it('has a window with verdicts alone', () => {
    const { add, rows } = bench()
    const counts = slots.blank()
    counts[slots.ofVerdict(1, 1)] = 2
    add({ window: 'day', startMs: mondayMs, counts })
    expect(rows.history('day', 0, Infinity)).toEqual([{ startMs: mondayMs, counts }])
  })
})

describe('retention', () => {
  const windowsOf = ({ rowsOf }: ReturnType<typeof bench>) =>
    rowsOf('SELECT window AS w, start_ms AS s FROM request_tallies ORDER BY w, s')

  it.each([
    ['minute', 2 * dayMs],
    ['hour', 90 * dayMs],
    ['day', 3 * 365 * dayMs],
  ] as const)('a %s is kept for %i ms and not longer', (window, ageMs) => {
    const kept = bench()
    kept.add(deltaOf(window, mondayMs - ageMs - 1), deltaOf(window, mondayMs - ageMs), weekOf(1))
    kept.rows.exchange(kept.batchOf(), [], mondayMs + 3_600_000 - 1)
    expect(windowsOf(kept)).toEqual([
      { w: window, s: mondayMs - ageMs },
      { w: 'week', s: mondayMs },
    ])
  })

  it('a week is kept for ever, and so are the totals', () => {
    const kept = bench()
    kept.add(deltaOf('week', mondayMs - 5_200 * 7 * dayMs, 4))
    expect([windowsOf(kept).length, kept.totals()]).toEqual([1, 4])
  })

  it('is looked after once an hour', () => {
    const kept = bench()
    let nowMs = mondayMs
    const exchange = (...deltas: WindowDelta[]) =>
      kept.rows.exchange(kept.batchOf(...deltas), [], nowMs)
    exchange(deltaOf('minute', mondayMs))
    nowMs += 3 * dayMs
    exchange()
    expect(windowsOf(kept)).toEqual([])
    exchange(deltaOf('minute', mondayMs))
    nowMs += 3_599_999
    exchange()
    expect(windowsOf(kept).length).toBe(1)
    nowMs += 1
    exchange()
    expect(windowsOf(kept)).toEqual([])
  })

  it('is made up for when the exchange that looked after it failed', () => {
    const kept = bench()
    kept.add(deltaOf('minute', mondayMs))
    const nowMs = mondayMs + 3 * dayMs
    const broken = kept.batchOf({ ...deltaOf('minute', nowMs), window: null as never })
    expect(() => kept.rows.exchange(broken, [], nowMs)).toThrow('NOT NULL')
    expect(windowsOf(kept)).toHaveLength(1)
    kept.rows.exchange(kept.batchOf(deltaOf('minute', nowMs)), [], nowMs)
    expect(windowsOf(kept)).toEqual([{ w: 'minute', s: nowMs }])
  })

  it('a clock that is years ahead by mistake deletes no more than a week takes', () => {
    const kept = bench()
    kept.add(deltaOf('hour', mondayMs), deltaOf('day', mondayMs))
    const wrongMs = mondayMs + 5 * 365 * dayMs
    kept.rows.exchange(kept.batchOf(deltaOf('day', wrongMs)), [], wrongMs)
    expect(windowsOf(kept)).toContainEqual({ w: 'hour', s: mondayMs })
    expect(windowsOf(kept)).toContainEqual({ w: 'day', s: mondayMs })
  })
})

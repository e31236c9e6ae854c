/*
 * Tallies in SQLite: read back as they were written, added to by several processes at once, kept as long
 * as each kind of window is kept.
 */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import { SqliteTallyArchive } from '../../src/sqlite/tally-archive.js'
import { TallySlots } from '../../src/tally/slots.js'
import { distUrl, runModule } from '../support/units/dist.js'
import { temporaryFolder } from '../support/processes.js'
import { allowed, declined, exempt, mondayMs, slots, tallyBench } from '../support/units/tallies.js'

const dayMs = 86_400_000

function archiveAt(path: string, wallMs = () => mondayMs, ofSlots = slots) {
  const database = openDatabase(path, mondayMs)
  onTestFinished(() => database.close())
  return { database, archive: new SqliteTallyArchive(database, ofSlots, wallMs) }
}

function rowsOf(path: string, sql: string): unknown[] {
  const connection = new Sqlite(path, { readonly: true })
  const rows = connection.prepare(sql).all()
  connection.close()
  return rows
}

const delta = (window: 'minute' | 'hour' | 'day' | 'week', startMs: number, count = 1) => {
  const counts = slots.blank()
  counts[allowed] = count
  counts[slots.ofVerdict(0, 0)] = count
  return { window, startMs, counts }
}

describe('the archive', () => {
  it('reads back after reopening what was flushed', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const first = archiveAt(path)
    const { tally, count } = tallyBench(mondayMs, first.archive)
    count(allowed, 3)
    count(declined, 2)
    count(exempt)
    count(slots.ofVerdict(1, 2), 4)
    await tally.flush()
    first.database.close()
    const second = archiveAt(path)
    const again = tallyBench(mondayMs, second.archive)
    const { totals, windows } = again.tally.view()
    expect([...totals]).toEqual([3, 2, 1, 0, 0, 0, 0, 0, 4])
    for (const kind of ['minute', 'hour', 'day', 'week'] as const) {
      expect([...windows[kind].current.counts]).toEqual([...totals])
    }
    expect(second.archive.id).toBe(first.archive.id)
    expect(second.archive.sinceMs).toBe(mondayMs)
    expect(second.archive.path).toBe(path)
  })

  it('keeps requests in request_tallies, as whole numbers, under the names of the contract', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const { tally, count } = tallyBench(mondayMs + 0.25, archiveAt(path).archive)
    count(allowed, 2)
    count(declined)
    await tally.flush()
    const sql = `SELECT window, start_ms, outcome, count, typeof(start_ms) || typeof(count) AS types
      FROM request_tallies WHERE window IN ('minute', 'week') ORDER BY window, outcome`
    const row = { start_ms: mondayMs, types: 'integerinteger' }
    expect(rowsOf(path, sql)).toEqual([
      { ...row, window: 'minute', outcome: 'allowed', count: 2 },
      { ...row, window: 'minute', outcome: 'declined', count: 1 },
      { ...row, window: 'week', outcome: 'allowed', count: 2 },
      { ...row, window: 'week', outcome: 'declined', count: 1 },
    ])
  })

  it('passes over rules that no longer exist, and keeps their rows', async () => {
    const path = join(temporaryFolder(), 'x.db')
    await archiveAt(path).archive.add([delta('week', mondayMs, 7)], [])
    const other = new TallySlots(['global', 'new'])
    const { archive } = archiveAt(path, undefined, other)
    expect([...archive.read([]).totals]).toEqual([7, 0, 0, 0, 0, 0, 0, 0, 0])
    expect(rowsOf(path, "SELECT count FROM rule_tallies WHERE rule = 'ip'")).toEqual([{ count: 7 }])
  })

  it('adds all or nothing', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const { archive } = archiveAt(path)
    const bad = { ...delta('hour', mondayMs), startMs: 'x' as unknown as number, window: null }
    await expect(
      archive.add([delta('week', mondayMs), bad as unknown as ReturnType<typeof delta>], []),
    ).rejects.toThrow('NOT NULL')
    expect(archive.read([]).totals[allowed]).toBe(0)
  })

  it('rejects while another holds the file, and gets everything in afterwards', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const { tally, count } = tallyBench(mondayMs, archiveAt(path).archive)
    const other = new Sqlite(path)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    count(allowed, 3)
    await tally.flush()
    expect(tally.health()).toMatchObject({ okCount: 0, failedCount: 1 })
    expect(tally.view().totals[allowed]).toBe(3)
    other.exec('COMMIT')
    await tally.flush()
    expect(
      rowsOf(path, "SELECT sum(count) AS n FROM request_tallies WHERE window = 'day'"),
    ).toEqual([{ n: 3 }])
  })
})

const kept = async (wallMs: () => number) => {
  const path = join(temporaryFolder(), 'x.db')
  const { archive } = archiveAt(path, wallMs)
  return {
    archive,
    windows: () =>
      rowsOf(path, 'SELECT window AS w, start_ms AS s FROM request_tallies ORDER BY w, s'),
  }
}

describe('retention', () => {
  it.each([
    ['minute', 2 * dayMs],
    ['hour', 90 * dayMs],
    ['day', 3 * 365 * dayMs],
  ] as const)('a %s is kept for %i ms and not longer', async (window, ageMs) => {
    const { archive, windows } = await kept(() => mondayMs)
    await archive.add([delta(window, mondayMs - ageMs - 1), delta(window, mondayMs - ageMs)], [])
    expect(windows()).toEqual([{ w: window, s: mondayMs - ageMs }])
  })

  it('a week is kept for ever, and so are the totals', async () => {
    const { archive, windows } = await kept(() => mondayMs)
    await archive.add([delta('week', mondayMs - 5_200 * 7 * dayMs, 4)], [])
    expect(windows().length).toBe(1)
    expect(archive.read([]).totals[allowed]).toBe(4)
  })

  it('is looked after once an hour', async () => {
    let nowMs = mondayMs
    const { archive, windows } = await kept(() => nowMs)
    await archive.add([delta('minute', mondayMs)], [])
    nowMs += 3 * dayMs
    await archive.add([], [])
    expect(windows()).toEqual([])
    await archive.add([delta('minute', mondayMs)], [])
    nowMs += 3_599_999
    await archive.add([], [])
    expect(windows().length).toBe(1)
    nowMs += 1
    await archive.add([], [])
    expect(windows()).toEqual([])
  })

  it('is made up for when the flush that looked after it failed', async () => {
    let nowMs = mondayMs
    const { archive, windows } = await kept(() => nowMs)
    await archive.add([delta('minute', mondayMs)], [])
    nowMs += 3 * dayMs
    const read = archive.read.bind(archive)
    archive.read = () => {
      throw new Error('disk I/O error')
    }
    await expect(archive.add([delta('minute', nowMs)], [])).rejects.toThrow('disk')
    archive.read = read
    await archive.add([delta('minute', nowMs)], [])
    expect(windows()).toEqual([{ w: 'minute', s: nowMs }])
  })
})

describe('several processes', () => {
  it('SQL-02: add into one file, and nothing is lost', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const source = `
      import { openDatabase } from '${distUrl('sqlite/database.js')}'
      import { SqliteTallyArchive } from '${distUrl('sqlite/tally-archive.js')}'
      import { TallySlots } from '${distUrl('tally/slots.js')}'
      import { Tally } from '${distUrl('tally/tally.js')}'
      import { createCalendar } from '${distUrl('tally/calendar.js')}'
      import { manualClock } from '${distUrl('testing/index.js')}'
      const [path, rule, count] = process.argv.slice(-3)
      const database = openDatabase(path, 0)
      const slots = new TallySlots([rule])
      const clock = manualClock(${mondayMs})
      const archive = new SqliteTallyArchive(database, slots, clock.wallMs)
      const tally = new Tally({ slots, calendar: createCalendar(), archive, clock })
      for (let n = 0; n < Number(count); n++) {
        tally.reach(clock.monotonicMs())
        tally.add(0)
        tally.add(slots.ofVerdict(0, 0))
        await tally.flush()
      }
      while (tally.pendingRequests() > 0) await tally.flush()
      database.close()`
    const ended = await Promise.all(
      ['ip', 'ip', 'ip', 'ip', 'one', 'other'].map((rule) =>
        runModule(source, [path, rule, rule === 'ip' ? '40' : '60']),
      ),
    )
    expect(ended.map(({ status, stderr }) => [status, stderr])).toEqual(ended.map(() => [0, '']))
    for (const window of ['minute', 'hour', 'day', 'week']) {
      expect(
        rowsOf(path, `SELECT outcome, count FROM request_tallies WHERE window = '${window}'`),
      ).toEqual([{ outcome: 'allowed', count: 280 }])
      expect(
        rowsOf(
          path,
          `SELECT rule, count FROM rule_tallies WHERE window = '${window}' ORDER BY rule`,
        ),
      ).toEqual([
        { rule: 'ip', count: 160 },
        { rule: 'one', count: 60 },
        { rule: 'other', count: 60 },
      ])
    }
  })

  it('see each other: figures read back include what others added', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const [one, other] = [
      tallyBench(mondayMs, archiveAt(path).archive),
      tallyBench(mondayMs, archiveAt(path).archive),
    ]
    one.count(allowed, 2)
    other.count(allowed, 3)
    await one.tally.flush()
    await other.tally.flush()
    await one.tally.flush()
    for (const { tally } of [one, other]) {
      expect(tally.view().totals[allowed]).toBe(5)
      expect(tally.view().windows.minute.current.counts[allowed]).toBe(5)
    }
  })
})

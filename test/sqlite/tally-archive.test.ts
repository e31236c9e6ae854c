/*
 * Tallies in the database's thread: read back after a restart, added to by several processes at once, and
 * counted once whatever becomes of the thread meanwhile.
 */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { ThreadDied } from '../../src/sqlite/database-thread.js'
import { temporaryFolder } from '../support/processes.js'
import { distUrl, runModule } from '../support/units/dist.js'
import {
  allowed,
  declined,
  deltaOf,
  exempt,
  mondayMs,
  slots,
  tallyBench,
} from '../support/units/tallies.js'
import { idle, threadAt } from '../support/units/threads.js'

/** How the thread dies next: before a call reaches it, or when it has answered, unheard; or it is spared. */
const deaths = vi.hoisted((): ('before' | 'after' | 'spared')[] => [])
vi.mock('node:worker_threads', async (original) => {
  const threads = await original<typeof import('node:worker_threads')>()
  class Mortal extends threads.Worker {
    override postMessage(message: unknown): void {
      if (deaths[0] !== 'before') return super.postMessage(message)
      deaths.shift()
      void this.terminate()
    }

    override emit(event: string, ...given: unknown[]): boolean {
      if (event !== 'message' || deaths[0] === 'before') return super.emit(event, ...given)
      if (deaths.shift() !== 'after') return super.emit(event, ...given)
      void this.terminate()
      return true
    }
  }
  return { ...threads, Worker: Mortal }
})
afterEach(() => void deaths.splice(0))

const bench = (path = join(temporaryFolder(), 'x.db')) => {
  const { thread, archive } = threadAt(path)
  return { ...tallyBench(mondayMs, archive), path, thread, archive }
}

function rowsOf(path: string, sql: string): unknown[] {
  const connection = new Sqlite(path, { readonly: true })
  const rows = connection.prepare(sql).all()
  connection.close()
  return rows
}

const daysIn = (path: string) =>
  rowsOf(path, `SELECT sum(count) AS n FROM request_tallies WHERE window = 'day'`)

describe('the archive', () => {
  it('reads back after reopening what was flushed', async () => {
    const { path, tally, count, thread, archive } = bench()
    count(allowed, 3)
    count(declined, 2)
    count(exempt)
    count(slots.ofVerdict(1, 2), 4)
    await tally.flush()
    await thread.close()
    const again = bench(path)
    await again.tally.flush()
    const { totals, windows } = again.tally.view()
    expect([...totals]).toEqual([3, 2, 1, 0, 0, 0, 0, 0, 4])
    for (const kind of ['minute', 'hour', 'day', 'week'] as const) {
      expect([...windows[kind].current.counts]).toEqual([...totals])
    }
    expect(again.archive.id).toBe(archive.id)
    expect(again.archive.sinceMs).toBe(mondayMs)
    expect([again.archive.path, again.archive.movedAside]).toEqual([path, null])
    expect(again.archive.sizeBytes).toBeGreaterThan(4_096)
  })

  it('rejects while another holds the file, and gets everything in afterwards', async () => {
    const { path, tally, count, thread } = bench()
    await idle(thread)
    const other = new Sqlite(path)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    count(allowed, 3)
    await tally.flush()
    expect(tally.health()).toMatchObject({ okCount: 0, failedCount: 1 })
    expect(tally.health().failure).toMatchObject({ code: 'SQLITE_BUSY' })
    expect(tally.view().totals[allowed]).toBe(3)
    // What is only read needs no lock.
    expect((await tally.history('minute', 0, Infinity))[0]?.counts[allowed]).toBe(3)
    other.exec('COMMIT')
    await tally.flush()
    expect(daysIn(path)).toEqual([{ n: 3 }])
  })

  it('has a history of what is stored, with what waits added', async () => {
    const { tally, count, clock } = bench()
    count(allowed, 3)
    await tally.flush()
    clock.advance(60_000)
    count(declined, 4)
    const minutes = await tally.history('minute', mondayMs, mondayMs + 60_001)
    expect(
      minutes.map(({ startMs, counts }) => [startMs - mondayMs, [...counts.subarray(0, 2)]]),
    ).toEqual([
      [0, [3, 0]],
      [60_000, [0, 4]],
    ])
  })

  it('takes nothing any more once its thread is closed', async () => {
    const { archive, thread } = bench()
    await thread.close()
    await expect(archive.add([deltaOf('week', mondayMs)], [])).rejects.toThrow(ThreadDied)
  })
})

describe('a batch whose thread dies', () => {
  it.each([
    [['before']],
    [['after']],
    [['before', 'after']],
    [['after', 'after']],
    [['after', 'before']],
  ] as const)('is added once: it dies %j the batch was added', async (ways) => {
    const { path, tally, count, thread } = bench()
    await idle(thread)
    count(allowed, 3)
    deaths.push(...ways)
    await tally.flush()
    expect(deaths).toEqual([])
    expect(tally.health()).toMatchObject({ okCount: 1, failedCount: 0, failure: null })
    expect(tally.view().totals[allowed]).toBe(3)
    expect(daysIn(path)).toEqual([{ n: 3 }])
    count(allowed, 4)
    await tally.flush()
    expect([daysIn(path), tally.pendingRequests()]).toEqual([[{ n: 7 }], 0])
  })

  it.each([
    [['before', 'before', 'before']],
    [['after', 'after', 'after']],
    [['before', 'before', 'before', 'after', 'before', 'before']],
    [['after', 'after', 'after', 'after', 'after', 'after', 'after']],
    [['after', 'after', 'after', 'spared', 'after', 'after', 'after']],
    [['after', 'after', 'after', 'spared', 'before', 'before', 'before']],
  ] as const)('again and again waits, and is added once in the end: %j', async (ways) => {
    const { path, tally, count, thread } = bench()
    await idle(thread)
    let sum = 0
    deaths.push(...ways)
    do {
      count(allowed, 3)
      sum += 3
      await tally.flush()
      expect([
        tally.view().totals[allowed],
        tally.view().windows.day.current.counts[allowed],
      ]).toEqual([sum, sum])
    } while (deaths.length > 0)
    expect(tally.health().failedCount).toBe(Math.floor(ways.length / 3))
    await tally.flush()
    expect(tally.health().failure).toBe(null)
    expect([daysIn(path), tally.pendingRequests()]).toEqual([[{ n: sum }], 0])
  })

  it('again and again is added once though the file is locked after that', async () => {
    const { path, tally, count, thread } = bench()
    await idle(thread)
    count(allowed, 3)
    deaths.push('after', 'after', 'after')
    await tally.flush()
    expect(tally.health().failure).toBeInstanceOf(ThreadDied)
    const other = new Sqlite(path)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    count(allowed, 1)
    await tally.flush()
    expect(tally.health().failure).toMatchObject({ code: 'SQLITE_BUSY' })
    other.exec('COMMIT')
    count(allowed, 1)
    await tally.flush()
    expect([daysIn(path), tally.view().totals[allowed]]).toEqual([[{ n: 5 }], 5])
  })

  it('is all that is sent again: any other call is rejected', async () => {
    const { thread } = bench()
    await idle(thread)
    deaths.push('after')
    await expect(thread.ask('sessions', 'set', 'a', '1', 1)).rejects.toThrow(ThreadDied)
    expect(deaths).toEqual([])
  })
})

describe('several processes', () => {
  it('SQL-02: add into one file, and nothing is lost', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const source = `
      import { startThread } from '${distUrl('sqlite/start-thread.js')}'
      import { SqliteTallyArchive } from '${distUrl('sqlite/tally-archive.js')}'
      import { TallyRows } from '${distUrl('sqlite/tally-rows.js')}'
      import { TallySlots } from '${distUrl('tally/slots.js')}'
      import { Tally } from '${distUrl('tally/tally.js')}'
      import { createCalendar } from '${distUrl('tally/calendar.js')}'
      import { manualClock } from '${distUrl('testing/index.js')}'
      const [path, rule, count] = process.argv.slice(-3)
      const slots = new TallySlots([rule])
      const clock = manualClock(${mondayMs})
      const read = (database) => new TallyRows(database, [rule]).read([]).facts
      const { thread, found } = startThread(path, [rule], clock.wallMs, read)
      const archive = new SqliteTallyArchive(thread, found, clock.wallMs)
      const tally = new Tally({ slots, calendar: createCalendar(), archive, clock })
      for (let n = 0; n < Number(count); n++) {
        tally.reach(clock.monotonicMs())
        tally.add(0)
        tally.add(slots.ofVerdict(0, 0))
        await tally.flush()
      }
      while (tally.pendingRequests() > 0) await tally.flush()
      await thread.close()`
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
    const [one, other] = [bench(path), bench(path)]
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

  it('know of each other from the first write on, and for a minute of flushes after the last', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const [one, other] = [bench(path), bench(path)]
    one.count(allowed)
    for (let turn = 0; turn < 3; turn++) await one.tally.flush()
    await idle(other.thread)
    expect([one.archive.isShared, other.archive.isShared]).toEqual([false, false])
    other.count(allowed)
    await other.tally.flush()
    for (let turn = 0; turn < 60; turn++) {
      await one.tally.flush()
      expect(one.archive.isShared).toBe(true)
    }
    await one.tally.flush()
    expect(one.archive.isShared).toBe(false)
  })
})

/*
 * A gate whose database fails: what shows, what is said, and that every count is there in the end. The
 * database is in its own thread as ever; besides the flush of each second there is one when the test asks.
 */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { damage, fillUp, forbidWriting, tinyDisk } from '../support/files.js'
import { temporaryFolder } from '../support/processes.js'
import { guarded, startMs, statuses } from '../support/server.js'
import { requestsIn } from '../support/units/keepers.js'
import { ipRule } from '../support/units/limits.js'
import { collectingLogger } from '../support/units/log.js'

const rules = [ipRule({ limit: 1_000_000 })]
const damagedName = 'x.db.damaged-20251009T090000Z'

async function bench(folder = temporaryFolder(), path = join(folder, 'x.db')) {
  const { logger, lines } = collectingLogger()
  const { gate, ask, clock } = await guarded({ rules, database: path, logger })
  return {
    path,
    folder,
    gate,
    clock,
    lines,
    /** Requests, to their ends; each must be answered. */
    count: async (times: number) => {
      const seen = await statuses(times, () => ask())
      expect(new Set(seen)).toEqual(new Set([200]))
      await new Promise(setImmediate)
    },
    /** What is said beside what is always said. */
    said: () => lines.filter(({ message }) => !message.includes('are kept in SQLite')),
    persistence: async () => (await gate.stats()).persistence,
    value: async (name: string, labels: Record<string, string> = {}) =>
      valueOf(parseExposition(await gate.exposition.text()), name, labels),
  }
}

const remove = (path: string) => {
  for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
}

const lockOf = (path: string) => {
  const other = new Sqlite(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN IMMEDIATE')
  return () => void other.exec('COMMIT')
}

/** Puts everything into the file itself, where it can be damaged. */
const settle = (path: string) => {
  const connection = new Sqlite(path)
  connection.exec(
    `INSERT INTO meta VALUES ('settled', '') ON CONFLICT DO UPDATE SET value = value || 'x'`,
  )
  connection.pragma('wal_checkpoint(TRUNCATE)')
  connection.close()
}

const replaced = {
  level: 'error',
  message:
    'the database was damaged, removed or replaced under the app; counting goes on in a new file',
}

describe('a database that is well', () => {
  it('shows so, and nothing is said', async () => {
    const { gate, path, count, said, persistence, value } = await bench()
    await count(3)
    await gate.flush()
    expect([requestsIn(path), gate.degraded(), said()]).toEqual([3, [], []])
    expect(await persistence()).toMatchObject({ path, pending: 0, failures: 0, movedAside: null })
    expect([
      await value('tallygate_database_up'),
      await value('tallygate_tally_pending_requests'),
    ]).toEqual([1, 0])
  })

  it('SQL-04: is named once, by its whole path, where a relative one was given', async () => {
    const folder = temporaryFolder()
    const before = process.cwd()
    process.chdir(folder)
    try {
      const { lines } = await bench(folder, 'data/x.db')
      const named = lines.filter(({ fields }) => fields['path'] !== undefined)
      expect(named.map(({ fields }) => fields['path'])).toEqual([join(process.cwd(), 'data/x.db')])
    } finally {
      process.chdir(before)
    }
  })

  it('SQL-11: has everything once a library user has awaited close', async () => {
    const { gate, path, count } = await bench()
    await count(7)
    await Promise.all([gate.close(), gate.close()])
    await gate.close()
    expect(requestsIn(path)).toBe(7)
  })
})

describe('a database that another process has locked', () => {
  it('lets counts wait, says so once and shows it, and has them afterwards', async () => {
    const { gate, path, count, said, persistence, value } = await bench()
    await gate.flush()
    const letGo = lockOf(path)
    await count(3)
    await gate.flush()
    await gate.flush()
    expect(gate.degraded()).toEqual(['database'])
    expect(await persistence()).toMatchObject({
      pending: 3,
      failures: expect.any(Number) as unknown,
    })
    expect(await value('tallygate_database_up')).toBe(0)
    expect(
      await value('tallygate_tally_flushes_total', { result: 'failed' }),
    ).toBeGreaterThanOrEqual(2)
    expect(said()).toMatchObject([
      { level: 'error', message: 'tallies cannot be written; they wait in memory' },
    ])
    letGo()
    await gate.flush()
    expect([gate.degraded(), requestsIn(path)]).toEqual([[], 3])
    expect(said().slice(1)).toMatchObject([{ level: 'info', message: 'tallies are written again' }])
  })

  it('is waited for at the end', async () => {
    const { gate, path, count } = await bench()
    await gate.flush()
    const letGo = lockOf(path)
    await count(3)
    const closing = gate.close()
    setTimeout(letGo, 300)
    await closing
    expect(requestsIn(path)).toBe(3)
  })
})

describe('a database that is removed under the gate', () => {
  it('is begun anew with all that waited, shows until the end, and is said once', async () => {
    const { gate, path, count, said, clock, persistence } = await bench()
    await count(3)
    await gate.flush()
    const { since } = await gate.stats()
    clock.advance(60_000)
    remove(path)
    await count(4)
    await gate.flush()
    await gate.flush()
    expect([requestsIn(path), gate.degraded()]).toEqual([4, ['database-replaced']])
    const stats = await gate.stats()
    expect(stats.totals.requests).toBe(4)
    expect(Date.parse(stats.since) - Date.parse(since)).toBe(60_000)
    expect(await persistence()).toMatchObject({ pending: 0, movedAside: null })
    expect(said()).toMatchObject([{ ...replaced, fields: { path, movedAside: null } }])
  })

  it('and cannot be begun anew shows as failing, then as replaced, and loses nothing', async () => {
    const { gate, path, folder, count, said } = await bench()
    await count(3)
    await gate.flush()
    remove(path)
    const letWrite = forbidWriting(folder)
    if (letWrite === null) return
    onTestFinished(letWrite)
    await count(4)
    await gate.flush()
    await count(5)
    await gate.flush()
    expect(gate.degraded()).toEqual(['database'])
    letWrite()
    await gate.flush()
    expect([requestsIn(path), gate.degraded()]).toEqual([9, ['database-replaced']])
    expect(said().map(({ message }) => message)).toEqual([
      'tallies cannot be written; they wait in memory',
      'tallies are written again',
      replaced.message,
    ])
  })

  it('before the first flush loses nothing', async () => {
    const { gate, path, count } = await bench()
    remove(path)
    await count(4)
    await gate.flush()
    expect(requestsIn(path)).toBe(4)
  })

  it('and cannot be begun anew until the end is told of at the end', async () => {
    const { gate, path, folder, count, said } = await bench()
    await gate.flush()
    remove(path)
    const letWrite = forbidWriting(folder)
    if (letWrite === null) return
    onTestFinished(letWrite)
    await count(4)
    await gate.close()
    expect(said()).toContainEqual({
      level: 'error',
      fields: { requests: 4 },
      message: 'closing with requests that could not be written',
    })
  })
})

describe('a database that is damaged', () => {
  it('under the gate is moved aside, and what waited is in the new one', async () => {
    const { gate, path, folder, count, said, persistence } = await bench()
    await count(3)
    await gate.flush()
    settle(path)
    damage(path)
    await count(4)
    await gate.flush()
    await gate.flush()
    const movedAside = join(folder, damagedName)
    expect([requestsIn(path), gate.degraded()]).toEqual([4, ['database-replaced']])
    expect([existsSync(movedAside), await persistence()]).toMatchObject([true, { movedAside }])
    expect(said()).toMatchObject([{ ...replaced, fields: { path, movedAside } }])
  })

  it('again is moved aside again, each told of once', async () => {
    const { gate, path, folder, count, said } = await bench()
    for (let turn = 0; turn < 2; turn++) {
      await count(1)
      await gate.flush()
      settle(path)
      damage(path)
      await gate.flush()
    }
    expect(readdirSync(folder).filter((name) => /damaged-\w+(-2)?$/.test(name))).toHaveLength(2)
    expect(said().map(({ fields }) => basename(String(fields['movedAside'])))).toEqual([
      damagedName,
      `${damagedName}-2`,
    ])
  })

  it.each([
    ['a text', (path: string) => writeFileSync(path, 'this is no database '.repeat(500))],
    [
      'damaged beyond its first page',
      (path: string) => {
        settle(path)
        damage(path, 4_096)
      },
    ],
  ])('at the start is moved aside: %s', async (_, ruin) => {
    const before = await bench()
    await before.count(3)
    await before.gate.close()
    ruin(before.path)
    const { gate, path, count, said, persistence } = await bench(before.folder)
    const movedAside = join(before.folder, damagedName)
    expect(gate.degraded()).toEqual(['database-replaced'])
    expect((await persistence()).movedAside).toBe(movedAside)
    await count(4)
    await gate.flush()
    expect([requestsIn(path), gate.degraded()]).toEqual([4, ['database-replaced']])
    expect((await gate.stats()).since).toBe(new Date(startMs).toISOString())
    expect(said()).toMatchObject([
      {
        level: 'error',
        fields: { path, movedAside },
        message: 'the database was damaged; it was moved aside, a new one begun',
      },
    ])
    await gate.close()
    const after = await bench(before.folder)
    expect([after.gate.degraded(), after.said()]).toEqual([[], []])
    expect((await after.persistence()).movedAside).toBe(null)
    expect((await after.gate.stats()).totals.requests).toBe(4)
  })

  it('is not what a later version wrote: that stops the start, and is left alone', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    const connection = new Sqlite(path)
    connection.exec('CREATE TABLE later (a); PRAGMA user_version = 99')
    connection.close()
    expect(() => createGate({ rules, database: path })).toThrow('a later version of tallygate')
    expect(readdirSync(folder)).toEqual(['x.db'])
  })
})

describe('a database that takes no writes any more', () => {
  it('because it may not be written lets counts wait', async () => {
    const { gate, path, count } = await bench()
    await count(3)
    await gate.flush()
    const undo = [path, `${path}-wal`].map(forbidWriting)
    for (const letWrite of undo) if (letWrite !== null) onTestFinished(letWrite)
    if (undo.includes(null)) return
    await count(4)
    await gate.flush()
    expect(gate.degraded()).toEqual(['database'])
    for (const letWrite of undo) letWrite?.()
    await gate.flush()
    expect([requestsIn(path), gate.degraded()]).toEqual([7, []])
  })

  it('SQL-06: because the disk is full lets counts wait, shows, and has them once there is room', async () => {
    const folder = tinyDisk()
    if (folder === null) return
    const { gate, path, count, clock, value, said } = await bench(folder)
    await count(3)
    await gate.flush()
    const makeRoom = fillUp(folder)
    let sum = 3
    for (let minute = 0; minute < 30; minute++) {
      await count(2)
      sum += 2
      // New windows: rows in pages that the log has no room for.
      clock.advance(60_000)
      await gate.flush()
    }
    expect(gate.degraded()).toEqual(['database'])
    expect(await value('tallygate_tally_flushes_total', { result: 'failed' })).toBeGreaterThan(10)
    expect((await gate.stats()).totals.requests).toBe(sum)
    makeRoom()
    await gate.flush()
    expect([requestsIn(path), gate.degraded()]).toEqual([sum, []])
    expect((await gate.stats()).totals.requests).toBe(sum)
    expect(said()[0]).toMatchObject({ fields: { err: { code: 'SQLITE_FULL' } } })
  })
})

describe('a file system without WAL', () => {
  it('SQL-14: is warned of once, and goes on in the mode that SQLite grants', async () => {
    // oxlint-disable-next-line typescript/unbound-method
    const { pragma } = Sqlite.prototype
    vi.spyOn(Sqlite.prototype, 'pragma').mockImplementation(function (
      this: Sqlite.Database,
      text,
      options,
    ) {
      const granted = text === 'journal_mode = WAL' ? 'journal_mode = DELETE' : text
      return pragma.call(this, granted, options)
    })
    onTestFinished(() => void vi.restoreAllMocks())
    const { gate, path, count, said } = await bench()
    expect(said()).toMatchObject([{ level: 'warn', fields: { path, journalMode: 'delete' } }])
    await count(3)
    await gate.flush()
    expect([requestsIn(path), said().length]).toEqual([3, 1])
  })
})

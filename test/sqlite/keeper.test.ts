/*
 * A file that is kept open, whatever becomes of it: removed, replaced, damaged, locked, read-only, full. What
 * was asked for is done in the one that is there, or fails as a whole and can be asked for again.
 */
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { damage, fillUp, forbidWriting, tinyDisk } from '../support/files.js'
import { temporaryFolder } from '../support/processes.js'
import { adding, keeperAt, requestsIn } from '../support/units/keepers.js'
import { mondayMs } from '../support/units/tallies.js'

const bench = (folder = temporaryFolder()) => {
  const path = join(folder, 'x.db')
  const keeper = keeperAt(path)
  return { folder, path, keeper, add: adding(keeper) }
}

/** Makes a database that has so many requests, and leaves it closed. */
function fileWith(count: number, path: string): string {
  const keeper = keeperAt(path)
  adding(keeper)(count)
  keeper.close()
  return keeper.changes.id
}

function isSound(path: string): boolean {
  const connection = new Sqlite(path)
  const found = connection.pragma('integrity_check', { simple: true })
  connection.close()
  return found === 'ok'
}

const damagedIn = (folder: string) =>
  readdirSync(folder).filter((name) => /\.damaged-\w+(-\d+)?$/.test(name))

const codeOf = (call: () => unknown): unknown => {
  try {
    call()
  } catch (error) {
    const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
    return cause?.code ?? code
  }
  return null
}

describe('a file that nothing happens to', () => {
  it('is opened with the first call, and has not changed', () => {
    const { path, keeper, add } = bench()
    const { changes } = keeper
    add(3)
    add(4)
    expect([requestsIn(path), keeper.changes]).toEqual([7, changes])
    expect(changes).toMatchObject({ replacedCount: 0, movedAside: null })
  })

  it('is opened again after it was closed, and is the same', () => {
    const { path, keeper, add } = bench()
    add(3)
    keeper.close()
    keeper.close()
    add(4)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([7, 0])
  })
})

describe('a file that is gone', () => {
  it.each([[['', '-wal', '-shm']], [['']]])('%j is begun anew with the next call', (endings) => {
    const { path, keeper, add, folder } = bench()
    add(3)
    for (const ending of endings) rmSync(path + ending)
    add(4)
    add(5)
    expect([requestsIn(path), keeper.changes]).toEqual([
      9,
      { replacedCount: 1, movedAside: null, id: expect.any(String) as unknown },
    ])
    expect(damagedIn(folder)).toEqual([])
  })

  it('with its folder is begun anew in a folder made anew', () => {
    const { path, keeper, add, folder } = bench(join(temporaryFolder(), 'a', 'b'))
    add(3)
    rmSync(folder, { recursive: true })
    add(4)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([4, 1])
  })

  it('is noticed though it was gone before the first call, when its number may be another', () => {
    const { path, keeper, add } = bench()
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
    add(4)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([4, 1])
  })

  it('cannot be begun anew where the folder takes no files: the call fails, and is done later', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending)
    const letWrite = forbidWriting(folder)
    if (letWrite === null) return
    onTestFinished(letWrite)
    for (let turn = 0; turn < 3; turn++) {
      expect(codeOf(() => add(4))).toBe('SQLITE_CANTOPEN')
      expect(keeper.changes.replacedCount).toBe(0)
    }
    letWrite()
    add(5)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([5, 1])
  })
})

describe('a file that another takes the place of', () => {
  it('is left, and the other goes on to be used', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    const id = fileWith(10, join(folder, 'other.db'))
    renameSync(join(folder, 'other.db'), path)
    add(4)
    expect([requestsIn(path), keeper.changes]).toEqual([
      14,
      { replacedCount: 1, movedAside: null, id },
    ])
    expect(isSound(path)).toBe(true)
  })

  it('is whole where it was moved: nothing of it was in the log alone', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    renameSync(path, join(folder, 'old.db'))
    fileWith(10, join(folder, 'other.db'))
    renameSync(join(folder, 'other.db'), path)
    add(4)
    expect([requestsIn(join(folder, 'old.db')), requestsIn(path)]).toEqual([3, 14])
    expect([keeper.changes.replacedCount, isSound(path)]).toEqual([1, true])
  })

  it('with its log keeps that', () => {
    const { path, add, folder } = bench()
    add(3)
    fileWith(10, join(folder, 'other.db'))
    const connection = new Sqlite(join(folder, 'other.db'))
    connection.exec("UPDATE request_tallies SET count = 20 WHERE window = 'week'")
    for (const ending of ['', '-wal', '-shm']) {
      cpSync(join(folder, `other.db${ending}`), join(folder, `copy${ending}`))
    }
    connection.close()
    for (const ending of ['-wal', '-shm', '']) {
      renameSync(join(folder, `copy${ending}`), path + ending)
    }
    add(4)
    expect([requestsIn(path), isSound(path)]).toEqual([24, true])
  })

  it('that is a text is moved aside, and a new one begun', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    writeFileSync(`${path}.new`, 'no database '.repeat(1_000))
    renameSync(`${path}.new`, path)
    add(4)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([4, 1])
    expect(damagedIn(folder)).toEqual(['x.db.damaged-20250616T000000Z'])
    expect(keeper.changes.movedAside).toBe(join(folder, 'x.db.damaged-20250616T000000Z'))
  })

  it('that a later version wrote is left alone: calls fail until it is gone', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    const connection = new Sqlite(`${path}.new`)
    connection.exec('CREATE TABLE later (a); PRAGMA user_version = 99')
    connection.close()
    renameSync(`${path}.new`, path)
    const content = readFileSync(path)
    expect(() => add(4)).toThrow('a later version')
    expect(() => add(4)).toThrow('a later version')
    expect([readFileSync(path).equals(content), damagedIn(folder)]).toEqual([true, []])
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
    add(5)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([5, 1])
  })
})

/** Puts all there is into the file itself, so that nothing of it is in the log, nor trusted in memory. */
function settle(path: string): void {
  const connection = new Sqlite(path)
  connection.exec(`INSERT INTO meta VALUES ('settled', hex(randomblob(8)))
    ON CONFLICT DO UPDATE SET value = excluded.value`)
  connection.pragma('wal_checkpoint(TRUNCATE)')
  connection.close()
}

describe('a file that is damaged while it is open', () => {
  it.each([0, 4_096])(
    'from byte %i on is moved aside, and the call is made in a new one',
    (fromByte) => {
      const { path, keeper, add, folder } = bench()
      add(3)
      settle(path)
      damage(path, fromByte)
      const content = readFileSync(path)
      add(4)
      add(5)
      expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([9, 1])
      const [moved = ''] = damagedIn(folder)
      expect(keeper.changes.movedAside).toBe(join(folder, moved))
      expect(readFileSync(join(folder, moved)).equals(content)).toBe(true)
    },
  )

  it('is noticed by whoever reads the damaged part, however much of the file is in memory', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    const connection = new Sqlite(path)
    const set = connection.prepare('INSERT INTO sessions VALUES (?, ?, ?)')
    connection.transaction(() => {
      for (let row = 0; row < 5_000; row++) set.run(`id-${row}`, 'x'.repeat(1_000), mondayMs * 2)
    })()
    connection.pragma('wal_checkpoint(TRUNCATE)')
    connection.close()
    const sessions = () =>
      Array.from({ length: 5_000 }, (_unused, row) => {
        const id = createHash('sha256').update(`id-${row}`).digest('base64url')
        return keeper.call('sessions', 'get', [id, mondayMs], mondayMs)
      })
    damage(path, 20 * 4_096)
    sessions()
    expect(damagedIn(folder)).toHaveLength(1)
    add(4)
    expect(requestsIn(path)).toBe(4)
  })

  it('again is moved aside again, under a name of its own', () => {
    const { path, keeper, add, folder } = bench()
    for (let turn = 1; turn <= 3; turn++) {
      add(turn)
      settle(path)
      damage(path)
      add(10)
      expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([10, turn])
    }
    expect(new Set(damagedIn(folder)).size).toBe(3)
    expect(keeper.changes.movedAside?.endsWith('-3')).toBe(true)
  })

  it('and cannot be moved makes calls fail, until it can', () => {
    const { path, keeper, add, folder } = bench()
    add(3)
    settle(path)
    damage(path)
    const letWrite = forbidWriting(folder)
    if (letWrite === null) return
    onTestFinished(letWrite)
    for (let turn = 0; turn < 3; turn++) expect(codeOf(() => add(4))).toMatch(/EACCES|EPERM/)
    expect([keeper.changes.movedAside, damagedIn(folder)]).toEqual([null, []])
    letWrite()
    add(5)
    expect([requestsIn(path), damagedIn(folder).length]).toEqual([5, 1])
  })

  it('and was moved by another keeper is not moved twice', () => {
    const { path, keeper, add, folder } = bench()
    const other = keeperAt(path)
    add(3)
    adding(other)(3)
    settle(path)
    damage(path)
    add(4)
    adding(other)(5)
    expect([requestsIn(path), damagedIn(folder).length]).toEqual([9, 1])
    expect([keeper.changes.replacedCount, other.changes.replacedCount]).toEqual([1, 1])
  })
})

describe('a file that takes no writes', () => {
  it('because another process has locked it lets the call fail soon, or late where it is patient', () => {
    const { path, keeper, add } = bench()
    add(3)
    const other = new Sqlite(path)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    expect(codeOf(() => add(4))).toBe('SQLITE_BUSY')
    expect(keeper.call('sessions', 'get', ['x', 0], mondayMs)).toBe(null)
    other.exec('COMMIT')
    add(5)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([8, 0])
  })

  it('because it may not be written makes calls fail, and is used again once it may', () => {
    const { path, keeper, add } = bench()
    add(3)
    const undo = [path, `${path}-wal`].map(forbidWriting)
    for (const letWrite of undo) if (letWrite !== null) onTestFinished(letWrite)
    if (undo.includes(null)) return
    keeper.close()
    expect(codeOf(() => add(4))).toMatch(/EACCES|EPERM|SQLITE/)
    for (const letWrite of undo) letWrite?.()
    add(5)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([8, 0])
  })

  it('SQL-06: because the disk is full makes calls fail as a whole, and all fits once there is room', () => {
    const folder = tinyDisk()
    if (folder === null) return
    const { path, keeper, add } = bench(folder)
    add(3)
    const makeRoom = fillUp(folder)
    const codes: unknown[] = []
    for (let turn = 0; turn < 200; turn++) {
      const before = requestsIn(path)
      const code = codeOf(() =>
        keeper.call('sessions', 'set', [`s${turn}`, 'x'.repeat(4_000), 1], 0),
      )
      codes.push(code)
      expect(requestsIn(path)).toBe(before)
    }
    expect(new Set(codes.filter((code) => code !== null))).toEqual(new Set(['SQLITE_FULL']))
    expect(codes.lastIndexOf(null)).toBeLessThan(100)
    makeRoom()
    add(5)
    expect([requestsIn(path), keeper.changes.replacedCount]).toEqual([8, 0])
    expect(existsSync(path)).toBe(true)
    mkdirSync(join(folder, 'room'))
  })
})

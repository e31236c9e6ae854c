/*
 * Files that are no sound database: moved aside under a name that says when, whole, and once; and what is
 * left where it is.
 */
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TallygateError } from '../../src/core/errors.js'
import { openDatabase, type OpenDatabase } from '../../src/sqlite/database.js'
import { identityOf, isDamage, moveAside, openSound } from '../../src/sqlite/sound-database.js'
import { damage } from '../support/files.js'
import { temporaryFolder } from '../support/processes.js'
import { messageOf } from '../support/units/limits.js'

const nowMs = Date.parse('2026-12-01T10:20:30.456Z')
const name = 'x.db.damaged-20261201T102030Z'
const text = 'this is no database, whatever its name says. '.repeat(100)

function sound<T>(path: string, prepare: (database: OpenDatabase) => T) {
  const opened = openSound(path, nowMs, prepare)
  onTestFinished(() => opened.database.close())
  return opened
}

const countRequests = ({ connection }: OpenDatabase) =>
  connection.prepare('SELECT sum(count) FROM request_tallies').pluck().get()

/** A database with so many rows, closed. */
function databaseOf(path: string, rowCount: number): string {
  const database = openDatabase(path, 0)
  const { id, connection } = database
  const add = connection.prepare("INSERT INTO request_tallies VALUES ('minute', ?, 'allowed', 1)")
  connection.transaction(() => {
    for (let row = 0; row < rowCount; row++) add.run(row)
  })()
  database.close()
  return id
}

describe('a file that is no sound database', () => {
  it.each([
    ['a text', (path: string) => writeFileSync(path, text)],
    ['a short text', (path: string) => writeFileSync(path, 'hello')],
    [
      'one whose first page is damaged',
      (path: string) => {
        databaseOf(path, 10)
        damage(path)
      },
    ],
    [
      'one whose other pages are damaged, which only reading shows',
      (path: string) => {
        databaseOf(path, 1_000)
        damage(path, 4_096)
      },
    ],
  ])('is moved aside, and a new one begun: %s', (_, make) => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    make(path)
    const content = readFileSync(path)
    const { database, prepared, movedAside } = sound(path, countRequests)
    expect(movedAside).toBe(join(folder, name))
    expect(readFileSync(join(folder, name)).equals(content)).toBe(true)
    expect(prepared).toBe(null)
    expect(database.connection.pragma('integrity_check', { simple: true })).toBe('ok')
  })

  it('takes its log along, so that this is not read as the log of the new one', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    writeFileSync(path, text)
    for (const log of ['-wal', '-shm']) writeFileSync(path + log, `old${log}`)
    moveAside(path, identityOf(path), nowMs)
    expect(readdirSync(folder).toSorted()).toEqual([name, `${name}-shm`, `${name}-wal`])
    for (const log of ['-wal', '-shm']) {
      expect(readFileSync(join(folder, name + log), 'utf8')).toBe(`old${log}`)
    }
  })

  it('gets a name of its own each time', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    const moved = Array.from({ length: 3 }, () => {
      writeFileSync(path, text)
      return moveAside(path, identityOf(path), nowMs)
    })
    expect(moved).toEqual([name, `${name}-2`, `${name}-3`].map((each) => join(folder, each)))
  })

  it('stops the start in one line where it cannot be moved, and is left as it is', () => {
    const folder = temporaryFolder()
    // Long enough that no longer name can be made of it.
    const path = join(folder, 'x'.repeat(250))
    writeFileSync(path, text)
    expect(() => openSound(path, nowMs, countRequests)).toThrow(TallygateError)
    const message = messageOf(() => openSound(path, nowMs, countRequests))
    expect(message).toMatch(
      /^Cannot open the database \/[^\n]*ENAMETOOLONG[^\n]*TALLYGATE_DATABASE\)$/,
    )
    expect(readFileSync(path, 'utf8')).toBe(text)
    expect(readdirSync(folder)).toHaveLength(1)
  })
})

describe('a file that another process has dealt with', () => {
  it('is not moved: it is another one', () => {
    const path = join(temporaryFolder(), 'x.db')
    writeFileSync(path, text)
    const identity = identityOf(path)
    renameSync(path, `${path}.gone`)
    expect(moveAside(path, identity, nowMs)).toBe(null)
    const id = databaseOf(path, 1)
    expect(moveAside(path, identity, nowMs)).toBe(null)
    expect(sound(path, countRequests).database.id).toBe(id)
  })

  it('is waited for while that is being done', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    writeFileSync(path, text)
    const identity = identityOf(path)
    mkdirSync(`${path}.moving`)
    const other = new Worker(
      `const { renameSync, rmdirSync, writeFileSync } = require('node:fs')
       const path = require('node:worker_threads').workerData
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
       renameSync(path, path + '.moved')
       writeFileSync(path, 'new')
       rmdirSync(path + '.moving')`,
      { eval: true, workerData: path },
    )
    await once(other, 'online')
    expect(moveAside(path, identity, nowMs)).toBe(null)
    expect(readFileSync(path, 'utf8')).toBe('new')
    await once(other, 'exit')
  })

  it('is not waited for where it died over it', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    writeFileSync(path, text)
    mkdirSync(`${path}.moving`)
    expect(moveAside(path, identityOf(path), nowMs)).toBe(join(folder, name))
    expect(readdirSync(folder)).toEqual([name])
  })
})

describe('what is left where it is', () => {
  it('a database of a later version', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    const connection = new Sqlite(path)
    connection.exec('CREATE TABLE later (a); PRAGMA user_version = 99')
    connection.close()
    expect(messageOf(() => openSound(path, nowMs, countRequests))).toContain('a later version')
    expect(readdirSync(folder)).toEqual(['x.db'])
  })

  it('a folder', () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'x.db'))
    expect(() => openSound(join(folder, 'x.db'), nowMs, countRequests)).toThrow('unable to open')
    expect(readdirSync(folder)).toEqual(['x.db'])
  })

  it('a sound database that something else is wrong with, and it is not held open', () => {
    const folder = temporaryFolder()
    const path = join(folder, 'x.db')
    const failing = () =>
      openSound(path, nowMs, ({ connection }) => connection.exec('SELECT missing'))
    expect(failing).toThrow(TallygateError)
    expect(failing).toThrow('no such column: missing')
    // The log goes with the last connection.
    expect(readdirSync(folder)).toEqual(['x.db'])
  })
})

describe('damage', () => {
  it('is what SQLite calls so, directly or as a cause', () => {
    const withCode = (code: unknown) => Object.assign(new Error('x'), { code })
    for (const code of ['SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX', 'SQLITE_NOTADB']) {
      expect(isDamage(withCode(code))).toBe(true)
      expect(isDamage(new Error('y', { cause: withCode(code) }))).toBe(true)
    }
    for (const code of ['SQLITE_BUSY', 'SQLITE_FULL', 'SQLITE_IOERR_READ', 'SQLITE_CANTOPEN', 26]) {
      expect(isDamage(withCode(code))).toBe(false)
    }
  })
})

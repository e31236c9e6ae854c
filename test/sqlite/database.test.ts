/*
 * Opening the database: folders are made, several processes may start at once, and what cannot be used is
 * refused in one line that names the path and the reason.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TallygateError } from '../../src/core/errors.js'
import { openDatabase } from '../../src/sqlite/database.js'
import { schemaVersion } from '../../src/sqlite/migrations.js'
import { distUrl, runModule } from '../support/units/dist.js'
import { temporaryFolder } from '../support/processes.js'
import { messageOf } from '../support/units/limits.js'

function open(path: string, nowMs = 1_000) {
  const database = openDatabase(path, nowMs)
  onTestFinished(() => database.close())
  return database
}

const versionOf = (path: string): unknown => {
  const connection = new Sqlite(path)
  const version = connection.pragma('user_version', { simple: true })
  connection.close()
  return version
}

describe('openDatabase', () => {
  it('SQL-04: makes the file and every folder above it', () => {
    const path = join(temporaryFolder(), 'a', 'b', 'c', 'stats.db')
    const database = open(path)
    expect(existsSync(path)).toBe(true)
    expect(database.path).toBe(path)
    expect(database.sizeBytes()).toBeGreaterThan(0)
  })

  it('SQL-04: resolves a relative path', () => {
    const folder = temporaryFolder()
    const before = process.cwd()
    process.chdir(folder)
    try {
      expect(open('data/stats.db').path.endsWith('/data/stats.db')).toBe(true)
      expect(existsSync(join(folder, 'data', 'stats.db'))).toBe(true)
    } finally {
      process.chdir(before)
    }
  })

  it('uses WAL with a short wait for locks', () => {
    const database = open(join(temporaryFolder(), 'x.db'))
    expect(database.journalMode).toBe('wal')
    expect(database.connection.pragma('busy_timeout', { simple: true })).toBe(50)
    database.bePatient()
    expect(database.connection.pragma('busy_timeout', { simple: true })).toBe(5_000)
  })

  it('keeps the id and the beginning of what is there', () => {
    const path = join(temporaryFolder(), 'x.db')
    const meta = 'SELECT key, value FROM meta ORDER BY key'
    const first = open(path, 1_234.5).connection.prepare(meta).all()
    const again = open(path, 9_999).connection.prepare(meta).all()
    expect(again).toEqual(first)
    expect(first).toMatchObject([{ key: 'database_id' }, { key: 'since_ms', value: '1234' }])
  })

  it('tells the size of the file and its log, 0 once they are gone', () => {
    const path = join(temporaryFolder(), 'x.db')
    const database = open(path)
    const log = statSync(`${path}-wal`).size
    expect(database.sizeBytes()).toBe(statSync(path).size + log)
    rmSync(path)
    expect(database.sizeBytes()).toBe(log)
    rmSync(`${path}-wal`)
    expect(database.sizeBytes()).toBe(0)
  })
})

const refusal = (path: string) => {
  expect(() => openDatabase(path, 0)).toThrow(TallygateError)
  const message = messageOf(() => openDatabase(path, 0))
  expect(message.split('\n').length).toBe(1)
  expect(message.startsWith(`Cannot open the database ${path}: `)).toBe(true)
  expect(message).toContain('must name a SQLite file, or a new one in a folder that can be written')
  expect(message.endsWith('(TALLYGATE_DATABASE)')).toBe(true)
  return message
}

describe('a database that cannot be used', () => {
  it('SQL-04: below a file instead of a folder is refused, naming the path', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), 'x')
    expect(refusal(join(folder, 'file', 'x.db'))).toMatch(/ENOTDIR|EEXIST/)
    expect(refusal(join(folder, 'file', 'deeper', 'x.db'))).toMatch(/ENOTDIR|EEXIST/)
  })

  it('that is a folder is refused', () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'x.db'))
    expect(refusal(join(folder, 'x.db'))).toContain('unable to open database file')
  })

  it('where nothing can be written is refused', () => {
    // Node's own mkdir with `recursive` never returns there.
    expect(refusal('/proc/tallygate/x.db')).toContain('ENOENT')
  })

  it('that is no database is refused, and left as it is', () => {
    const path = join(temporaryFolder(), 'x.db')
    const text = 'this is no database, whatever its name says. '.repeat(100)
    writeFileSync(path, text)
    expect(refusal(path)).toContain('file is not a database')
    expect(readFileSync(path, 'utf8')).toBe(text)
  })

  it('SQL-08: of the version before is brought up to date, and keeps what it has', () => {
    const path = join(temporaryFolder(), 'x.db')
    const before = openDatabase(path, 1)
    const idOf = ({ connection }: typeof before) =>
      connection.prepare("SELECT value FROM meta WHERE key IN ('database_id', 'since_ms')").all()
    const ids = idOf(before)
    before.connection.exec(`
      DROP TABLE pages; DROP TABLE writers; DROP TABLE rule_overrides; DROP TABLE rule_audit;
      PRAGMA user_version = 1;
      INSERT INTO request_tallies VALUES ('week', 0, 'allowed', 7)`)
    before.close()
    const after = openDatabase(path, 2)
    expect(idOf(after)).toEqual(ids)
    const count = after.connection.prepare('SELECT count FROM request_tallies').pluck().get()
    const pages = after.connection.prepare('SELECT count(*) FROM pages').pluck().get()
    after.close()
    expect([count, pages, versionOf(path)]).toEqual([7, 0, schemaVersion])
  })

  it('SQL-08: of a later version is refused by number, and left as it is', () => {
    const path = join(temporaryFolder(), 'x.db')
    const connection = new Sqlite(path)
    connection.exec('CREATE TABLE later (a); PRAGMA user_version = 99')
    connection.close()
    const before = readFileSync(path)
    expect(refusal(path)).toContain(
      `written by a later version of tallygate (schema 99, known up to ${schemaVersion})`,
    )
    expect(versionOf(path)).toBe(99)
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

describe('several processes', () => {
  const openAndEnd = `
    import { openDatabase } from '${distUrl('sqlite/database.js')}'
    const [path, startMs] = process.argv.slice(-2)
    while (Date.now() < Number(startMs));
    const database = openDatabase(path, Date.now())
    const row = database.connection.prepare("SELECT value FROM meta WHERE key = 'database_id'").get()
    process.stdout.write(row.value)
    database.close()`

  it('SQL-08: start at once on a fresh file, ten times over', async () => {
    const folder = temporaryFolder()
    for (let turn = 0; turn < 10; turn++) {
      const path = join(folder, String(turn), 'x.db')
      const startMs = String(Date.now() + 250)
      const ended = await Promise.all(
        Array.from({ length: 4 }, () => runModule(openAndEnd, [path, startMs])),
      )
      expect(ended.map(({ status, stderr }) => ({ status, stderr }))).toEqual(
        Array.from({ length: 4 }, () => ({ status: 0, stderr: '' })),
      )
      expect(new Set(ended.map(({ stdout }) => stdout)).size).toBe(1)
      expect(versionOf(path)).toBe(schemaVersion)
    }
  })
})

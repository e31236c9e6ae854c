/*
 * Opens the SQLite file that everything lasting is kept in, or says in one line why it cannot be: WAL, so
 * that readers and a writer do not wait for each other, with NORMAL syncing, which can lose the latest
 * commits at a power cut but never the file. A file that is no sound database is left as it is: see
 * `sound-database`.
 *
 * Every call blocks its thread: at the start that is the main one, later the database's own, see `keeper`.
 */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Sqlite, { type Database } from 'better-sqlite3'
import { TallygateError } from '../core/errors.js'
import { migrate, schemaVersion } from './migrations.js'

/** While starting and closing a lock of another process is waited for; in between hardly. */
const patientMs = 5_000
const promptMs = 50
/** What SQLite cuts its log to when it begins that anew. */
const logBytesKept = 1_048_576
const retryMs = 20

export interface OpenDatabase {
  readonly path: string
  /** Made with the file, and kept in it. */
  readonly id: string
  readonly connection: Database
  /** The journal mode that SQLite granted: `wal`, except on file systems that cannot. */
  readonly journalMode: string
  /** Of the file and its write-ahead log; 0 once they are gone. */
  sizeBytes(): number
  /** Of the write-ahead log. */
  logBytes(): number
  /** Rows that this connection has written. */
  writtenCount(): number
  /** Waits longer for locks, for the last writes. */
  bePatient(): void
  close(): void
}

/**
 * Opens the database at `path` as it is.
 *
 * @param hashSeed of a new file, see `migrate`.
 * @throws TallygateError naming the resolved path and the reason.
 */
export function openDatabase(path: string, nowMs: number, hashSeed?: string): OpenDatabase {
  const resolved = resolve(path)
  let connection: Database | null = null
  try {
    makeFolder(dirname(resolved))
    connection = new Sqlite(resolved, { timeout: patientMs })
    // SQLite itself opens what it may not write without a word.
    accessSync(resolved, constants.W_OK)
    // First: a file of a later version is left as it is, and WAL would be written into it.
    refuseLaterVersion(connection)
    const journalMode = changeToWal(connection)
    connection.pragma('synchronous = NORMAL')
    connection.pragma(`journal_size_limit = ${logBytesKept}`)
    migrate(connection, nowMs, hashSeed)
    connection.pragma(`busy_timeout = ${promptMs}`)
    return handle(resolved, connection, journalMode)
  } catch (error) {
    connection?.close()
    throw databaseFault(resolved, error)
  }
}

/**
 * Several processes that start at once on a fresh file get in each other's way here, and SQLite does not
 * wait by its timeout for the lock that this change needs.
 */
function changeToWal(connection: Database): string {
  for (let waitedMs = 0; ; waitedMs += retryMs) {
    try {
      return connection.pragma('journal_mode = WAL', { simple: true }) as string
    } catch (error) {
      const isBusy = String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')
      if (!isBusy || waitedMs >= patientMs) throw error
      pause(retryMs)
    }
  }
}

/** Blocks this thread. */
export function pause(timeMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeMs)
}

/** One by one: Node's own `recursive` never returns where a folder cannot be made, as below /proc. */
function makeFolder(path: string): void {
  if (isFolder(path)) return
  makeFolder(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    // Unless another process was faster.
    if (!isFolder(path)) throw error
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function handle(path: string, connection: Database, journalMode: string): OpenDatabase {
  const meta = connection.prepare("SELECT value FROM meta WHERE key = 'database_id'").get()
  const written = connection.prepare('SELECT total_changes()').pluck()
  return {
    path,
    id: (meta as { value: string } | undefined)?.value ?? 'unknown',
    connection,
    journalMode,
    sizeBytes: () => sizeOf(path) + sizeOf(`${path}-wal`),
    logBytes: () => sizeOf(`${path}-wal`),
    writtenCount: () => written.get() as number,
    bePatient: () => void connection.pragma(`busy_timeout = ${patientMs}`),
    close: () => void connection.close(),
  }
}

function refuseLaterVersion(connection: Database): void {
  const version = connection.pragma('user_version', { simple: true }) as number
  if (version <= schemaVersion) return
  throw new Error(
    `it was written by a later version of tallygate (schema ${version}, known up to ${schemaVersion})`,
  )
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** What SQLite says of a file, in the words in which a start is refused. */
export function databaseFault(path: string, error: unknown): TallygateError {
  const reason = error instanceof Error ? error.message : String(error)
  const sentence =
    moduleFault(error) ??
    `${reason}; TALLYGATE_DATABASE or the option database must name a SQLite file, ` +
      `or a new one in a folder that can be written`
  return new TallygateError('TALLYGATE_DATABASE', `Cannot open the database ${path}: ${sentence}`, {
    cause: error,
  })
}

/**
 * Where better-sqlite3 itself does not load no file is at fault, and its own words are many lines about
 * how it is built. It is loaded with the first database, so a gate without one never comes here.
 */
function moduleFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null
  const { code, tries } = error as { code?: unknown; tries?: unknown }
  const advice = `npm rebuild better-sqlite3 compiles it`
  if (code === 'ERR_DLOPEN_FAILED') {
    return `better-sqlite3 was compiled for another Node.js than ${process.version}; ${advice}`
  }
  return Array.isArray(tries) ? `better-sqlite3 was not compiled when installed; ${advice}` : null
}

/*
 * Opens the SQLite file that everything lasting is kept in, or says in one line why it cannot be: WAL, so
 * that readers and a writer do not wait for each other, with NORMAL syncing, which can lose the latest
 * commits at a power cut but never the file. A file that is no sound database is moved aside and a new one
 * begun; nothing is deleted.
 *
 * Every call blocks its thread: at the start that is the main one, later the database's own, see `keeper`.
 */
import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs'
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
  readonly connection: Database
  /** The journal mode that SQLite granted: `wal`, except on file systems that cannot. */
  readonly journalMode: string
  /** Whether the file at `path` is no longer the one that was opened: writes to that raise no error. */
  isReplaced(): boolean
  /** Of the file and its write-ahead log; 0 once they are gone. */
  sizeBytes(): number
  /** Of the write-ahead log. */
  logBytes(): number
  /** Waits longer for locks, for the last writes. */
  bePatient(): void
  close(): void
}

export interface SoundDatabase {
  readonly database: OpenDatabase
  /** Where a file that was no sound database has gone; null where there was none. */
  readonly movedAside: string | null
}

/**
 * Opens, and creates where it is missing, the database at `path`, its folders included. A file that is
 * damaged, or no database at all, is moved aside.
 *
 * @throws TallygateError naming the resolved path and the reason.
 */
export function openSound(path: string, nowMs: number): SoundDatabase {
  const resolved = resolve(path)
  const identity = identityOf(resolved)
  try {
    return { database: openDatabase(resolved, nowMs), movedAside: null }
  } catch (error) {
    if (!isDamage(error)) throw error
    const movedAside = moveAside(resolved, identity, nowMs)
    return { database: openDatabase(resolved, nowMs), movedAside }
  }
}

/**
 * Renames a damaged file and its log, unless another process was faster and has begun a new one.
 *
 * @param identity of the file that was found damaged.
 * @returns its new path; null where there was nothing to move.
 */
export function moveAside(path: string, identity: string | null, nowMs: number): string | null {
  if (identity === null || identityOf(path) !== identity) return null
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  let target = `${path}.damaged-${time}`
  for (let turn = 2; existsSync(target); turn++) target = `${path}.damaged-${time}-${turn}`
  renameSync(path, target)
  // Frames of the old log must not be taken for ones of the new file.
  for (const log of ['-wal', '-shm']) {
    if (existsSync(`${path}${log}`)) renameSync(`${path}${log}`, `${target}${log}`)
  }
  return target
}

/** Whether SQLite says that the file itself is at fault, by an error or by what caused it. */
export function isDamage(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (cause !== undefined) return isDamage(cause)
  return typeof code === 'string' && /^SQLITE_(CORRUPT|NOTADB)/.test(code)
}

/**
 * Opens the database at `path` as it is.
 *
 * @throws TallygateError naming the resolved path and the reason.
 */
export function openDatabase(path: string, nowMs: number): OpenDatabase {
  const resolved = resolve(path)
  let connection: Database | null = null
  try {
    makeFolder(dirname(resolved))
    connection = new Sqlite(resolved, { timeout: patientMs })
    // First: a file of a later version is left as it is, and WAL would be written into it.
    refuseLaterVersion(connection)
    const journalMode = changeToWal(connection)
    connection.pragma('synchronous = NORMAL')
    connection.pragma(`journal_size_limit = ${logBytesKept}`)
    migrate(connection, nowMs)
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
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs)
    }
  }
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
  const identity = identityOf(path)
  return {
    path,
    connection,
    journalMode,
    isReplaced: () => identityOf(path) !== identity,
    sizeBytes: () => sizeOf(path) + sizeOf(`${path}-wal`),
    logBytes: () => sizeOf(`${path}-wal`),
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

/** Device and inode of a file; null where there is none. */
export function identityOf(path: string): string | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined ? null : `${stats.dev} ${stats.ino}`
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

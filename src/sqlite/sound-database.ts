/*
 * Opens a database and whatever is the matter with its file: one that is damaged, or no database at all, is
 * moved aside under a name that says when, and a new one begun. Nothing is deleted, and several processes
 * that find the same damage move it once.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { databaseFault, openDatabase, pause, type OpenDatabase } from './database.js'

/** Far more than renaming takes. */
const movingMsMax = 500
const retryMs = 5

export interface SoundDatabase<T> {
  readonly database: OpenDatabase
  /** What the caller made of it. */
  readonly prepared: T
  /** Where a file that was no sound database has gone; null where there was none. */
  readonly movedAside: string | null
}

/**
 * Opens, and creates where it is missing, the database at `path`, its folders included.
 *
 * @param prepare what is to be done first: opening reads one page, so damage may only show there.
 * @param seedOfNew asked for the seed of hashes that a new file is to have; drawn where it has none.
 * @throws TallygateError naming the resolved path and the reason.
 */
export function openSound<T>(
  path: string,
  nowMs: number,
  prepare: (database: OpenDatabase) => T,
  seedOfNew: () => string | undefined = () => undefined,
): SoundDatabase<T> {
  const resolved = resolve(path)
  const identity = identityOf(resolved)
  try {
    return { ...openPrepared(resolved, nowMs, prepare, seedOfNew()), movedAside: null }
  } catch (error) {
    if (!isDamage(error)) throw error
    const movedAside = moveAsideFrom(resolved, identity, nowMs)
    return { ...openPrepared(resolved, nowMs, prepare, seedOfNew()), movedAside }
  }
}

/**
 * Renames a damaged file and its log, unless another process was faster and has begun a new one.
 *
 * @param identity of the file that was found damaged.
 * @returns its new path; null where there was nothing to move.
 */
export function moveAside(path: string, identity: string | null, nowMs: number): string | null {
  return alone(path, () => {
    if (identity === null || identityOf(path) !== identity) return null
    const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')
    let target = `${path}.damaged-${time}`
    for (let turn = 2; existsSync(target); turn++) target = `${path}.damaged-${time}-${turn}`
    // The log first: once the file is gone another process begins a new one, whose log would be moved.
    for (const ending of ['-wal', '-shm', '']) {
      if (existsSync(path + ending)) renameSync(path + ending, target + ending)
    }
    return target
  })
}

/** While no other process moves the same file, as long as that one does not die meanwhile. */
function alone<T>(path: string, work: () => T): T {
  const lock = `${path}.moving`
  for (let waitedMs = 0; !made(lock) && waitedMs < movingMsMax; waitedMs += retryMs) pause(retryMs)
  try {
    return work()
  } finally {
    rmSync(lock, { recursive: true, force: true })
  }
}

function made(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Whether SQLite says that the file itself is at fault, by an error or by what caused it. */
export function isDamage(error: unknown): boolean {
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (cause !== undefined) return isDamage(cause)
  return typeof code === 'string' && /^SQLITE_(CORRUPT|NOTADB)/.test(code)
}

/** Device and inode of a file; null where there is none, or where that cannot be told. */
export function identityOf(path: string): string | null {
  try {
    const { dev, ino } = statSync(path)
    return `${dev} ${ino}`
  } catch {
    // Opening it will meet the same fault, and say what it is.
    return null
  }
}

function openPrepared<T>(
  path: string,
  nowMs: number,
  prepare: (database: OpenDatabase) => T,
  hashSeed: string | undefined,
): { database: OpenDatabase; prepared: T } {
  const database = openDatabase(path, nowMs, hashSeed)
  try {
    return { database, prepared: prepare(database) }
  } catch (error) {
    database.close()
    throw databaseFault(path, error)
  }
}

/** In the words in which a start is refused, as where the folder takes no new name. */
function moveAsideFrom(path: string, identity: string | null, nowMs: number): string | null {
  try {
    return moveAside(path, identity, nowMs)
  } catch (error) {
    throw databaseFault(path, error)
  }
}

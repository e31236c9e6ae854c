/*
 * Keeps one database open and calls its services, in the thread that it is made in; every call blocks that
 * thread. A file that is gone, or was replaced, is noticed before the next call, since SQLite itself goes on
 * writing to what no longer has a name; one that proves damaged is moved aside. Either way a new one is
 * begun and the call made there.
 *
 * Between calls it moves the write-ahead log into the file, so that no commit stops to do that: the log
 * stays under some megabytes, and is cut once nobody writes.
 */
import { rmSync } from 'node:fs'
import type { Database } from 'better-sqlite3'
import type { OpenDatabase } from './database.js'
import {
  createServices,
  type Arguments,
  type Method,
  type Result,
  type ServiceName,
  type ServiceOptions,
  type Services,
} from './services.js'
import { identityOf, isDamage, moveAside, openSound } from './sound-database.js'

/** What has become of the file since the start. */
export interface FileChanges {
  /** How often another file took its place. */
  readonly replacedCount: number
  /** Where the last damaged one was moved. */
  readonly movedAside: string | null
  /** The id of the one that was open last. */
  readonly id: string
}

interface Open {
  readonly database: OpenDatabase
  readonly services: Services
  readonly identity: string | null
  /** Of its log, and of what SQLite keeps beside that. */
  readonly logIdentities: readonly (string | null)[]
}

const logBytesMax = 8 * 1_048_576
const logBytesIdle = 1_048_576
/** From where on others are made to wait, and how much further it grows before they are again. */
const logBytesPressed = 16 * 1_048_576
const logBytesStep = 8 * 1_048_576
/** Pages of the log that others could not have written just now: somebody reads the state before them. */
const heldPagesMin = 1_000

export class DatabaseKeeper {
  readonly #path: string
  readonly #options: ServiceOptions
  #open: Open | null = null
  #isPatient = false
  #pressedBytes = logBytesPressed
  #changes: FileChanges

  /** @param changes so far: whoever had the file before, it is known whether this is still the same. */
  constructor(path: string, options: ServiceOptions, changes: FileChanges) {
    this.#path = path
    this.#options = options
    this.#changes = changes
  }

  get changes(): FileChanges {
    return this.#changes
  }

  /** Opens the database, so that no lock that somebody takes meanwhile stands in the first call's way. */
  open(nowMs: number): void {
    this.#reach(nowMs)
  }

  /** Throws what SQLite throws; then nothing was changed. */
  call<S extends ServiceName, M extends Method<S>>(
    service: S,
    method: M,
    args: Arguments<S, M>,
    nowMs: number,
  ): Result<S, M> {
    const { services, identity } = this.#reach(nowMs)
    try {
      return invoke(services[service], method, args)
    } catch (error) {
      if (!isDamage(error)) throw error
      this.close()
      this.#noteMoved(moveAside(this.#path, identity, nowMs))
      return invoke(this.#reach(nowMs).services[service], method, args)
    }
  }

  /** Waits longer for locks from now on, for the last writes. */
  bePatient(): void {
    this.#isPatient = true
    this.#open?.database.bePatient()
  }

  /** Tells by its changing that something was written. */
  writtenCount(): number {
    return this.#open?.database.writtenCount() ?? 0
  }

  /** Moves the log into the file where it has grown; to be called when nothing else is to be done. */
  tidy(isIdle: boolean): void {
    if (this.#open === null) return
    const { database } = this.#open
    const { connection } = database
    const bytes = database.logBytes()
    if (isIdle && bytes > logBytesIdle) connection.pragma('wal_checkpoint(TRUNCATE)')
    else if (bytes > logBytesMax) this.#moveLog(connection, bytes)
  }

  /**
   * Where several write all the time, none of them ever finds the log at rest: one has to make the others
   * wait. But somebody who reads an old state for long would make it wait itself, with each call.
   */
  #moveLog(connection: Database, bytes: number): void {
    if (bytes < logBytesPressed) this.#pressedBytes = logBytesPressed
    const isPressed = bytes >= this.#pressedBytes
    const mode = isPressed ? 'RESTART' : 'PASSIVE'
    const [moved] = connection.pragma(`wal_checkpoint(${mode})`) as {
      log: number
      checkpointed: number
    }[]
    const isHeld = moved !== undefined && moved.log - moved.checkpointed > heldPagesMin
    if (isPressed && isHeld) this.#pressedBytes = bytes + logBytesStep
  }

  close(): void {
    this.#open?.database.close()
    this.#open = null
  }

  /** The open database, begun anew where its file is no longer there. */
  #reach(nowMs: number): Open {
    const before = this.#open
    if (before !== null && identityOf(this.#path) === before.identity) return before
    if (before !== null) this.#leave(before)
    const prepare = (opened: OpenDatabase) => {
      // The log is moved between calls instead.
      opened.connection.pragma('wal_autocheckpoint = 0')
      if (this.#isPatient) opened.bePatient()
      return createServices(opened, this.#options)
    }
    const { hashSeed } = this.#options
    const sound = openSound(this.#path, nowMs, prepare, () => hashSeed)
    const { database, prepared, movedAside } = sound
    this.#noteMoved(movedAside)
    // By its id too: the number of an inode is soon given to the next file.
    const isReplaced = before !== null || database.id !== this.#changes.id
    const replacedCount = this.#changes.replacedCount + (isReplaced ? 1 : 0)
    this.#changes = { ...this.#changes, replacedCount, id: database.id }
    this.#open = {
      database,
      services: prepared,
      identity: identityOf(this.#path),
      logIdentities: this.#logPaths.map(identityOf),
    }
    return this.#open
  }

  /** Its log goes with it: SQLite would take it for that of the file that is there now. */
  #leave({ database, logIdentities }: Open): void {
    try {
      database.connection.pragma('wal_checkpoint(TRUNCATE)')
    } catch {
      // Others read or write it still; what they have in the log is theirs to move.
    }
    for (const [index, path] of this.#logPaths.entries()) {
      const identity = identityOf(path)
      if (identity !== null && identity === logIdentities[index]) rmSync(path)
    }
    this.close()
  }

  get #logPaths(): readonly string[] {
    return [`${this.#path}-wal`, `${this.#path}-shm`]
  }

  #noteMoved(movedAside: string | null): void {
    if (movedAside !== null) this.#changes = { ...this.#changes, movedAside }
  }
}

function invoke<S extends ServiceName, M extends Method<S>>(
  service: Services[S],
  method: M,
  args: Arguments<S, M>,
): Result<S, M> {
  const call = service[method] as (...given: Arguments<S, M>) => Result<S, M>
  return call.apply(service, args)
}

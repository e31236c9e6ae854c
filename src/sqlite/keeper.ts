/*
 * Keeps one database open and calls its services, in the thread that it is made in; every call blocks that
 * thread. A file that is gone, or was replaced, is noticed before the next call, since SQLite itself goes on
 * writing to what no longer has a name; one that proves damaged is moved aside. Either way a new one is
 * begun and the call made there.
 *
 * Between calls it moves the write-ahead log into the file, so that no commit stops to do that: the log
 * stays under some megabytes, and is cut once nobody writes.
 */
import { openSound, identityOf, isDamage, moveAside, type OpenDatabase } from './database.js'
import {
  createServices,
  type Arguments,
  type Method,
  type Result,
  type ServiceName,
  type ServiceOptions,
  type Services,
} from './services.js'

/** What has become of the file since it was first opened. */
export interface FileChanges {
  /** How often a new file was begun. */
  readonly replacedCount: number
  /** Where the last damaged one was moved. */
  readonly movedAside: string | null
}

interface Open {
  readonly database: OpenDatabase
  readonly services: Services
  readonly identity: string | null
}

const logBytesMax = 8 * 1_048_576
const logBytesIdle = 1_048_576

export class DatabaseKeeper {
  readonly #path: string
  readonly #options: ServiceOptions
  #open: Open | null = null
  #wasOpen = false
  #isPatient = false
  #replacedCount = 0
  #movedAside: string | null = null

  constructor(path: string, options: ServiceOptions) {
    this.#path = path
    this.#options = options
  }

  get changes(): FileChanges {
    return { replacedCount: this.#replacedCount, movedAside: this.#movedAside }
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
      this.#movedAside = moveAside(this.#path, identity, nowMs) ?? this.#movedAside
      return invoke(this.#reach(nowMs).services[service], method, args)
    }
  }

  /** Waits longer for locks from now on, for the last writes. */
  bePatient(): void {
    this.#isPatient = true
    this.#open?.database.bePatient()
  }

  /** Moves the log into the file where it has grown; to be called when nothing else is to be done. */
  tidy(isIdle: boolean): void {
    if (this.#open === null) return
    const { database } = this.#open
    const logBytes = database.logBytes()
    if (logBytes > (isIdle ? logBytesIdle : logBytesMax)) {
      database.connection.pragma(`wal_checkpoint(${isIdle ? 'TRUNCATE' : 'PASSIVE'})`)
    }
  }

  close(): void {
    this.#open?.database.close()
    this.#open = null
  }

  /** The open database, begun anew where its file is no longer there. */
  #reach(nowMs: number): Open {
    if (this.#open !== null && identityOf(this.#path) !== this.#open.identity) this.close()
    if (this.#open !== null) return this.#open
    const { database, movedAside } = openSound(this.#path, nowMs)
    if (this.#isPatient) database.bePatient()
    // The log is moved between calls instead.
    database.connection.pragma('wal_autocheckpoint = 0')
    if (this.#wasOpen) this.#replacedCount++
    this.#wasOpen = true
    if (movedAside !== null) this.#movedAside = movedAside
    this.#open = {
      database,
      services: createServices(database, this.#options),
      identity: identityOf(this.#path),
    }
    return this.#open
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

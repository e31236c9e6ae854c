/*
 * The database as the main thread has it: calls go to a thread of its own and come back as promises, in the
 * order in which they were made. The thread does not keep the process alive, but while a call is under way
 * it does. Should it die, what it had not answered is rejected, and the next call starts another.
 */
import { Worker } from 'node:worker_threads'
import type { FileChanges } from './keeper.js'
import type { Call, Fault, Order, Reply, ThreadData } from './messages.js'
import type { Asked } from './asked.js'
import type { Arguments, Method, Result, ServiceName, Services } from './services.js'

interface Waiting {
  readonly resolve: (value: never) => void
  readonly reject: (error: Error) => void
}

/** The thread died before it had answered: whether the call was carried out is not known. */
export class ThreadDied extends Error {
  override readonly name = 'ThreadDied'
}

/** What SQLite or the file system said, in the other thread. */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault'
  /** Such as SQLITE_BUSY. */
  readonly code: string | undefined

  constructor({ message, code }: Fault) {
    super(message)
    this.code = code
  }
}

type ThreadParts = Omit<ThreadData, 'startedAtMs'>

export class DatabaseThread {
  readonly path: string
  readonly #data: ThreadParts
  readonly #wallMs: () => number
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | null = null
  #nextId = 1
  #changes: FileChanges
  #isPatient = false
  #closing: Promise<void> | null = null

  constructor(data: ThreadParts, wallMs: () => number) {
    this.path = data.path
    this.#data = data
    this.#changes = data.changes
    this.#wallMs = wallMs
    this.#worker = this.#start()
  }

  /** Since the start, as of the latest answer. */
  get changes(): FileChanges {
    return this.#changes
  }

  /** How many calls wait for their answer. */
  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Rejects with a DatabaseFault, and then nothing was changed, or with ThreadDied. */
  ask<S extends ServiceName, M extends Method<S>>(
    service: S,
    method: M,
    ...args: Arguments<S, M>
  ): Promise<Result<S, M>> {
    return new Promise((resolve, reject) => {
      if (this.#closing !== null) return reject(new ThreadDied('the database is closed'))
      const worker = (this.#worker ??= this.#start())
      const id = this.#nextId++
      const call: Call = { id, service, method: method as string, args, nowMs: this.#wallMs() }
      // First: what cannot be sent throws, and waits for nothing.
      worker.postMessage(call satisfies Order)
      if (this.#waiting.size === 0) worker.ref()
      this.#waiting.set(id, { resolve, reject })
    })
  }

  /** A service's methods, as functions that ask. */
  service<S extends ServiceName, M extends Method<S>>(
    name: S,
    methods: readonly M[],
  ): Pick<Asked<Services[S]>, M> {
    const entries = methods.map((method) => [
      method,
      (...args: Arguments<S, M>) => this.ask(name, method, ...args),
    ])
    return Object.fromEntries(entries) as Pick<Asked<Services[S]>, M>
  }

  /** Waits longer for locks from now on, for the last writes. */
  bePatient(): void {
    this.#isPatient = true
    this.#worker?.postMessage('patience' satisfies Order)
  }

  /** Ends the thread once all that was asked before is answered. May be called twice. */
  close(): Promise<void> {
    return (this.#closing ??= this.#end())
  }

  #end(): Promise<void> {
    const worker = this.#worker
    if (worker === null) return Promise.resolve()
    worker.ref()
    return new Promise((resolve) => {
      worker.once('exit', () => resolve())
      worker.postMessage('close' satisfies Order)
    })
  }

  #start(): Worker {
    // Where another has died, what was known of the file goes on being known.
    const now = { changes: this.#changes, startedAtMs: this.#wallMs() }
    const workerData: ThreadData = { ...this.#data, ...now }
    // Without the flags of the process, some of which are for its main script alone.
    const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData, execArgv: [] })
    if (this.#isPatient) worker.postMessage('patience' satisfies Order)
    worker.on('message', (reply: Reply) => this.#answer(worker, reply))
    let reason = 'its thread ended'
    worker.on('error', (error) => (reason = `its thread failed: ${error.message}`))
    worker.on('exit', () => this.#bury(worker, reason))
    worker.unref()
    return worker
  }

  #answer(worker: Worker, reply: Reply): void {
    this.#changes = reply.changes
    const waiting = this.#waiting.get(reply.id)
    this.#waiting.delete(reply.id)
    if (this.#waiting.size === 0 && this.#closing === null) worker.unref()
    if ('fault' in reply) waiting?.reject(new DatabaseFault(reply.fault))
    else waiting?.resolve(reply.value as never)
  }

  #bury(worker: Worker, reason: string): void {
    if (this.#worker === worker) this.#worker = null
    const lost = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of lost) reject(new ThreadDied(`the database did not answer: ${reason}`))
  }
}

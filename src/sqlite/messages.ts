/*
 * What passes between the main thread and the database's.
 */
import type { FileChanges } from './keeper.js'
import type { ServiceOptions } from './services.js'

/** What the thread is started with. */
export interface ThreadData {
  readonly path: string
  readonly options: ServiceOptions
  /** When it is started, by the clock of the asking side. */
  readonly startedAtMs: number
  /** What has become of the file so far. */
  readonly changes: FileChanges
}

export interface Call {
  readonly id: number
  readonly service: string
  readonly method: string
  readonly args: readonly unknown[]
  /** By the clock of the asking side. */
  readonly nowMs: number
}

/** `patience`: wait longer for locks from now on. `close`: end, once all that was asked before is done. */
export type Order = Call | 'patience' | 'close'

/** An error as it passes between threads, with what SQLite calls it. */
export interface Fault {
  readonly message: string
  readonly code: string | undefined
}

export type Reply = { readonly id: number; readonly changes: FileChanges } & (
  { readonly value: unknown } | { readonly fault: Fault }
)

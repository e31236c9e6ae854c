/*
 * Tallies in SQLite, asked of the database's thread. A batch whose answer was lost with the thread is sent
 * once more under its number, so that it counts once, whether or not it had been added.
 */
import { randomUUID } from 'node:crypto'
import type { WindowKind } from '../core/windows.js'
import type {
  SharedArchive,
  SharedCounts,
  StoredCounts,
  StoredWindow,
  TallyArchive,
  WindowDelta,
  WindowRef,
} from '../tally/archive.js'
import { ThreadDied, type DatabaseThread } from './database-thread.js'
import type { ArchiveFacts, Exchanged } from './tally-rows.js'

const sendsMax = 3

export class SqliteTallyArchive implements TallyArchive, SharedArchive {
  readonly #thread: DatabaseThread
  readonly #wallMs: () => number
  readonly writer = randomUUID()
  #sequence = 0
  #facts: ArchiveFacts

  /** @param facts as they were read at the start. */
  constructor(thread: DatabaseThread, facts: ArchiveFacts, wallMs: () => number) {
    this.#thread = thread
    this.#facts = facts
    this.#wallMs = wallMs
  }

  get path(): string {
    return this.#thread.path
  }

  get id(): string {
    return this.#facts.id
  }

  get sinceMs(): number {
    return this.#facts.sinceMs
  }

  get sizeBytes(): number {
    return this.#facts.sizeBytes
  }

  /** Whether another process has written to the file of late. */
  get isShared(): boolean {
    return this.#facts.isShared
  }

  get movedAside(): string | null {
    return this.#thread.changes.movedAside
  }

  get shared(): SharedArchive {
    return this
  }

  get sequence(): number {
    return this.#sequence
  }

  async add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts> {
    const batch = { writer: this.writer, sequence: ++this.#sequence, deltas }
    for (let sends = 1; ; sends++) {
      try {
        return this.#note(
          await this.#thread.ask('tallies', 'exchange', batch, wanted, this.#wallMs()),
        )
      } catch (error) {
        if (!(error instanceof ThreadDied) || sends === sendsMax) throw error
      }
    }
  }

  history(window: WindowKind, fromMs: number, toMs: number): Promise<StoredWindow[]> {
    return this.#thread.ask('tallies', 'history', window, fromMs, toMs)
  }

  readWith(wanted: readonly WindowRef[], writers: readonly string[]): Promise<SharedCounts> {
    return this.#thread.ask('tallies', 'readWith', wanted, writers)
  }

  #note({ stored, facts }: Exchanged): StoredCounts {
    this.#facts = facts
    return stored
  }
}

/*
 * Tallies in SQLite, asked of the database's thread. A batch whose answer was lost with the thread is sent
 * again under its number, so that it counts once, whether or not it had been added; where thread after
 * thread dies over it, before the next batch.
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
import type { ArchiveFacts, Batch, Exchanged } from './tally-rows.js'

const sendsMax = 3
/** Exchanges, about one a second: who shares a file need not write each second. */
const quietExchangesMin = 60

export class SqliteTallyArchive implements TallyArchive, SharedArchive {
  readonly #thread: DatabaseThread
  readonly #wallMs: () => number
  readonly writer = randomUUID()
  #sequence = 0
  /** Sent as often as it may be, and never answered: it may have been added. */
  #doubtful: Batch | null = null
  /** Added, though whoever handed them over was told that they were not, and will hand them over again. */
  #unheard: readonly WindowDelta[] = []
  #facts: ArchiveFacts
  /** Exchanges since one found that another process had written. */
  #quietExchanges = quietExchangesMin

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

  /** Whether another process has written to the file within the last minute or so. */
  get isShared(): boolean {
    return this.#quietExchanges < quietExchangesMin
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
    await this.#settle()
    const batch = this.#batchOf(without(deltas, this.#unheard))
    try {
      const stored = this.#note(await this.#send(batch, wanted))
      this.#unheard = []
      return stored
    } catch (error) {
      if (error instanceof ThreadDied) this.#doubtful = batch
      throw error
    }
  }

  history(window: WindowKind, fromMs: number, toMs: number): Promise<StoredWindow[]> {
    return this.#thread.ask('tallies', 'history', window, fromMs, toMs)
  }

  /** Sends what is doubtful once more: then it has been added for certain. */
  async #settle(): Promise<void> {
    if (this.#doubtful === null) return
    await this.#send(this.#doubtful, [])
    this.#unheard = [...this.#unheard, ...this.#doubtful.deltas]
    this.#doubtful = null
  }

  #batchOf(deltas: readonly WindowDelta[]): Batch {
    return { writer: this.writer, sequence: ++this.#sequence, deltas }
  }

  async #send(batch: Batch, wanted: readonly WindowRef[]): Promise<Exchanged> {
    for (let sends = 1; ; sends++) {
      try {
        return await this.#thread.ask('tallies', 'exchange', batch, wanted, this.#wallMs())
      } catch (error) {
        if (!(error instanceof ThreadDied) || sends === sendsMax) throw error
      }
    }
  }

  readWith(wanted: readonly WindowRef[], writers: readonly string[]): Promise<SharedCounts> {
    return this.#thread.ask('tallies', 'readWith', wanted, writers)
  }

  #note({ stored, facts }: Exchanged): StoredCounts {
    this.#facts = facts
    this.#quietExchanges = facts.isShared ? 0 : this.#quietExchanges + 1
    return stored
  }
}

/** What is left of deltas that contain others: counts of their own, since their sender goes on counting. */
function without(deltas: readonly WindowDelta[], known: readonly WindowDelta[]): WindowDelta[] {
  return deltas.map((delta) => {
    const counts = delta.counts.slice()
    for (const { window, startMs, counts: added } of known) {
      if (window !== delta.window || startMs !== delta.startMs) continue
      for (const [slot, count] of added.entries()) {
        counts[slot] = Math.max(0, (counts[slot] ?? 0) - count)
      }
    }
    return { ...delta, counts }
  })
}

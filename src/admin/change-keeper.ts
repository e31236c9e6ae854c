/*
 * Keeps changes of rules in the database, and takes over those of other processes that share the file. A
 * change is in force before it is kept: while the database refuses it, it waits here and is tried again with
 * each flush. The newest change of a field wins, by its time, whoever made it and whenever it is written.
 *
 * Bounded: of waiting changes the last of each field, and the last thousand entries of the audit.
 */
import type { Logger } from '../core/logger.js'
import type { Asked } from '../sqlite/asked.js'
import {
  auditCountMax,
  type AuditRow,
  type Override,
  type RuleChangeRows,
  type StoredOverrides,
} from '../sqlite/rule-changes.js'

export type ChangeRows = Pick<Asked<RuleChangeRows>, 'since' | 'write' | 'audit'>

export interface KeptChanges {
  readonly rows: ChangeRows
  /** As they were read at the start. */
  readonly stored: StoredOverrides
}

export interface ChangeKeeperParts {
  /** null where there is no database: then changes last as long as the process. */
  readonly kept: KeptChanges | null
  readonly logger: Logger
  /** Whether a change replaced what the configuration of this process says. */
  readonly isOurs: (override: Override) => boolean
  /** Told when changes of another process have come in. */
  readonly onChange: () => void
}

export class ChangeKeeper {
  readonly #parts: ChangeKeeperParts
  /** The newest change of each field, by `nameOf`. */
  readonly #known = new Map<string, Override>()
  /** Those of them that the database may not have. */
  readonly #waiting = new Map<string, Override>()
  /** Of this process, the newest last. */
  #entries: AuditRow[] = []
  #waitingEntries: AuditRow[] = []
  #databaseId = ''
  #revision = 0
  #lastMs = 0
  #isFailing = false
  /** The work on the database that was begun or queued last: one at a time. */
  #running: Promise<void> = Promise.resolve()
  #queued: Promise<void> | null = null

  constructor(parts: ChangeKeeperParts) {
    this.#parts = parts
    if (parts.kept !== null) this.#learn(parts.kept.stored)
  }

  /** The newest change of each field. */
  get overrides(): readonly Override[] {
    return [...this.#known.values()]
  }

  /** Whether there is something that only this process knows. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0 || this.#waitingEntries.length > 0
  }

  /** Whether everything lasts. */
  get isSaved(): boolean {
    return this.#parts.kept !== null && !this.isWaiting
  }

  /** The time of a change that is made now: after all that are known, though the clock were set back. */
  timeOf(nowMs: number): number {
    return (this.#lastMs = Math.max(Math.floor(nowMs), this.#lastMs + 1))
  }

  add(overrides: readonly Override[], entry: AuditRow): void {
    for (const override of overrides) {
      this.#known.set(nameOf(override), override)
      this.#waiting.set(nameOf(override), override)
    }
    this.#entries = [...this.#entries, entry].slice(-auditCountMax)
    this.#waitingEntries = [...this.#waitingEntries, entry].slice(-auditCountMax)
  }

  /** Writes what waits, or asks whether others have changed something; never rejects. */
  save(): Promise<void> {
    this.#queued ??= this.#running.then(() => {
      this.#queued = null
      return this.#exchange()
    })
    return (this.#running = this.#queued)
  }

  /** The last changes, the newest first, of all processes; rejects where the database cannot be read. */
  async audit(): Promise<AuditRow[]> {
    const stored = (await this.#parts.kept?.rows.audit()) ?? []
    const ids = new Set(stored.map(({ id }) => id))
    const own = this.#entries.filter(({ id }) => !ids.has(id))
    return [...stored, ...own].toSorted((a, b) => b.atMs - a.atMs).slice(0, auditCountMax)
  }

  async #exchange(): Promise<void> {
    const { kept, onChange } = this.#parts
    if (kept === null) return
    const overrides = [...this.#waiting.values()]
    const entries = this.#waitingEntries
    let stored: StoredOverrides | null
    try {
      stored = this.isWaiting
        ? await kept.rows.write(overrides, entries)
        : await kept.rows.since(this.#databaseId, this.#revision)
    } catch (error) {
      this.#failed(error)
      return
    }
    this.#written(overrides, entries)
    if (stored === null) return
    this.#learn(stored)
    onChange()
  }

  /** Where nothing waits nothing is lost: the flushes of the tallies meet the same fault and report it. */
  #failed(error: unknown): void {
    if (!this.isWaiting || this.#isFailing) return
    this.#isFailing = true
    const message = 'changes of rules cannot be written; they are in force and wait'
    this.#parts.logger.error({ err: error }, message)
  }

  /** Unless something was changed again meanwhile. */
  #written(overrides: readonly Override[], entries: readonly AuditRow[]): void {
    if (this.#isFailing) this.#parts.logger.info({}, 'changes of rules are written again')
    this.#isFailing = false
    for (const override of overrides) {
      const name = nameOf(override)
      if (this.#waiting.get(name) === override) this.#waiting.delete(name)
    }
    const written = new Set(entries)
    this.#waitingEntries = this.#waitingEntries.filter((entry) => !written.has(entry))
  }

  #learn({ databaseId, revision, overrides }: StoredOverrides): void {
    // A file that was begun anew knows nothing: what is in force is written there too.
    if (databaseId !== this.#databaseId) {
      for (const [name, known] of this.#known) this.#waiting.set(name, known)
    }
    this.#databaseId = databaseId
    this.#revision = revision
    for (const override of overrides) {
      this.#lastMs = Math.max(this.#lastMs, override.atMs)
      if (this.#isNews(override)) this.#known.set(nameOf(override), override)
    }
    for (const [name, waiting] of this.#waiting) {
      if (this.#known.get(name) !== waiting) this.#waiting.delete(name)
    }
  }

  /**
   * What was changed under another configuration is not for this process, and does not end what is: while
   * processes go over to a new configuration one by one, those with the old one stay as they are.
   */
  #isNews(override: Override): boolean {
    const { isOurs } = this.#parts
    const name = nameOf(override)
    const known = this.#known.get(name)
    if (known === undefined) return true
    // Two of one millisecond: the one that was written last is what everybody reads.
    const isLater =
      override.atMs > known.atMs || (override.atMs === known.atMs && !this.#waiting.has(name))
    return isLater && (isOurs(override) || !isOurs(known))
  }
}

function nameOf({ rule, field }: Override): string {
  return `${rule} ${field}`
}

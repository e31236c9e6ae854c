/*
 * Tallies in SQLite. An exchange is one transaction; additions happen inside the statement, so that several
 * processes may share the file, and the figures read back in the same transaction include theirs.
 *
 * Each process writes as a writer with a number for each batch, kept in the same transaction: a batch whose
 * answer got lost can be sent again and is added once.
 */
import type { Statement } from 'better-sqlite3'
import { outcomes, verdicts } from '../core/decision.js'
import { windowKinds, type WindowKind } from '../core/windows.js'
import type {
  SharedCounts,
  StoredCounts,
  StoredWindow,
  WindowDelta,
  WindowRef,
} from '../tally/archive.js'
import { retentionMs } from '../tally/retention.js'
import { TallySlots } from '../tally/slots.js'
import type { OpenDatabase } from './database.js'

/** What one process hands over at a time. */
export interface Batch {
  readonly writer: string
  /** Grows with each batch of the writer, from 1. */
  readonly sequence: number
  readonly deltas: readonly WindowDelta[]
}

/** The database as the tallies see it. */
export interface ArchiveFacts {
  /** An id that stays with the file. */
  readonly id: string
  /** When counting began, in milliseconds since the epoch. */
  readonly sinceMs: number
  readonly sizeBytes: number
  /** Whether something else has written to the file since the last exchange. */
  readonly isShared: boolean
}

export interface Exchanged {
  readonly stored: StoredCounts
  readonly facts: ArchiveFacts
}

interface ReadRows {
  readonly stored: StoredCounts
  readonly sizeBytes: number
  readonly dataVersion: number
}

/** Whole numbers come as bigint: a count may be beyond what a double holds. */
interface CountRow {
  start_ms: bigint
  name: string
  verdict: string
  count: bigint
}

interface FilledRow {
  readonly counts: Float64Array
  large?: Map<number, bigint>
}

const pruneEveryMs = 3_600_000
const trustedAheadMs = 7 * 24 * 3_600_000
/** A writer that has not been heard of for so long sends nothing again. */
const writerKeptMs = 24 * 3_600_000

export class TallyRows {
  readonly #database: OpenDatabase
  readonly #slots: TallySlots
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #sinceMs: number
  #prunedAtMs = -Infinity
  #dataVersion: number

  /** @param ruleNames of the rules whose verdicts are kept, in the order of their slots. */
  constructor(database: OpenDatabase, ruleNames: readonly string[]) {
    this.#database = database
    this.#slots = new TallySlots(ruleNames)
    this.#statements = prepareStatements(database)
    const since = this.#statements.since.get() as { value: string } | undefined
    this.#sinceMs = Number(since?.value ?? 0)
    this.#dataVersion = this.#readDataVersion()
  }

  /** Adds a batch, whole or not at all, and once however often it comes; then reads. */
  exchange(batch: Batch, wanted: readonly WindowRef[], nowMs: number): Exchanged {
    const isPruning = Math.abs(nowMs - this.#prunedAtMs) >= pruneEveryMs
    const run = this.#database.connection.transaction(() => {
      // Before adding: a clock that has just jumped ahead must not vouch for itself.
      const trustedMs = isPruning ? this.#trusted(nowMs) : nowMs
      if (batch.deltas.length > 0 && this.#isNew(batch, nowMs)) this.#add(batch.deltas)
      if (isPruning) this.#prune(trustedMs, nowMs)
      return this.#readAll(wanted)
    })
    const read = batch.deltas.length > 0 || isPruning ? run.immediate() : run.deferred()
    if (isPruning) this.#prunedAtMs = nowMs
    return this.#note(read)
  }

  /** Reads without adding. */
  read(wanted: readonly WindowRef[]): Exchanged {
    const run = this.#database.connection.transaction(() => this.#readAll(wanted))
    return this.#note(run.deferred())
  }

  /** Reads, and tells up to which batch of each writer that is. */
  readWith(wanted: readonly WindowRef[], writers: readonly string[]): SharedCounts {
    const read = this.#database.connection.transaction(() => ({
      stored: this.#read(wanted),
      sequences: writers.map((writer) => {
        const row = this.#statements.lastOf.get(writer) as { sequence: number } | undefined
        return row?.sequence ?? 0
      }),
    }))
    return read.deferred()
  }

  /** The stored windows of a kind that begin in [fromMs, toMs), in order; empty ones are left out. */
  history(window: WindowKind, fromMs: number, toMs: number): StoredWindow[] {
    const { requestsBetween, rulesBetween } = this.#statements
    const read = this.#database.connection.transaction(() => [
      requestsBetween.all(window, fromMs, toMs) as CountRow[],
      rulesBetween.all(window, fromMs, toMs) as CountRow[],
    ])
    const [requests = [], rules = []] = read.deferred()
    const windows = new Map<number, FilledRow>()
    for (const row of [...requests, ...rules]) {
      const startMs = Number(row.start_ms)
      const known = windows.get(startMs) ?? { counts: this.#slots.blank() }
      windows.set(startMs, known)
      this.#place(row, known)
    }
    return [...windows]
      .toSorted(([a], [b]) => a - b)
      .map(([startMs, filled]) => ({ startMs, ...filled }))
  }

  /** Inside the transaction, so that nothing is left that could fail once it has added. */
  #readAll(wanted: readonly WindowRef[]): ReadRows {
    return {
      stored: this.#read(wanted),
      sizeBytes: this.#database.sizeBytes(),
      dataVersion: this.#readDataVersion(),
    }
  }

  #note({ stored, sizeBytes, dataVersion }: ReadRows): Exchanged {
    const isShared = dataVersion !== this.#dataVersion
    this.#dataVersion = dataVersion
    const { id } = this.#database
    return { stored, facts: { id, sinceMs: this.#sinceMs, sizeBytes, isShared } }
  }

  /** Changes when another connection writes. */
  #readDataVersion(): number {
    return this.#database.connection.pragma('data_version', { simple: true }) as number
  }

  #read(wanted: readonly WindowRef[]): StoredCounts {
    const { requests, rules, requestTotals, ruleTotals } = this.#statements
    const totals = this.#rowOf(requestTotals.all() as CountRow[], ruleTotals.all() as CountRow[])
    const windows = wanted.map(({ window, startMs }) =>
      this.#rowOf(
        requests.all(window, startMs) as CountRow[],
        rules.all(window, startMs) as CountRow[],
      ),
    )
    const stored = { totals: totals.counts, windows: windows.map(({ counts }) => counts) }
    const large = [totals, ...windows].map((row) => row.large)
    return large.every((each) => each === undefined) ? stored : { ...stored, large }
  }

  #rowOf(requestRows: readonly CountRow[], ruleRows: readonly CountRow[]): FilledRow {
    const filled = { counts: this.#slots.blank() }
    for (const row of requestRows) this.#place(row, filled)
    for (const row of ruleRows) this.#place(row, filled)
    return filled
  }

  #place(row: CountRow, filled: FilledRow): void {
    const slot = this.#slotOf(row)
    if (slot === -1) return
    filled.counts[slot] = Number(row.count)
    if (row.count > Number.MAX_SAFE_INTEGER) (filled.large ??= new Map()).set(slot, row.count)
  }

  /** −1 for rules that no longer exist: they are passed over. */
  #slotOf({ name, verdict }: CountRow): number {
    if (verdict === undefined) return (outcomes as readonly string[]).indexOf(name)
    const rule = this.#slots.ruleNames.indexOf(name)
    const index = (verdicts as readonly string[]).indexOf(verdict)
    return rule === -1 || index === -1 ? -1 : this.#slots.ofVerdict(rule, index)
  }

  #isNew({ writer, sequence }: Batch, nowMs: number): boolean {
    return this.#statements.advance.run(writer, sequence, Math.floor(nowMs)).changes > 0
  }

  #add(deltas: readonly WindowDelta[]): void {
    for (const { window, startMs, counts } of deltas) {
      for (const [index, outcome] of outcomes.entries()) {
        const count = counts[index] ?? 0
        if (count > 0) this.#statements.addRequests.run(window, startMs, outcome, count)
      }
      for (const [rule, name] of this.#slots.ruleNames.entries()) {
        for (const [index, verdict] of verdicts.entries()) {
          const count = counts[this.#slots.ofVerdict(rule, index)] ?? 0
          if (count > 0) this.#statements.addVerdicts.run(window, startMs, name, verdict, count)
        }
      }
    }
  }

  /**
   * The time by which counts are deleted: now, but no more than a week after the newest count. A clock that
   * is set ahead by mistake, or wrong at the start, must not delete everything.
   */
  #trusted(wallMs: number): number {
    const { newestMs } = this.#statements.newest.get() as { newestMs: number | null }
    return Math.min(wallMs, (newestMs ?? wallMs) + trustedAheadMs)
  }

  /** Deletes what has outlived its retention. */
  #prune(trustedMs: number, nowMs: number): void {
    for (const window of windowKinds) {
      if (retentionMs[window] === Infinity) continue
      this.#statements.pruneRequests.run(window, trustedMs - retentionMs[window])
      this.#statements.pruneRules.run(window, trustedMs - retentionMs[window])
    }
    this.#statements.pruneWriters.run(nowMs - writerKeptMs)
  }
}

function prepareStatements({ connection }: OpenDatabase): Record<StatementName, Statement> {
  const add = 'DO UPDATE SET count = count + excluded.count'
  const exact = (sql: string) => connection.prepare(sql).safeIntegers()
  return {
    since: connection.prepare("SELECT value FROM meta WHERE key = 'since_ms'"),
    requests: exact(
      'SELECT outcome AS name, count FROM request_tallies WHERE window = ? AND start_ms = ?',
    ),
    rules: exact(
      'SELECT rule AS name, verdict, count FROM rule_tallies WHERE window = ? AND start_ms = ?',
    ),
    requestTotals: exact(
      `SELECT outcome AS name, sum(count) AS count FROM request_tallies
       WHERE window = 'week' GROUP BY outcome`,
    ),
    ruleTotals: exact(
      `SELECT rule AS name, verdict, sum(count) AS count FROM rule_tallies
       WHERE window = 'week' GROUP BY rule, verdict`,
    ),
    requestsBetween: exact(
      `SELECT start_ms, outcome AS name, count FROM request_tallies
       WHERE window = ? AND start_ms >= ? AND start_ms < ?`,
    ),
    rulesBetween: exact(
      `SELECT start_ms, rule AS name, verdict, count FROM rule_tallies
       WHERE window = ? AND start_ms >= ? AND start_ms < ?`,
    ),
    addRequests: connection.prepare(
      `INSERT INTO request_tallies VALUES (?, ?, ?, ?) ON CONFLICT (window, start_ms, outcome) ${add}`,
    ),
    addVerdicts: connection.prepare(
      `INSERT INTO rule_tallies VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (window, start_ms, rule, verdict) ${add}`,
    ),
    advance: connection.prepare(
      `INSERT INTO writers VALUES (?, ?, ?) ON CONFLICT (id)
       DO UPDATE SET sequence = excluded.sequence, seen_ms = excluded.seen_ms
       WHERE excluded.sequence > sequence`,
    ),
    lastOf: connection.prepare('SELECT sequence FROM writers WHERE id = ?'),
    newest: connection.prepare(
      `SELECT max(start_ms) AS newestMs FROM request_tallies WHERE window = 'day'`,
    ),
    pruneRequests: connection.prepare(
      'DELETE FROM request_tallies WHERE window = ? AND start_ms < ?',
    ),
    pruneRules: connection.prepare('DELETE FROM rule_tallies WHERE window = ? AND start_ms < ?'),
    pruneWriters: connection.prepare('DELETE FROM writers WHERE seen_ms < ?'),
  }
}

type StatementName =
  | 'since'
  | 'requests'
  | 'rules'
  | 'requestTotals'
  | 'ruleTotals'
  | 'requestsBetween'
  | 'rulesBetween'
  | 'addRequests'
  | 'addVerdicts'
  | 'advance'
  | 'lastOf'
  | 'newest'
  | 'pruneRequests'
  | 'pruneRules'
  | 'pruneWriters'

/*
 * Tallies in SQLite. A flush is one transaction; additions happen inside the statement, so that several
 * processes may share the file, and the figures read back in the same transaction include theirs.
 *
 * The calls are synchronous underneath, for about a quarter of a millisecond; the interface is not, so
 * that they can move to another thread without anybody noticing.
 */
import type { Statement } from 'better-sqlite3'
import { outcomes, verdicts } from '../core/decision.js'
import { windowKinds } from '../core/windows.js'
import type { StoredCounts, TallyArchive, WindowDelta, WindowRef } from '../tally/archive.js'
import { retentionMs } from '../tally/retention.js'
import type { TallySlots } from '../tally/slots.js'
import type { OpenDatabase } from './database.js'

interface CountRow {
  name: string
  verdict: string
  count: number
}

const pruneEveryMs = 3_600_000
const trustedAheadMs = 7 * 24 * 3_600_000

export class SqliteTallyArchive implements TallyArchive {
  readonly path: string
  readonly id: string
  readonly sinceMs: number
  readonly #database: OpenDatabase
  readonly #slots: TallySlots
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #wallMs: () => number
  #prunedAtMs = -Infinity

  constructor(database: OpenDatabase, slots: TallySlots, wallMs: () => number) {
    this.path = database.path
    this.#database = database
    this.#slots = slots
    this.#wallMs = wallMs
    this.#statements = prepareStatements(database)
    const meta = new Map(
      (this.#statements.meta.all() as { key: string; value: string }[]).map((row) => [
        row.key,
        row.value,
      ]),
    )
    this.id = meta.get('database_id') ?? 'unknown'
    this.sinceMs = Number(meta.get('since_ms') ?? wallMs())
  }

  read(wanted: readonly WindowRef[]): StoredCounts {
    const totals = this.#rowOf(
      this.#statements.requestTotals.all() as CountRow[],
      this.#statements.ruleTotals.all() as CountRow[],
    )
    const windows = wanted.map(({ window, startMs }) =>
      this.#rowOf(
        this.#statements.requests.all(window, startMs) as CountRow[],
        this.#statements.rules.all(window, startMs) as CountRow[],
      ),
    )
    return { totals, windows }
  }

  async add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts> {
    // Not awaited for anything: `async` makes a failure of SQLite a rejection.
    if (this.#database.isReplaced()) {
      throw new Error(`the file ${this.path} was removed or replaced under the app; start it anew`)
    }
    const nowMs = this.#wallMs()
    const isPruning = Math.abs(nowMs - this.#prunedAtMs) >= pruneEveryMs
    const exchange = this.#database.connection.transaction(() => {
      // Before adding: a clock that has just jumped ahead must not vouch for itself.
      const trustedMs = isPruning ? this.#trusted(nowMs) : nowMs
      for (const delta of deltas) this.#addDelta(delta)
      if (isPruning) this.#prune(trustedMs)
      return this.read(wanted)
    })
    const stored = deltas.length === 0 ? exchange.deferred() : exchange.immediate()
    if (isPruning) this.#prunedAtMs = nowMs
    return stored
  }

  sizeBytes(): number {
    return this.#database.sizeBytes()
  }

  async close(): Promise<void> {
    // The file is closed by whoever opened it: sessions are kept in it too.
  }

  #addDelta({ window, startMs, counts }: WindowDelta): void {
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

  /** Rows as they come from SQLite, laid into slots; rules that no longer exist are passed over. */
  #rowOf(requestRows: readonly CountRow[], ruleRows: readonly CountRow[]): Float64Array {
    const counts = this.#slots.blank()
    for (const { name, count } of requestRows) {
      const slot = (outcomes as readonly string[]).indexOf(name)
      if (slot !== -1) counts[slot] = count
    }
    for (const { name, verdict, count } of ruleRows) {
      const rule = this.#slots.ruleNames.indexOf(name)
      const index = (verdicts as readonly string[]).indexOf(verdict)
      if (rule !== -1 && index !== -1) counts[this.#slots.ofVerdict(rule, index)] = count
    }
    return counts
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
  #prune(nowMs: number): void {
    for (const window of windowKinds) {
      if (retentionMs[window] === Infinity) continue
      this.#statements.pruneRequests.run(window, nowMs - retentionMs[window])
      this.#statements.pruneRules.run(window, nowMs - retentionMs[window])
    }
  }
}

function prepareStatements({ connection }: OpenDatabase): Record<StatementName, Statement> {
  const add = 'DO UPDATE SET count = count + excluded.count'
  return {
    meta: connection.prepare('SELECT key, value FROM meta'),
    requests: connection.prepare(
      'SELECT outcome AS name, count FROM request_tallies WHERE window = ? AND start_ms = ?',
    ),
    rules: connection.prepare(
      'SELECT rule AS name, verdict, count FROM rule_tallies WHERE window = ? AND start_ms = ?',
    ),
    requestTotals: connection.prepare(
      `SELECT outcome AS name, sum(count) AS count FROM request_tallies
       WHERE window = 'week' GROUP BY outcome`,
    ),
    ruleTotals: connection.prepare(
      `SELECT rule AS name, verdict, sum(count) AS count FROM rule_tallies
       WHERE window = 'week' GROUP BY rule, verdict`,
    ),
    addRequests: connection.prepare(
      `INSERT INTO request_tallies VALUES (?, ?, ?, ?) ON CONFLICT (window, start_ms, outcome) ${add}`,
    ),
    addVerdicts: connection.prepare(
      `INSERT INTO rule_tallies VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (window, start_ms, rule, verdict) ${add}`,
    ),
    newest: connection.prepare(
      `SELECT max(start_ms) AS newestMs FROM request_tallies WHERE window = 'day'`,
    ),
    pruneRequests: connection.prepare(
      'DELETE FROM request_tallies WHERE window = ? AND start_ms < ?',
    ),
    pruneRules: connection.prepare('DELETE FROM rule_tallies WHERE window = ? AND start_ms < ?'),
  }
}

type StatementName =
  | 'meta'
  | 'requests'
  | 'rules'
  | 'requestTotals'
  | 'ruleTotals'
  | 'addRequests'
  | 'addVerdicts'
  | 'newest'
  | 'pruneRequests'
  | 'pruneRules'

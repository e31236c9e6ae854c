/*
 * Rule state that outlives the process: read at the start, and from then on saved every few seconds and at
 * the end, by the database's thread.
 *
 * Of several processes that share the file one saves a rule's state, see `lease`. All read it at the start:
 * with the clients shared out among them, what one has counted is the best guess for each. Whoever comes
 * into the lease later takes in what the other has left, and of each key the count that is higher.
 */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../core/clock.js'
import type { Logger } from '../core/logger.js'
import type { CompiledRule } from '../core/rule.js'
import type { OpenDatabase } from '../sqlite/database.js'
import type { Asked } from '../sqlite/asked.js'
import type { DatabaseThread } from '../sqlite/database-thread.js'
import { newHolder } from '../sqlite/lease.js'
import type { RuleStateRows } from '../sqlite/rule-states.js'
import { within } from '../sqlite/within.js'
import type { MemoryStore } from '../stores/memory/memory-store.js'
import { RuleStateNotes } from './rule-state-notes.js'
import { RuleStateSaver } from './rule-state-saver.js'
import { RuleStateStart } from './rule-state-start.js'
import { hasPassed, SavedRule } from './saved-rule.js'
import { StateReading } from './state-reading.js'

export interface RuleStatesParts {
  readonly store: MemoryStore
  readonly clock: Clock
  readonly logger: Logger
}

/** How often a lease is asked for that another process has. */
const askEveryMs = 2_000
/** How often an own one is renewed, where nothing is saved. */
const renewEveryMs = 6_000
const chunksReadAtOnce = 8
const closingMsMax = 5_000

const methods = ['acquire', 'renew', 'save', 'tidy', 'read', 'release', 'prune'] as const
type Rows = Asked<Pick<RuleStateRows, (typeof methods)[number]>>

export class RuleStates {
  readonly #parts: RuleStatesParts
  readonly #holder = newHolder()
  readonly #notes: RuleStateNotes
  readonly #start: RuleStateStart
  /** By rule name. */
  readonly #saved = new Map<string, SavedRule>()
  #rules: () => readonly CompiledRule[] = () => []
  #rows: Rows | null = null
  #saver: RuleStateSaver | null = null
  #askedAtMs = -Infinity
  #renewedAtMs = -Infinity
  #isPruned = false
  #working: Promise<void> | null = null
  #closing: Promise<void> | null = null

  constructor(parts: RuleStatesParts) {
    this.#parts = parts
    this.#notes = new RuleStateNotes(parts.logger)
    this.#start = new RuleStateStart(parts, this.#holder, this.#notes)
  }

  /** Reads at once what is stored, and takes over what nobody else has, see `RuleStateStart`. */
  restore(database: OpenDatabase, hashSeed: string, rules: readonly CompiledRule[]): void {
    const restored = this.#start.restore(database, hashSeed, rules)
    for (const saved of restored) this.#saved.set(saved.name, saved)
    this.#notes.standing(restored)
  }

  /** From now on through the thread, for the rules as they are each time: by now as they were changed before. */
  start(thread: DatabaseThread, rules: () => readonly CompiledRule[]): void {
    this.#rules = rules
    for (const saved of this.#start.decide(rules())) this.#saved.set(saved.name, saved)
    const rows = thread.service('ruleStates', methods)
    const { clock } = this.#parts
    const onLost = (saved: SavedRule) => this.#lose(saved)
    this.#renewedAtMs = clock.monotonicMs()
    this.#saver = new RuleStateSaver({ rows, holder: this.#holder.id, clock, onLost })
    this.#rows = rows
  }

  /** To be called about once a second; saves now and then, and never rejects. */
  tick(): Promise<void> {
    const rows = this.#rows
    if (rows === null || this.#closing !== null) return Promise.resolve()
    this.#working ??= this.#noted(() => this.#work(rows)).finally(() => (this.#working = null))
    return this.#working
  }

  /** Saves what is not saved yet, and lets others have the rules' state. May be called twice. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    this.#saver?.hurry()
    return this.#closing
  }

  async #end(): Promise<void> {
    const rows = this.#rows
    if (rows === null) return
    const last = this.#noted(() => this.#saveLast(rows))
    if ((await within(last, closingMsMax)) === 'late') this.#notes.closedEarly()
  }

  async #saveLast(rows: Rows): Promise<void> {
    await this.#working
    // What others have, or have left, is for whoever goes on.
    await this.#acquire(rows, ({ isAfresh, refusal }) => isAfresh || refusal === null)
    // Once more, for what is of no use by then.
    for (let round = 0; round < 2; round++) await this.#saver?.saveRound(this.#held())
    if (this.#saved.size > 0) await rows.release(this.#holder.id)
  }

  async #work(rows: Rows): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs()
    if (hasPassed(nowMs, this.#askedAtMs, askEveryMs)) {
      this.#askedAtMs = nowMs
      await this.#acquire(rows, () => true)
    }
    await this.#saver?.saveRound(this.#held().filter((saved) => saved.isRipe(nowMs)))
    await this.#renew(rows)
    if (this.#isPruned || this.#saved.size === 0) return
    this.#isPruned = !(await rows.prune(this.#parts.clock.wallMs()))
  }

  /** Does work that may fail, and says so. */
  async #noted(work: () => Promise<void>): Promise<void> {
    let failure: unknown = null
    try {
      await work()
    } catch (error) {
      failure = error
    }
    this.#notes.ended(failure)
  }

  /** What is known of the saving of a rule; anew where it has started afresh, or counts other keys. */
  #savedOf(rule: CompiledRule): SavedRule {
    const known = this.#saved.get(rule.name)
    const chunks = this.#parts.store.chunksOf(rule)
    if (known?.isOf(rule, chunks) === true) return known
    const isAfresh = known !== undefined && (known.isAfresh || known.generation !== null)
    const saved = new SavedRule(rule, chunks, isAfresh)
    this.#saved.set(rule.name, saved)
    return saved
  }

  /** Asks for the state of rules that another process had so far, or that have started afresh. */
  async #acquire(rows: Rows, isWanted: (saved: SavedRule) => boolean): Promise<void> {
    const persisted = this.#rules().filter(({ persist }) => persist)
    const names = new Set(persisted.map(({ name }) => name))
    for (const name of this.#saved.keys()) if (!names.has(name)) this.#saved.delete(name)
    for (const rule of persisted) {
      const saved = this.#savedOf(rule)
      if (saved.generation !== null || !isWanted(saved)) continue
      const { isAfresh } = saved
      const when = { isAfresh, isFirst: false, nowMs: this.#parts.clock.wallMs() }
      const acquired = await rows.acquire(this.#holder, saved.head, when)
      const isKnown = acquired.isOwn || saved.isRead
      const isToMerge = acquired.generation !== null && acquired.isKept && !isKnown
      if (isToMerge && !(await this.#merge(rows, saved, rule))) continue
      saved.begin(acquired)
    }
    this.#notes.standing([...this.#saved.values()])
  }

  /** Takes in what another process has left; false where this one has to end first. */
  async #merge(rows: Rows, saved: SavedRule, rule: CompiledRule): Promise<boolean> {
    const reading = new StateReading(saved.chunks, rule, 'more', this.#parts.clock)
    let fromId: number | undefined
    do {
      const piece = await rows.read(rule.name, chunksReadAtOnce, fromId)
      for (const _ of reading.takeIn(piece)) {
        await setImmediate()
        if (this.#closing !== null) return false
      }
      fromId = piece.nextId
      await this.#renew(rows)
    } while (fromId !== undefined)
    this.#notes.restored(rule.name, reading)
    return true
  }

  /** Where nothing was saved of late; what is saved keeps all leases. */
  async #renew(rows: Rows): Promise<void> {
    const held = this.#held()
    const nowMs = this.#parts.clock.monotonicMs()
    const lastMs = Math.max(this.#renewedAtMs, this.#saver?.savedAtMs ?? -Infinity)
    if (held.length === 0 || !hasPassed(nowMs, lastMs, renewEveryMs)) return
    const names = await rows.renew(this.#holder.id, this.#parts.clock.wallMs())
    this.#renewedAtMs = nowMs
    for (const saved of held) {
      if (!names.includes(saved.name)) this.#lose(saved)
    }
  }

  /** Those whose state is this process's to save. */
  #held(): SavedRule[] {
    return [...this.#saved.values()].filter(({ generation }) => generation !== null)
  }

  /** Another process has taken the state over, or the file was begun anew: the next turn will see. */
  #lose(saved: SavedRule): void {
    saved.generation = null
    this.#askedAtMs = -Infinity
  }
}

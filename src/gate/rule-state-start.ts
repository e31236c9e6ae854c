/*
 * Rule state at the start, on the thread that is to serve requests: what is stored is read before the first
 * of them, a second for some million keys, and what nobody else has is taken over.
 */
import type { Clock } from '../core/clock.js'
import type { CompiledRule } from '../core/rule.js'
import type { OpenDatabase } from '../sqlite/database.js'
import type { LeaseHolder } from '../sqlite/lease.js'
import {
  isSameHead,
  RuleStateRows,
  type RuleHead,
  type StoredPiece,
} from '../sqlite/rule-states.js'
import { isDamage } from '../sqlite/sound-database.js'
import type { MemoryStore } from '../stores/memory/memory-store.js'
import type { TableChunks } from '../stores/memory/table-chunks.js'
import type { RuleStateNotes } from './rule-state-notes.js'
import { headOf, SavedRule } from './saved-rule.js'
import { StateReading } from './state-reading.js'

const chunksReadAtOnce = 64

export interface RuleStateStartParts {
  readonly store: MemoryStore
  readonly clock: Clock
}

export class RuleStateStart {
  readonly #parts: RuleStateStartParts
  readonly #holder: LeaseHolder
  readonly #notes: RuleStateNotes
  /**
   * What is stored of rules that had another window than the configuration says. Either that was changed
   * since, or the rule while it ran, which is not known as yet.
   */
  readonly #undecided = new Map<string, { head: RuleHead; pieces: StoredPiece[] }>()

  constructor(parts: RuleStateStartParts, holder: LeaseHolder, notes: RuleStateNotes) {
    this.#parts = parts
    this.#holder = holder
    this.#notes = notes
  }

  /**
   * Reads what is stored of rules, those to be saved from now on being the answer. Throws only where the file
   * is damaged; what was read before counts all the same.
   */
  restore(database: OpenDatabase, hashSeed: string, rules: readonly CompiledRule[]): SavedRule[] {
    let failure: unknown = null
    const restored: SavedRule[] = []
    for (const rule of rules) {
      try {
        const saved = this.#restoreRule(new RuleStateRows(database, hashSeed), rule)
        if (saved !== null) restored.push(saved)
      } catch (error) {
        if (isDamage(error)) throw error
        failure = error
      }
    }
    this.#notes.ended(failure)
    return restored
  }

  /** Takes in what is of use of the rest, once it is known what the rules are; answers those. */
  decide(rules: readonly CompiledRule[]): SavedRule[] {
    const decided: SavedRule[] = []
    for (const rule of rules) {
      const stored = this.#undecided.get(rule.name)
      if (stored === undefined || !rule.persist || !isSameHead(stored.head, headOf(rule))) continue
      const saved = new SavedRule(rule, this.#parts.store.chunksOf(rule), false)
      this.#takeIn(saved.chunks, rule, stored.pieces)
      saved.isRead = true
      decided.push(saved)
    }
    this.#undecided.clear()
    return decided
  }

  #restoreRule(rows: RuleStateRows, rule: CompiledRule): SavedRule | null {
    const stored = rows.headOf(rule.name)
    if (stored !== null && hasOtherWindow(stored, headOf(rule))) {
      this.#undecided.set(rule.name, { head: stored, pieces: [...allPieces(rows, rule.name)] })
      return null
    }
    if (!rule.persist) return null
    const saved = new SavedRule(rule, this.#parts.store.chunksOf(rule), false)
    const when = { isAfresh: false, isFirst: true, nowMs: this.#parts.clock.wallMs() }
    const acquired = rows.acquire(this.#holder, saved.head, when)
    if (acquired.isKept) {
      saved.chunks.expect(acquired.rowCount, rule)
      this.#takeIn(saved.chunks, rule, allPieces(rows, rule.name))
    }
    saved.begin(acquired)
    return saved
  }

  #takeIn(chunks: TableChunks, rule: CompiledRule, pieces: Iterable<StoredPiece>): void {
    const reading = new StateReading(chunks, rule, 'stays', this.#parts.clock)
    for (const piece of pieces) for (const _ of reading.takeIn(piece));
    this.#notes.restored(rule.name, reading)
  }
}

/** Whether a head is another's but for its window. */
function hasOtherWindow(stored: RuleHead, head: RuleHead): boolean {
  const { windowMs } = head
  return stored.windowMs !== windowMs && isSameHead({ ...stored, windowMs }, head)
}

/** All that is stored of a rule, the newest first. */
function* allPieces(rows: RuleStateRows, rule: string): Generator<StoredPiece, void> {
  let fromId: number | undefined
  do {
    const piece = rows.read(rule, chunksReadAtOnce, fromId)
    yield piece
    fromId = piece.nextId
  } while (fromId !== undefined)
}

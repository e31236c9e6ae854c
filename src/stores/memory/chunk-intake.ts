/*
 * Takes written chunks into a table, wherever they come from: rows go where their hashes lead them. They go
 * beside what the table has, and only while there is room; nothing is evicted for them.
 */
import { blankMeasure, type Algorithm } from '../../core/algorithm.js'
import { noEntry, type EntryPool } from '../../core/entry-pool.js'
import { strictestOf } from '../../core/plans.js'
import type { CompiledRule } from '../../core/rule.js'
import type { RuleTime } from '../../core/rule-time.js'
import { DoubleWords, entryWords, formOf } from './chunk-form.js'
import type { KeyRows } from './key-rows.js'
import { hashWords, rowWordsOf, Slab } from './slab.js'

/** What became of rows that were read. */
export interface TakenIn {
  /** Keys that count from now on as it says there. */
  taken: number
  /** Keys that no longer count, or that the table knows better. */
  passedOver: number
  /** Keys that still count, and for which there was no room. */
  leftOut: number
}

export interface TakenBy {
  readonly rule: CompiledRule
  /** The rules' clock. */
  readonly nowMs: number
  /**
   * Of a key that the table knows already, what it has is newer and stays; or, where the chunks are another
   * process's, the one of the two that has used more.
   */
  readonly known: 'stays' | 'more'
  /** Added to. */
  readonly sum: TakenIn
}

export class ChunkIntake {
  readonly #algorithm: Algorithm
  readonly #rows: KeyRows
  readonly #entries: EntryPool | null
  readonly #time: RuleTime
  /** A state that is in no table yet. */
  readonly #scratch: Slab
  readonly #double = new DoubleWords()
  readonly #measure = blankMeasure()

  constructor(algorithm: Algorithm, rows: KeyRows, entries: EntryPool | null, time: RuleTime) {
    this.#algorithm = algorithm
    this.#rows = rows
    this.#entries = entries
    this.#time = time
    this.#scratch = new Slab(0, 1, entries)
  }

  /**
   * Takes in rows of a written chunk, from a position on (0 at first), so many at most.
   *
   * @returns where to go on, `words.length` at the end; -1 where these are no such rows.
   */
  take(words: Uint32Array, from: number, rowsMax: number, by: TakenBy): number {
    let at = from
    this.#time.read(by.nowMs)
    if (from === 0 && words[at++] !== formOf(this.#algorithm)) return -1
    for (let count = 0; count < rowsMax && at < words.length; count++) {
      const next = this.#endOfRow(words, at)
      if (next > words.length || words[at] === 0) return -1
      this.#takeRow(words, at, by)
      at = next
    }
    return at
  }

  #endOfRow(words: Uint32Array, at: number): number {
    return at + rowWordsOf(this.#algorithm) + entryWords * this.#entryCount(words, at)
  }

  #entryCount(words: Uint32Array, at: number): number {
    return this.#entries === null ? 0 : (words[at + hashWords] ?? 0)
  }

  #takeRow(words: Uint32Array, at: number, { rule, known, sum }: TakenBy): void {
    const rows = this.#rows
    const low = (words[at] as number) | 0
    const high = (words[at + 1] as number) | 0
    const isKnown = rows.find(low, high)
    if (isKnown && known === 'stays') {
      sum.passedOver++
    } else if (!this.#fits(isKnown, this.#entryCount(words, at), rule)) {
      sum.leftOut++
    } else if (isKnown ? this.#replace(words, at, rule) : this.#insert(words, at, rule)) {
      sum.taken++
    } else {
      sum.passedOver++
    }
  }

  #fits(isKnown: boolean, entryCount: number, { maxKeys, maxEntries }: CompiledRule): boolean {
    if (!isKnown && this.#rows.used >= maxKeys) return false
    return this.#entries === null || this.#entries.count + entryCount <= maxEntries
  }

  /** Makes a row of a written one; false where that no longer counts. */
  #insert(words: Uint32Array, at: number, rule: CompiledRule): boolean {
    const rows = this.#rows
    rows.insert((words[at] as number) | 0, (words[at + 1] as number) | 0)
    const { slab, at: stateAt } = rows
    this.#fill(slab, stateAt, words, at)
    rows.changes?.mark(slab.placeOf(stateAt))
    if (!this.#algorithm.isExpired(slab, stateAt, strictestOf(rule), this.#time)) return true
    this.#algorithm.release(slab, stateAt)
    rows.remove()
    return false
  }

  /** Puts a written state in the place of the one in the row that was found, if it has used more. */
  #replace(words: Uint32Array, at: number, rule: CompiledRule): boolean {
    const { slab, at: stateAt, changes } = this.#rows
    const scratch = this.#scratch
    this.#fill(scratch, hashWords, words, at)
    const isMore = this.#usageOf(scratch, hashWords, rule) > this.#usageOf(slab, stateAt, rule)
    if (!isMore) {
      this.#algorithm.release(scratch, hashWords)
      return false
    }
    this.#algorithm.release(slab, stateAt)
    const end = hashWords + this.#algorithm.wordCount
    slab.words.set(scratch.words.subarray(hashWords, end), stateAt)
    changes?.mark(slab.placeOf(stateAt))
    return true
  }

  #usageOf(slab: Slab, stateAt: number, rule: CompiledRule): number {
    const [measure, time, by] = [this.#measure, this.#time, strictestOf(rule)]
    this.#algorithm.judge(slab, stateAt, by, time, 1, measure)
    this.#algorithm.settle(slab, stateAt, by, time, 1, false, false, measure)
    return measure.usage
  }

  /** Writes a state over whatever is there. */
  #fill(slab: Slab, stateAt: number, words: Uint32Array, at: number): void {
    const from = at + hashWords
    for (let word = 0; word < this.#algorithm.wordCount; word++) {
      slab.words[stateAt + word] = words[from + word] as number
    }
    if (this.#entries !== null) this.#fillLog(this.#entries, slab, stateAt, words, at)
  }

  #fillLog(pool: EntryPool, slab: Slab, stateAt: number, words: Uint32Array, at: number): void {
    const end = this.#endOfRow(words, at)
    let first = noEntry
    let last = noEntry
    for (let from = at + rowWordsOf(this.#algorithm); from < end; from += entryWords) {
      const entry = pool.add(this.#double.read(words, from), words[from + 2] as number)
      if (last === noEntry) first = entry
      else pool.setNext(last, entry)
      last = entry
    }
    slab.words[stateAt] = first
    slab.words[stateAt + 1] = last
  }
}

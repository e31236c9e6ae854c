/*
 * The keys of one rule and their state: a map from key to row, and one slab of doubles. Row 0 is never
 * given out: it stays all zeros and stands for every key not in the table, so that a look leaves no trace.
 *
 * The table is bounded. At `maxKeys` room is made among the rows nearest to a hand that walks round the
 * table: what has expired goes first, then the key of least usage. Cost: one map look-up an attempt; the
 * hand frees a few expired rows for each new key, `sweep` the rest, never all rows in one go.
 */
import { blankMeasure } from '../../core/algorithm.js'
import type { CompiledRule } from '../../core/rule.js'
import type { KeyCounts } from '../store.js'

/** The offset in `state` of every key that the table does not hold. */
export const absentKey = 0

const rowsAtStart = 64
const neighbourCount = 8
const sweptRowsMax = 20_000

export class KeyTable {
  state: Float64Array
  readonly #slotCount: number
  readonly #rows = new Map<string, number>()
  readonly #keys: (string | null)[] = [null]
  readonly #freeRows: number[] = []
  readonly #scratch = blankMeasure()
  #hand = 1
  #evictedExpired = 0
  #evictedLive = 0

  constructor(slotCount: number) {
    this.#slotCount = slotCount
    this.state = new Float64Array(rowsAtStart * slotCount)
  }

  /** Where a key's state begins in `state`; `absentKey` where there is none. */
  find(key: string): number {
    const row = this.#rows.get(key)
    return row === undefined ? absentKey : row * this.#slotCount
  }

  /** A place for a key that is not in the table, all zeros. May move `state`. */
  claim(key: string, rule: CompiledRule, nowMs: number): number {
    if (this.#rows.size < rule.maxKeys) this.#sweepRows(2, rule, nowMs)
    // Twice, so that a table whose `maxKeys` was lowered shrinks with each new key.
    for (let turn = 0; turn < 2 && this.#rows.size >= rule.maxKeys; turn++) {
      this.#makeRoom(rule, nowMs)
    }
    const row = this.#freeRows.pop() ?? this.#keys.length
    const own = ownCopy(key)
    this.#keys[row] = own
    this.#rows.set(own, row)
    const at = row * this.#slotCount
    if (at + this.#slotCount > this.state.length) this.#grow()
    return at
  }

  forget(key: string): void {
    const row = this.#rows.get(key)
    if (row !== undefined) this.#free(row)
  }

  /** Frees expired rows: enough that the hand comes round within a window, at most 20,000 a call. */
  sweep(rule: CompiledRule, nowMs: number, elapsedMs: number): void {
    const share = Math.min(1, elapsedMs / rule.windowMs)
    const rowCount = Math.ceil((this.#keys.length - 1) * share)
    this.#sweepRows(Math.min(rowCount, sweptRowsMax), rule, nowMs)
  }

  counts(): KeyCounts {
    return {
      tracked: this.#rows.size,
      evictedExpired: this.#evictedExpired,
      evictedLive: this.#evictedLive,
    }
  }

  #sweepRows(rowCount: number, rule: CompiledRule, nowMs: number): void {
    for (let step = 0; step < rowCount && this.#rows.size > 0; step++) {
      const row = this.#advanceHand()
      if (this.#keys[row] === null || this.#keys[row] === undefined) continue
      if (!rule.algorithm.isExpired(this.state, row * this.#slotCount, rule, nowMs)) continue
      this.#free(row)
      this.#evictedExpired++
    }
  }

  /** Frees one row near the hand: an expired one, else of least usage, else the one free soonest. */
  #makeRoom(rule: CompiledRule, nowMs: number): void {
    let victim = 0
    let leastUsage = Infinity
    let soonestMs = Infinity
    for (let seen = 0, step = 0; seen < neighbourCount && step < this.#keys.length; step++) {
      const row = this.#advanceHand()
      if (this.#keys[row] === null || this.#keys[row] === undefined) continue
      seen++
      const at = row * this.#slotCount
      if (rule.algorithm.isExpired(this.state, at, rule, nowMs)) {
        this.#free(row)
        this.#evictedExpired++
        return
      }
      const measure = this.#scratch
      rule.algorithm.judge(this.state, at, rule, nowMs, 1, measure)
      rule.algorithm.settle(this.state, at, rule, nowMs, 1, false, true, measure)
      const usage = measure.allowed ? measure.usage : Infinity
      const isSooner = usage === leastUsage && measure.retryAfterMs < soonestMs
      if (victim === 0 || usage < leastUsage || isSooner) {
        victim = row
        leastUsage = usage
        soonestMs = measure.retryAfterMs
      }
    }
    if (victim === 0) return
    this.#free(victim)
    this.#evictedLive++
  }

  #advanceHand(): number {
    const row = this.#hand
    this.#hand = row + 1 < this.#keys.length ? row + 1 : 1
    return row
  }

  #free(row: number): void {
    this.#rows.delete(this.#keys[row] as string)
    this.#keys[row] = null
    this.#freeRows.push(row)
    const at = row * this.#slotCount
    this.state.fill(0, at, at + this.#slotCount)
  }

  #grow(): void {
    const larger = new Float64Array(this.state.length * 2)
    larger.set(this.state)
    this.state = larger
  }
}

/**
 * The same text in memory of its own. A key is often a piece of a longer text, a session id out of a
 * Cookie header, and V8 keeps the whole of it alive for as long as the piece.
 */
function ownCopy(key: string): string {
  const copy = Buffer.from(key, 'latin1').toString('latin1')
  return copy === key ? copy : Buffer.from(key, 'utf16le').toString('utf16le')
}

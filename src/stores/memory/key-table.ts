/*
 * The keys of one rule and their state, under a seeded hash: no text is kept.
 *
 * The table is bounded. At `maxKeys` room is made among the keys nearest to the new one: what has expired
 * goes first, then the key of least usage, and only where all of them are exhausted the one that is free
 * soonest. Expired keys are swept by a hand that walks round, a few buckets for each new key and more when
 * the gate ticks; no call ever visits all keys.
 */
import { blankMeasure, type Algorithm, type Measure } from '../../core/algorithm.js'
import { EntryPool } from '../../core/entry-pool.js'
import type { Key } from '../../core/key.js'
import type { CompiledRule } from '../../core/rule.js'
import { RuleTime } from '../../core/rule-time.js'
import type { KeyCounts } from '../store.js'
import { KeyRows } from './key-rows.js'
import { hashWords, Slab } from './slab.js'
import { TableChunks } from './table-chunks.js'

/**
 * Keys looked at when room is made: at least so many, which are those of the key's own two buckets, and at
 * most, in search of one that is not exhausted.
 */
const neighbourCountMin = 8
const neighbourCountMax = 128
const sweptBucketsMax = 10_000
const shrunkBucketsMax = 1_000

export class KeyTable {
  /** Where the key of the last `locate` or `claim` has its state; `blank` where it is not in the table. */
  state: Slab
  at = hashWords
  /** All zeros, for every key that the table does not hold: a look leaves no trace. */
  readonly blank: Slab
  /** The rule's time. */
  readonly time: RuleTime
  /** Between judging and settling: what the rule measured. One attempt asks a rule once. */
  readonly measure: Measure = blankMeasure()
  readonly #algorithm: Algorithm
  readonly #entries: EntryPool | null
  readonly #rows: KeyRows
  /** The bucket that was swept last, and how many are due for the hand to go round once a window. */
  #hand = 0
  #dueBuckets = 0
  #evictedExpired = 0
  #evictedLive = 0
  readonly #scratch: Measure = blankMeasure()
  #chunks: TableChunks | null = null

  constructor(rule: CompiledRule) {
    const { algorithm } = rule
    this.#algorithm = algorithm
    this.#entries = algorithm.keepsEntries ? new EntryPool() : null
    this.time = new RuleTime(rule.windowMs)
    this.#rows = new KeyRows(algorithm, this.#entries)
    this.blank = new Slab(0, 1, this.#entries)
    this.state = this.blank
  }

  /** Its rows in chunks, to be saved; from the first time on that they are asked for, changes are noted. */
  chunksFor(rule: CompiledRule): TableChunks {
    return (this.#chunks ??= new TableChunks(rule, this.#rows, this.#entries, this.time))
  }

  /** To be called for each change of the state of a key that was located or claimed. */
  touched(): void {
    this.#rows.changes?.mark(this.state.placeOf(this.at))
  }

  /** Finds a key's state, see `state` and `at`. */
  locate({ low, high }: Key): void {
    const rows = this.#rows
    if (rows.find(low, high)) {
      this.state = rows.slab
      this.at = rows.at
    } else {
      this.state = this.blank
      this.at = hashWords
    }
  }

  /** Makes a place, all zeros, for a key that is not in the table. */
  claim(key: Key, rule: CompiledRule): void {
    this.#sweepNext(rule)
    // Twice, so that a table whose `maxKeys` was lowered gets smaller with each new key.
    for (let turn = 0; turn < 2 && this.#rows.used >= rule.maxKeys; turn++) {
      this.#makeRoom(key, rule)
    }
    this.#makeEntryRoom(key, rule)
    this.#rows.insert(key.low, key.high)
    this.state = this.#rows.slab
    this.at = this.#rows.at
    // Sweeping and making room have looked at other keys.
    this.time.alignToClock()
  }

  /** Makes sure that a log can take one more entry. */
  reserveEntry(key: Key, rule: CompiledRule): void {
    if (!this.#isLogFull(rule)) return
    this.#makeEntryRoom(key, rule)
    this.#algorithm.align(this.state, this.at, this.time)
  }

  forget({ low, high }: Key): void {
    if (this.#rows.find(low, high)) this.#remove()
  }

  /**
   * Frees expired keys, so many buckets that the hand comes round within a window, and gives memory back
   * that is no longer needed; bounded for each call. Whether more is due.
   */
  sweep(rule: CompiledRule, elapsedMs: number): boolean {
    const rows = this.#rows
    const share = Math.min(1, elapsedMs / rule.windowMs)
    this.#dueBuckets = Math.min(this.#dueBuckets + share * rows.bucketCount, rows.bucketCount)
    const dueBuckets = Math.min(Math.ceil(this.#dueBuckets), sweptBucketsMax)
    for (let turn = 0; turn < dueBuckets; turn++) this.#sweepNext(rule)
    this.#dueBuckets -= dueBuckets
    const isMoreDue = this.#shrink(rule)
    return isMoreDue || this.#dueBuckets >= 1
  }

  counts(): KeyCounts {
    return {
      tracked: this.#rows.used,
      bytes: this.#rows.byteCount,
      evictedExpired: this.#evictedExpired,
      evictedLive: this.#evictedLive,
    }
  }

  /** Gives back buckets that are not needed, and says whether there may be more. */
  #shrink(rule: CompiledRule): boolean {
    const rows = this.#rows
    for (let turn = 0; turn < shrunkBucketsMax; turn++) {
      if (!rows.isSparse) return false
      // What is moved must not be expired: it may come to lie where the hand has just been.
      this.#freeExpired(rows.bucketCount - 1, rule)
      if (!rows.shrink()) return false
    }
    return true
  }

  #sweepNext(rule: CompiledRule): void {
    this.#hand = this.#hand + 1 < this.#rows.bucketCount ? this.#hand + 1 : 0
    this.#freeExpired(this.#hand, rule)
  }

  #freeExpired(bucket: number, rule: CompiledRule): void {
    const rows = this.#rows
    for (let number = 0; number < rows.rowsPerBucket; number++) {
      if (rows.visit(bucket, number) && this.#isExpired(rule)) {
        this.#remove()
        this.#evictedExpired++
      }
    }
  }

  /** Of the row that was gone to. */
  #isExpired(rule: CompiledRule): boolean {
    const { slab, at } = this.#rows
    return this.#algorithm.isExpired(slab, at, rule, this.time)
  }

  /** Frees the row that was gone to. */
  #remove(): void {
    const { slab, at } = this.#rows
    this.#algorithm.release(slab, at)
    this.#rows.remove()
  }

  /** Logs are bounded by their entries too; the key that is asked about is not the one to go. */
  #makeEntryRoom(key: Key, rule: CompiledRule): void {
    for (let turn = 0; turn < neighbourCountMax && this.#isLogFull(rule); turn++) {
      if (!this.#makeRoom(key, rule)) return
    }
  }

  /** By the rule as it is now: `maxEntries` may have been changed while it runs. */
  #isLogFull({ maxEntries }: CompiledRule): boolean {
    return this.#entries !== null && this.#entries.count >= maxEntries
  }

  /** Frees one key near the given one, which stays itself; false where there is none. */
  #makeRoom(key: Key, rule: CompiledRule): boolean {
    if (!this.#visitVictim(key, rule)) return false
    if (this.#isExpired(rule)) this.#evictedExpired++
    else this.#evictedLive++
    this.#remove()
    return true
  }

  /**
   * Goes to the row to free: from the key's own two buckets on, until enough neighbours have been seen, and
   * through empty buckets until there is one at all.
   */
  #visitVictim({ low, high }: Key, rule: CompiledRule): boolean {
    const rows = this.#rows
    const { rowsPerBucket, bucketCount } = rows
    const first = rows.bucketOf(low)
    let victimBucket = -1
    let victimNumber = 0
    let leastUsage = Infinity
    let soonestMs = Infinity
    let seen = 0
    for (let step = 0; step <= bucketCount && seen < neighbourCountMax; step++) {
      const bucket =
        step === 1 ? rows.bucketOf(high) : (first + Math.max(0, step - 1)) % bucketCount
      for (let number = 0; number < rowsPerBucket; number++) {
        if (!rows.visit(bucket, number) || rows.isAt(low, high)) continue
        seen++
        if (this.#isExpired(rule)) return true
        const measure = this.#measure(rule)
        const usage = measure.allowed ? measure.usage : Infinity
        const isSooner = usage === leastUsage && measure.retryAfterMs < soonestMs
        if (victimBucket === -1 || usage < leastUsage || isSooner) {
          victimBucket = bucket
          victimNumber = number
          leastUsage = usage
          soonestMs = measure.retryAfterMs
        }
      }
      if (seen >= neighbourCountMin && leastUsage < Infinity) break
    }
    return victimBucket !== -1 && rows.visit(victimBucket, victimNumber)
  }

  /** How the rule stands for the key of the row that was gone to. */
  #measure(rule: CompiledRule): Measure {
    const { slab, at } = this.#rows
    const measure = this.#scratch
    this.#algorithm.judge(slab, at, rule, this.time, 1, measure)
    this.#algorithm.settle(slab, at, rule, this.time, 1, false, !measure.allowed, measure)
    return measure
  }
}

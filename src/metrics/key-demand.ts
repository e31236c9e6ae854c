/*
 * What the keys of one rule ask for, declined attempts included: for each key and closed window the sum of
 * its costs, as a histogram since the start, and as quantiles over the last closed window and the current
 * one. Read beside the limit it says whom the limit stops. Windows turn as those of `WindowPair` do, whatever
 * the algorithm; one is observed when the next attempt or reading finds it closed.
 *
 * Where a window has more keys than `DemandTable` counts, the sum stays exact, the number of keys is an
 * estimate, and `max` is that of a sample.
 */
import type { Key } from '../core/key.js'
import { startOf } from '../core/rule-time.js'
import { demandBounds } from './demand-bounds.js'
import { DemandTable } from './demand-table.js'
import { turnAt } from './window-pair.js'

export interface DemandQuantiles {
  /** Each is right to one bucket: the bound that so many of the keys stayed within, or `max` if less. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

/** Since the start: keys by bucket, and the sum of all costs. */
export interface DemandTotals {
  readonly bucketKeys: Float64Array
  readonly sum: number
}

/** Of the last closed window and the current one: keys by bucket, and the most that one asked for. */
export interface RecentDemand {
  readonly keys: ArrayLike<number>
  readonly max: number
}

export class KeyDemand {
  #windowMs = 0
  /** Start of the current window. */
  #startMs = -Infinity
  readonly #table = new DemandTable()
  #cost = 0
  readonly #last = new Float64Array(demandBounds.length)
  #lastMax = 0
  readonly #totals = new Float64Array(demandBounds.length)
  #totalCost = 0

  /**
   * @param windowMs of the rule; another one than before begins a window at once.
   * @param nowMs the rules' clock at the attempt.
   */
  count(key: Key, cost: number, windowMs: number, nowMs: number): void {
    this.#follow(windowMs, nowMs)
    this.#table.add(key.low, key.high, cost)
    this.#cost += cost
  }

  /** Of all closed windows. */
  totals(windowMs: number, nowMs: number): DemandTotals {
    this.#follow(windowMs, nowMs)
    return { bucketKeys: this.#totals, sum: this.#totalCost }
  }

  recent(windowMs: number, nowMs: number): RecentDemand {
    this.#follow(windowMs, nowMs)
    const { bucketKeys, weight, max } = this.#table
    const keys = this.#last.map((last, bucket) => last + weight * (bucketKeys[bucket] as number))
    return { keys, max: Math.max(this.#lastMax, max) }
  }

  /** Over the last closed window and the current one; all 0 where nobody asked. */
  quantiles(windowMs: number, nowMs: number): DemandQuantiles {
    return quantilesOf(this.recent(windowMs, nowMs))
  }

  #follow(windowMs: number, nowMs: number): void {
    const isSameRule = windowMs === this.#windowMs
    const turn = isSameRule ? turnAt(nowMs - this.#startMs, windowMs) : 'afresh'
    if (turn === 'current') return
    this.#close()
    if (turn === 'afresh') {
      this.#last.fill(0)
      this.#lastMax = 0
    }
    this.#windowMs = windowMs
    this.#startMs = startOf(nowMs, windowMs)
  }

  /** Observes the window that is current. */
  #close(): void {
    const { bucketKeys, weight, max } = this.#table
    for (let bucket = 0; bucket < bucketKeys.length; bucket++) {
      const keys = weight * (bucketKeys[bucket] as number)
      this.#last[bucket] = keys
      this.#totals[bucket] = (this.#totals[bucket] as number) + keys
    }
    this.#lastMax = max
    this.#totalCost += this.#cost
    this.#cost = 0
    this.#table.clear()
  }
}

export function quantilesOf({ keys, max }: RecentDemand): DemandQuantiles {
  const counts = new Float64Array(keys)
  const count = counts.reduce((sum, each) => sum + each, 0)
  const quantile = (share: number) => Math.min(max, boundAt(counts, Math.ceil(share * count)))
  return {
    p50: quantile(0.5),
    p90: quantile(0.9),
    p99: quantile(0.99),
    p999: quantile(0.999),
    max,
  }
}

/** The bound of the bucket that holds the key of this rank, from 1; 0 where there is none. */
function boundAt(keys: Float64Array, rank: number): number {
  if (rank === 0) return 0
  let count = 0
  for (let bucket = 0; bucket < keys.length; bucket++) {
    count += keys[bucket] as number
    if (count >= rank) return demandBounds[bucket] as number
  }
  return Infinity
}

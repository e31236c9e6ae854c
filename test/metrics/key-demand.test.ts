/*
 * What keys ask for: each key and closed window once, beside a plain count; the buckets' edges; more keys
 * than are all counted; steps of the clock, and a window that is changed.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeyHasher } from '../../src/core/hash.js'
import { keyKinds, type Key } from '../../src/core/key.js'
import { bucketOf, demandBounds } from '../../src/metrics/demand-bounds.js'
import { demandKeysMax } from '../../src/metrics/demand-table.js'
import { KeyDemand } from '../../src/metrics/key-demand.js'

const windowMs = 60_000
const startMs = 1_760_000_040_000
const hasher = new KeyHasher(Buffer.alloc(544, 'a seed for the tests of demand'))

function key(text: string): Key {
  hasher.hash(keyKinds.given, text)
  return { kind: keyKinds.given, text, low: hasher.low, high: hasher.high }
}

const observations = (demand: KeyDemand, nowMs: number) => {
  const { bucketKeys, sum } = demand.totals(windowMs, nowMs)
  const byBound: Record<string, number> = {}
  for (const [bucket, keys] of bucketKeys.entries()) {
    if (keys > 0) byBound[String(demandBounds[bucket])] = keys
  }
  return { byBound, sum }
}

describe('the buckets', () => {
  it('are 1, 2, 3, 5, 7 times the powers of ten, to a million', () => {
    expect([...demandBounds].slice(0, 7)).toEqual([1, 2, 3, 5, 7, 10, 20])
    expect([...demandBounds].slice(-3)).toEqual([700_000, 1_000_000, Infinity])
    expect(demandBounds.length).toBe(32)
  })

  it('hold their upper bound', () => {
    for (const [bucket, bound] of demandBounds.entries()) {
      if (bound === Infinity) continue
      expect(bucketOf(bound)).toBe(bucket)
      expect(bucketOf(bound + 1)).toBe(bucket + 1)
    }
  })
})

describe('demand', () => {
  it('is observed for each key and window, once the window has closed', () => {
    const demand = new KeyDemand()
    for (let turn = 0; turn < 40; turn++) demand.count(key('a'), 1, windowMs, startMs + turn)
    demand.count(key('b'), 3, windowMs, startMs)
    demand.count(key('c'), 1, windowMs, startMs + 59_999)
    expect(observations(demand, startMs + 59_999)).toEqual({ byBound: {}, sum: 0 })
    const closed = { byBound: { 1: 1, 3: 1, 50: 1 }, sum: 44 }
    expect(observations(demand, startMs + windowMs)).toEqual(closed)
    demand.count(key('a'), 2, windowMs, startMs + windowMs)
    expect(observations(demand, startMs + windowMs)).toEqual(closed)
    const both = { byBound: { 1: 1, 2: 1, 3: 1, 50: 1 }, sum: 46 }
    expect(observations(demand, startMs + 10 * windowMs)).toEqual(both)
    expect(observations(demand, startMs + 20 * windowMs)).toEqual(both)
  })

  it('has quantiles over the last closed window and the current one', () => {
    const demand = new KeyDemand()
    const nothing = { p50: 0, p90: 0, p99: 0, p999: 0, max: 0 }
    expect(demand.quantiles(windowMs, startMs)).toEqual(nothing)
    for (let index = 0; index < 99; index++) demand.count(key(`${index}`), 2, windowMs, startMs)
    demand.count(key('much'), 421, windowMs, startMs)
    const found = { p50: 2, p90: 2, p99: 2, p999: 421, max: 421 }
    expect(demand.quantiles(windowMs, startMs)).toEqual(found)
    expect(demand.quantiles(windowMs, startMs + windowMs)).toEqual(found)
    demand.count(key('more'), 44, windowMs, startMs + windowMs)
    expect(demand.quantiles(windowMs, startMs + windowMs)).toEqual({ ...found, p99: 50 })
    expect(demand.quantiles(windowMs, startMs + 2 * windowMs)).toMatchObject({ p50: 44, max: 44 })
    expect(demand.quantiles(windowMs, startMs + 3 * windowMs)).toEqual(nothing)
  })

  it('of any attempts, in any order, is that of a plain count', () => {
    const attempt = fc.record({
      name: fc.integer({ min: 0, max: 300 }),
      cost: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 2_000_000 })),
      laterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: windowMs })),
    })
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 400 }), (attempts) => {
        const demand = new KeyDemand()
        const windows = new Map<number, Map<number, number>>()
        let nowMs = startMs
        let sum = 0
        for (const { name, cost, laterMs } of attempts) {
          nowMs += laterMs
          sum += cost
          demand.count(key(`${name}`), cost, windowMs, nowMs)
          const sums = windows.get(Math.floor(nowMs / windowMs)) ?? new Map<number, number>()
          windows.set(Math.floor(nowMs / windowMs), sums)
          sums.set(name, (sums.get(name) ?? 0) + cost)
        }
        const expected = new Float64Array(demandBounds.length)
        for (const sums of windows.values()) {
          for (const asked of sums.values()) {
            const bucket = bucketOf(asked)
            expected[bucket] = (expected[bucket] ?? 0) + 1
          }
        }
        const totals = demand.totals(windowMs, nowMs + windowMs)
        expect([...totals.bucketKeys]).toEqual([...expected])
        expect(totals.sum).toBe(sum)
      }),
    )
  })

  it('of as many keys as are all counted is exact', () => {
    const demand = new KeyDemand()
    for (let turn = 0; turn < 2; turn++) {
      for (let index = 0; index < demandKeysMax; index++) {
        demand.count(key(`${index}`), 1, windowMs, startMs)
      }
    }
    expect(observations(demand, startMs + windowMs)).toEqual({
      byBound: { 2: demandKeysMax },
      sum: 2 * demandKeysMax,
    })
  })

  it('of more keys is that of a sample, its sum exact, its memory bounded', () => {
    const demand = new KeyDemand()
    const keyCount = 500_000
    const windowsOf = (start: number) => {
      for (let index = 0; index < keyCount; index++) {
        // Every tenth asks for five.
        demand.count(key(`${index}`), index % 10 === 0 ? 5 : 1, windowMs, start)
      }
    }
    windowsOf(startMs)
    windowsOf(startMs + windowMs)
    const { byBound, sum } = observations(demand, startMs + 2 * windowMs)
    expect(sum).toBe(2 * keyCount * 1.4)
    expect(byBound['1']).toBeGreaterThan(0.95 * 2 * 0.9 * keyCount)
    expect(byBound['1']).toBeLessThan(1.05 * 2 * 0.9 * keyCount)
    expect(byBound['5']).toBeGreaterThan(0.9 * 2 * 0.1 * keyCount)
    expect(byBound['5']).toBeLessThan(1.1 * 2 * 0.1 * keyCount)
    const { p50, p90, p99 } = demand.quantiles(windowMs, startMs + 2 * windowMs)
    expect([p50, p99]).toEqual([1, 5])
    expect([1, 5]).toContain(p90)
    // A quiet window later all are counted again, one halving a window.
    for (let window = 2; window < 12; window++) {
      demand.count(key('alone'), 1, windowMs, startMs + window * windowMs)
    }
    const before = observations(demand, startMs + 13 * windowMs).byBound['1'] ?? 0
    for (let index = 0; index < 100; index++) {
      demand.count(key(`${index}`), 1, windowMs, startMs + 13 * windowMs)
    }
    expect(observations(demand, startMs + 14 * windowMs).byBound['1']).toBe(before + 100)
  })

  it('goes on with the current window when the clock steps back a little, and begins anew when far', () => {
    const demand = new KeyDemand()
    demand.count(key('a'), 1, windowMs, startMs)
    demand.count(key('a'), 1, windowMs, startMs - windowMs)
    expect(observations(demand, startMs + 10).byBound).toEqual({})
    demand.count(key('a'), 1, windowMs, startMs - 3 * windowMs)
    expect(observations(demand, startMs - 3 * windowMs).byBound).toEqual({ 2: 1 })
    demand.count(key('a'), 1, windowMs, NaN)
    demand.count(key('a'), 1, windowMs, startMs)
    expect(demand.totals(windowMs, startMs + windowMs).sum).toBe(5)
  })

  it('closes its window where the rule gets another length, and loses nothing', () => {
    const demand = new KeyDemand()
    demand.count(key('a'), 4, windowMs, startMs)
    demand.count(key('a'), 2, 1_000, startMs + 500)
    expect(demand.quantiles(1_000, startMs + 500).max).toBe(2)
    expect(demand.totals(1_000, startMs + 1_000).sum).toBe(6)
  })
})

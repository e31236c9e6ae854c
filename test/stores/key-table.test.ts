/*
 * The table of one rule's keys and its segments: every key keeps its state over growth, splits, evictions
 * of others and sweeps; a new key begins with zeros; the bound holds. A Map is the model.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithms } from '../../src/core/algorithms/index.js'
import type { Algorithm } from '../../src/core/algorithm.js'
import { KeyHasher, type HashOut } from '../../src/core/hash.js'
import { compileRule, type CompiledRule, type RuleOptions } from '../../src/core/rule.js'
import { KeyTable } from '../../src/stores/memory/key-table.js'
import { noSlot, Segment } from '../../src/stores/memory/segment.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import { epochMs, ipRule } from '../support/units/limits.js'

/** The same at every run, so that how far a segment fills is too. */
const seed = Buffer.from(Array.from({ length: 544 }, (_, index) => (index * 167 + 13) % 256))
const hasher = new KeyHasher(seed)

function hashOf(text: string | number): HashOut {
  const out = { low: 0, high: 0 }
  hasher.hash(3, String(text), out)
  return out
}

const ruleOf = (fields: Partial<RuleOptions> = {}) => compileRule(ipRule(fields), 0)

function tableAt(rule: CompiledRule, nowMs = epochMs): KeyTable {
  const table = new KeyTable(rule)
  table.time.read(nowMs)
  return table
}

/** Whether the table holds the key; afterwards `state` and `slot` are the key's. */
function holds(table: KeyTable, hash: HashOut): boolean {
  table.locate(hash)
  return table.state !== table.blank
}

/** The words of a key's row, the half with them. */
function rowOf({ state, slot }: KeyTable, { wordCount, hasHalf }: Algorithm): number[] {
  const words = state.words.subarray(slot * wordCount, (slot + 1) * wordCount)
  return hasHalf ? [...words, state.halves[slot] ?? NaN] : [...words]
}

/** Counts a cost for the key that was located or claimed last. */
function count({ state, slot, time, measure }: KeyTable, rule: CompiledRule, cost: number): void {
  rule.algorithm.judge(state, slot, rule, time, cost, measure)
  rule.algorithm.settle(state, slot, rule, time, cost, true, false, measure)
}

function usageOf({ state, slot, time, measure }: KeyTable, rule: CompiledRule): number {
  rule.algorithm.judge(state, slot, rule, time, 1, measure)
  return measure.usage
}

const isBlank = (table: KeyTable) =>
  [...table.blank.words, ...table.blank.halves].every((word) => word === 0)

describe('key table', () => {
  const names = Array.from({ length: 40 }, (_, n) => `key ${n}`)
  const command = fc.record({
    key: fc.constantFrom(...names),
    act: fc.constantFrom('count', 'count', 'count', 'forget', 'look', 'sweep', 'wait'),
    cost: fc.integer({ min: 1, max: 3 }),
  })

  it.each(algorithmNames)('%s: is a Map with zeros for what is not there', (algorithm) => {
    const rule = ruleOf({ limit: 100, window: '1h', algorithm })
    const commands = fc.array(command, { maxLength: 200 })
    fc.assert(
      fc.property(commands, (list) => {
        const table = tableAt(rule)
        const model = new Map<string, number>()
        const claimed: number[] = []
        let nowMs = epochMs
        for (const { key, act, cost } of list) {
          const hash = hashOf(key)
          if (act === 'forget') {
            table.forget(hash)
            model.delete(key)
          } else if (act === 'sweep') {
            table.sweep(rule, 3_600_000)
          } else if (act === 'wait') {
            // By then nothing counts, not even an average.
            nowMs += 100 * 3_600_000
            table.time.read(nowMs)
            table.sweep(rule, 3_600_000)
            model.clear()
          } else if (act === 'count') {
            if (!holds(table, hash)) {
              table.claim(hash, rule)
              claimed.push(...rowOf(table, rule.algorithm))
            }
            count(table, rule, cost)
            model.set(key, (model.get(key) ?? 0) + cost)
          }
          expect(table.counts().tracked).toBe(model.size)
          for (const name of names) {
            expect(holds(table, hashOf(name))).toBe(model.has(name))
            expect(usageOf(table, rule)).toBeCloseTo(model.get(name) ?? 0, 9)
          }
        }
        expect(claimed.every((word) => word === 0)).toBe(true)
        expect(isBlank(table)).toBe(true)
        expect(table.counts().evictedLive).toBe(0)
      }),
      { numRuns: 40 },
    )
  })

  it.each(algorithmNames)(
    '%s: keeps the state of every key over growth to 150,000',
    (algorithm) => {
      const rule = ruleOf({ limit: 1_000, algorithm })
      const table = tableAt(rule)
      const costOf = (n: number) => 1 + (n % 997)
      const hashes = Array.from({ length: 150_000 }, (_, n) => hashOf(n))
      for (const [n, hash] of hashes.entries()) {
        table.claim(hash, rule)
        count(table, rule, costOf(n))
      }
      const wrong = hashes.filter(
        (hash, n) => !holds(table, hash) || usageOf(table, rule) !== costOf(n),
      )
      expect(wrong).toEqual([])
      expect(table.counts()).toEqual({ tracked: 150_000, evictedExpired: 0, evictedLive: 0 })
      expect(holds(table, hashOf('another'))).toBe(false)
      for (const hash of hashes.slice(0, 140_000)) table.forget(hash)
      expect(table.counts().tracked).toBe(10_000)
      expect(hashes.filter((hash) => holds(table, hash))).toEqual(hashes.slice(140_000))
      expect(isBlank(table)).toBe(true)
    },
  )

  it('is a Map over a long random run with expiry, across splits', () => {
    const rule = ruleOf({ limit: 1_000, window: '1m', algorithm: 'fixed-window' })
    const table = tableAt(rule)
    const model = new Map<number, number>()
    let random = 42
    const next = (below: number) => {
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((random / 2 ** 32) * below)
    }
    for (let window = 0; window < 3; window++) {
      table.time.read(epochMs + window * 60_000)
      model.clear()
      for (let step = 0; step < 150_000; step++) {
        const key = next(60_000)
        const hash = hashOf(key)
        if (next(10) === 0) {
          table.forget(hash)
          model.delete(key)
          continue
        }
        if (!holds(table, hash)) table.claim(hash, rule)
        count(table, rule, 1)
        model.set(key, (model.get(key) ?? 0) + 1)
      }
      const wrong = Array.from({ length: 60_000 }, (_, key) => key).filter((key) => {
        table.locate(hashOf(key))
        return usageOf(table, rule) !== (model.get(key) ?? 0)
      })
      expect(wrong).toEqual([])
    }
    for (let turn = 0; turn < 10; turn++) table.sweep(rule, 60_000)
    expect(table.counts()).toMatchObject({ tracked: model.size, evictedLive: 0 })
  })

  it('takes a place that was left rather than grow for ever', () => {
    const rule = ruleOf({ maxKeys: 8 })
    const table = tableAt(rule)
    let wordsMost = 0
    for (let n = 0; n < 100_000; n++) {
      table.claim(hashOf(n), rule)
      count(table, rule, 1)
      wordsMost = Math.max(wordsMost, table.state.words.length)
    }
    expect(table.counts()).toEqual({ tracked: 8, evictedExpired: 0, evictedLive: 99_992 })
    expect(wordsMost).toBeLessThanOrEqual(64 * rule.algorithm.wordCount)
  })

  it('forgetting twice, or what is not there, is nothing', () => {
    const rule = ruleOf()
    const table = tableAt(rule)
    table.claim(hashOf('a'), rule)
    for (const key of ['a', 'a', 'b']) table.forget(hashOf(key))
    expect(table.counts().tracked).toBe(0)
    table.claim(hashOf('c'), rule)
    count(table, rule, 2)
    table.claim(hashOf('d'), rule)
    count(table, rule, 3)
    expect(table.counts().tracked).toBe(2)
    table.locate(hashOf('c'))
    expect(usageOf(table, rule)).toBe(2)
  })

  it('gives the entries of a log back when its key goes', () => {
    const rule = ruleOf({ algorithm: 'rolling-window', limit: 10 })
    const table = tableAt(rule)
    for (const key of ['a', 'b', 'c']) {
      table.claim(hashOf(key), rule)
      for (let turn = 0; turn < 3; turn++) {
        table.time.read(epochMs + turn)
        count(table, rule, 1)
      }
    }
    expect(table.blank.entries?.count).toBe(9)
    table.forget(hashOf('b'))
    expect(table.blank.entries?.count).toBe(6)
    table.time.read(epochMs + 120_000)
    table.sweep(rule, 120_000)
    expect(table.blank.entries?.count).toBe(0)
  })

  it('keeps the hand within bounds while segments grow and split under it', () => {
    const rule = ruleOf({ algorithm: 'fixed-window' })
    const table = tableAt(rule)
    for (let n = 0; n < 60_000; n++) {
      table.claim(hashOf(n), rule)
      count(table, rule, 1)
      if (n % 5_000 === 0) table.sweep(rule, 7_000)
    }
    expect(table.counts().tracked).toBe(60_000)
    table.time.read(epochMs + 60_000)
    for (let second = 0; second < 120; second++) table.sweep(rule, 1_000)
    expect(table.counts()).toEqual({ tracked: 0, evictedExpired: 60_000, evictedLive: 0 })
  })
})

describe('segment', () => {
  const algorithm = algorithms.get('sliding-window') as Algorithm
  const wordOf = (segment: Segment, slot: number) => segment.words[slot * algorithm.wordCount]

  it('fills to nine tenths before it is full, and keeps the state of keys that make way', () => {
    const segment = new Segment(1_024, algorithm, 0, null)
    const hashes: HashOut[] = []
    for (let n = 0; ; n++) {
      const hash = hashOf(n)
      const slot = segment.insert(hash.low, hash.high)
      if (slot === noSlot) break
      expect(wordOf(segment, slot)).toBe(0)
      segment.words[slot * algorithm.wordCount] = n + 1
      segment.halves[slot] = n + 1
      hashes.push(hash)
    }
    expect(segment.used).toBe(hashes.length)
    expect(hashes.length).toBeGreaterThan(0.9 * 1_024)
    for (const [n, { low, high }] of hashes.entries()) {
      const slot = segment.find(low, high)
      expect([wordOf(segment, slot), segment.halves[slot]]).toEqual([n + 1, n + 1])
    }
  })

  it('finds nothing that is not there, and clears what it frees', () => {
    const segment = new Segment(16, algorithm, 0, null)
    const { low, high } = hashOf('a')
    expect(segment.find(low, high)).toBe(noSlot)
    const slot = segment.insert(low, high)
    segment.words.fill(7, slot * algorithm.wordCount, (slot + 1) * algorithm.wordCount)
    segment.halves[slot] = 7
    segment.remove(slot)
    expect([...segment.words, ...segment.halves].every((word) => word === 0)).toBe(true)
    expect(segment.find(low, high)).toBe(noSlot)
    expect(segment.used).toBe(0)
  })

  it('tells keys apart that share one word of their hash', () => {
    const segment = new Segment(16, algorithm, 0, null)
    const slots = [segment.insert(5, 9), segment.insert(5, 10), segment.insert(21, 9)]
    expect(new Set(slots).size).toBe(3)
    expect([segment.find(5, 9), segment.find(5, 10), segment.find(21, 9)]).toEqual(slots)
    expect(segment.find(21, 10)).toBe(noSlot)
  })

  it('copies the state with the key that it adopts, and says where there is no room', () => {
    const from = new Segment(16, algorithm, 0, null)
    const into = new Segment(16, algorithm, 1, null)
    let adoptedCount = 0
    for (let n = 0; n < 100; n++) {
      const { low, high } = hashOf(n)
      const slot = from.insert(low, high)
      from.words[slot * algorithm.wordCount] = n + 1
      from.halves[slot] = n + 1
      const isAdopted = into.adopt(from, slot)
      from.remove(slot)
      const own = into.find(low, high)
      expect(own === noSlot).toBe(!isAdopted)
      if (!isAdopted) continue
      adoptedCount++
      expect([wordOf(into, own), into.halves[own]]).toEqual([n + 1, n + 1])
    }
    expect(adoptedCount).toBe(into.used)
    expect(adoptedCount).toBe(16)
  })
})

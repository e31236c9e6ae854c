/*
 * The table of one rule's keys: every key keeps its state over growth, evictions of others and sweeps; a
 * new key begins with zeros; the bound holds. A Map is the model.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Algorithm } from '../../src/core/algorithm.js'
import { KeyHasher } from '../../src/core/hash.js'
import { keyKinds, KeyMaker, type Key } from '../../src/core/key.js'
import { compileRule, type CompiledRule, type RuleOptions } from '../../src/core/rule.js'
import { KeyTable } from '../../src/stores/memory/key-table.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import { epochMs, ipRule } from '../support/units/limits.js'

/** The same at every run, so that how far the table fills is too. */
const seed = Buffer.from(Array.from({ length: 544 }, (_, index) => (index * 167 + 13) % 256))
const maker = new KeyMaker(new KeyHasher(seed))

const keyOf = (text: string | number): Key => maker.of(keyKinds.given, String(text))

const ruleOf = (fields: Partial<RuleOptions> = {}) => compileRule(ipRule(fields), 0)

function tableAt(rule: CompiledRule, nowMs = epochMs): KeyTable {
  const table = new KeyTable(rule)
  table.time.read(nowMs)
  return table
}

/** Whether the table holds the key; afterwards `state` and `at` are the key's. */
function holds(table: KeyTable, key: Key): boolean {
  table.locate(key)
  return table.state !== table.blank
}

/** The words of a key's state. */
function rowOf({ state, at }: KeyTable, { wordCount }: Algorithm): number[] {
  return [...state.words.subarray(at, at + wordCount)]
}

/** Counts a cost for the key that was located or claimed last. */
function count({ state, at, time, measure }: KeyTable, rule: CompiledRule, cost: number): void {
  rule.algorithm.judge(state, at, rule, time, cost, measure)
  rule.algorithm.settle(state, at, rule, time, cost, true, false, measure)
}

function usageOf({ state, at, time, measure }: KeyTable, rule: CompiledRule): number {
  rule.algorithm.judge(state, at, rule, time, 1, measure)
  rule.algorithm.settle(state, at, rule, time, 1, false, false, measure)
  return measure.usage
}

const isBlank = (table: KeyTable) => [...table.blank.words].every((word) => word === 0)

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
          const hash = keyOf(key)
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
            expect(holds(table, keyOf(name))).toBe(model.has(name))
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
      const hashes = Array.from({ length: 150_000 }, (_, n) => keyOf(n))
      for (const [n, hash] of hashes.entries()) {
        table.claim(hash, rule)
        count(table, rule, costOf(n))
      }
      const wrong = hashes.filter(
        (hash, n) => !holds(table, hash) || usageOf(table, rule) !== costOf(n),
      )
      expect(wrong).toEqual([])
      expect(table.counts()).toMatchObject({ tracked: 150_000, evictedExpired: 0, evictedLive: 0 })
      expect(holds(table, keyOf('another'))).toBe(false)
      for (const hash of hashes.slice(0, 140_000)) table.forget(hash)
      expect(table.counts().tracked).toBe(10_000)
      expect(hashes.filter((hash) => holds(table, hash))).toEqual(hashes.slice(140_000))
      expect(isBlank(table)).toBe(true)
    },
  )

  it('is a Map over a long random run with expiry', () => {
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
        const hash = keyOf(key)
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
        table.locate(keyOf(key))
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
      table.claim(keyOf(n), rule)
      count(table, rule, 1)
      wordsMost = Math.max(wordsMost, table.state.words.length)
    }
    expect(table.counts()).toMatchObject({ tracked: 8, evictedExpired: 0, evictedLive: 99_992 })
    expect(wordsMost).toBeLessThanOrEqual(256)
  })

  it('forgetting twice, or what is not there, is nothing', () => {
    const rule = ruleOf()
    const table = tableAt(rule)
    table.claim(keyOf('a'), rule)
    for (const key of ['a', 'a', 'b']) table.forget(keyOf(key))
    expect(table.counts().tracked).toBe(0)
    table.claim(keyOf('c'), rule)
    count(table, rule, 2)
    table.claim(keyOf('d'), rule)
    count(table, rule, 3)
    expect(table.counts().tracked).toBe(2)
    table.locate(keyOf('c'))
    expect(usageOf(table, rule)).toBe(2)
  })

  it('gives the entries of a log back when its key goes', () => {
    const rule = ruleOf({ algorithm: 'rolling-window', limit: 10 })
    const table = tableAt(rule)
    for (const key of ['a', 'b', 'c']) {
      table.claim(keyOf(key), rule)
      for (let turn = 0; turn < 3; turn++) {
        table.time.read(epochMs + turn)
        count(table, rule, 1)
      }
    }
    expect(table.blank.entries?.count).toBe(9)
    table.forget(keyOf('b'))
    expect(table.blank.entries?.count).toBe(6)
    table.time.read(epochMs + 120_000)
    table.sweep(rule, 120_000)
    expect(table.blank.entries?.count).toBe(0)
  })

  it('keeps the hand within bounds while the table grows under it', () => {
    const rule = ruleOf({ algorithm: 'fixed-window' })
    const table = tableAt(rule)
    for (let n = 0; n < 60_000; n++) {
      table.claim(keyOf(n), rule)
      count(table, rule, 1)
      if (n % 5_000 === 0) table.sweep(rule, 7_000)
    }
    expect(table.counts().tracked).toBe(60_000)
    table.time.read(epochMs + 60_000)
    for (let second = 0; second < 120; second++) table.sweep(rule, 1_000)
    expect(table.counts()).toMatchObject({ tracked: 0, evictedExpired: 60_000, evictedLive: 0 })
  })
})

/*
 * The store in this process, through the suite of all stores; and what only it promises: answers at once,
 * and no bytes left behind by a key that is gone.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileRule, compileRules } from '../../src/core/rule.js'
import { RuleLimiter } from '../../src/limiter/limiter.js'
import { absentKey, KeyTable } from '../../src/stores/memory/key-table.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { manualClock } from '../../src/testing/index.js'
import { epochMs, ipRule, someone } from '../support/units/limits.js'
import { storeContract } from './store-contract.js'

storeContract('memory store', (rules, clock) => new MemoryStore(rules, clock))

describe('memory store', () => {
  it('answers at once, never with a promise', () => {
    const options = [ipRule()]
    const rules = compileRules(options)
    const limiter = new RuleLimiter(
      options,
      rules,
      new MemoryStore(rules, manualClock(epochMs)),
      null,
    )
    const answers = [
      limiter.decide(someone),
      limiter.peek(someone),
      limiter.attempt(someone),
      limiter.reset('ip', someone),
      limiter.adjust('ip', someone, 1),
      limiter.close(),
    ]
    expect(answers.some((answer) => answer instanceof Promise)).toBe(false)
  })

  it('refuses a rule that it was not made for, by number', () => {
    const store = new MemoryStore(compileRules([ipRule()]), manualClock(epochMs))
    expect(() => store.keyCounts(compileRule(ipRule(), 7))).toThrow('received index 7')
  })
})

describe('key table', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l']
  const rule = compileRule(ipRule({ maxKeys: 8 }), 0)
  const { slotCount } = rule.algorithm
  const nowMs = epochMs

  it('holds what it was told and gives out zeros for a new key, whatever came and went', () => {
    const commands = fc.array(fc.record({ key: fc.constantFrom(...names), forget: fc.boolean() }), {
      maxLength: 60,
    })
    fc.assert(
      fc.property(commands, (list) => {
        const wide = compileRule(ipRule({ maxKeys: 1_000 }), 0)
        const table = new KeyTable(slotCount)
        const model = new Map<string, number>()
        let mark = 1
        const claimed: number[] = []
        for (const { key, forget } of list) {
          if (forget) {
            table.forget(key)
            model.delete(key)
          } else if (table.find(key) === absentKey) {
            const at = table.claim(key, wide, nowMs)
            claimed.push(...table.state.subarray(at, at + slotCount))
            table.state.set([nowMs, mark, 0], at)
            model.set(key, mark++)
          }
          expect(table.counts().tracked).toBe(model.size)
          for (const name of names) {
            const at = table.find(name)
            expect(at === absentKey ? undefined : table.state[at + 1]).toBe(model.get(name))
          }
        }
        expect(claimed.every((value) => value === 0)).toBe(true)
        expect([...table.state.subarray(0, slotCount)]).toEqual([0, 0, 0])
      }),
    )
  })

  it('keeps every key over growth', () => {
    const wide = compileRule(ipRule({ maxKeys: 10_000 }), 0)
    const table = new KeyTable(slotCount)
    for (let n = 1; n <= 5_000; n++) {
      const at = table.claim(String(n), wide, nowMs)
      table.state.set([nowMs, n, 0], at)
    }
    for (let n = 1; n <= 5_000; n++) expect(table.state[table.find(String(n)) + 1]).toBe(n)
  })

  it('takes a place that was left rather than grow for ever', () => {
    const table = new KeyTable(slotCount)
    for (let n = 0; n < 100_000; n++) {
      const at = table.claim(String(n), rule, nowMs)
      table.state.set([nowMs, 1, 0], at)
    }
    expect(table.counts()).toEqual({ tracked: 8, evictedExpired: 0, evictedLive: 99_992 })
    expect(table.state.length).toBeLessThanOrEqual(64 * slotCount)
  })

  it('forgetting twice, or what is not there, is nothing', () => {
    const table = new KeyTable(slotCount)
    table.claim('a', rule, nowMs)
    table.forget('a')
    table.forget('a')
    table.forget('b')
    expect(table.counts().tracked).toBe(0)
    expect(table.claim('c', rule, nowMs)).not.toBe(absentKey)
    expect(table.claim('d', rule, nowMs)).not.toBe(table.find('c'))
  })
})

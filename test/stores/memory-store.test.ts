/*
 * The store in this process, through the suite of all stores; and what only it promises: answers at once,
 * and no bytes left behind by a key that is gone.
 */
import { describe, expect, it } from 'vitest'
import { compileRule, compileRules } from '../../src/core/rule.js'
import type { Decision } from '../../src/core/decision.js'
import { RuleLimiter } from '../../src/limiter/limiter.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { manualClock } from '../../src/testing/index.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import { benchOf, epochMs, ipRule, someone } from '../support/units/limits.js'
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

describe('memory store: a sweep', () => {
  const facts = (n: number) => ({ keys: { ip: String(n) } })

  it.each(algorithmNames)(
    '%s: frees expired keys within two windows, without traffic',
    (algorithm) => {
      const clock = manualClock(epochMs)
      const options = [ipRule({ limit: 5, window: '10s', algorithm })]
      const rules = compileRules(options)
      const store = new MemoryStore(rules, clock)
      const limiter = new RuleLimiter(options, rules, store, null)
      for (let n = 0; n < 20_000; n++) void limiter.decide(facts(n))
      // Expired after W (rolling, fixed), 2 W (sliding), W / L (bucket), W · ln 2^20 (exponential).
      clock.advance(algorithm === 'exponential' ? 150_000 : 20_000)
      store.sweep()
      for (let second = 0; second < 20; second++) {
        clock.advance(1_000)
        store.sweep()
      }
      expect(limiter.keyCounts(limiter.rule('ip'))).toMatchObject({
        tracked: 0,
        evictedExpired: 20_000,
        evictedLive: 0,
      })
    },
  )

  it.each(algorithmNames)('%s: leaves a live key as it is', (algorithm) => {
    const clock = manualClock(epochMs)
    const options = [ipRule({ limit: 5, window: '1h', algorithm })]
    const rules = compileRules(options)
    const store = new MemoryStore(rules, clock)
    const limiter = new RuleLimiter(options, rules, store, null)
    for (let n = 0; n < 1_000; n++) void limiter.decide(facts(n), { cost: 5 })
    for (let second = 0; second < 600; second++) {
      clock.advance(1_000)
      store.sweep()
    }
    for (let n = 0; n < 1_000; n++) {
      expect((limiter.peek(facts(n), { cost: 5 }) as Decision).allowed).toBe(false)
    }
    expect(store.keyCounts(limiter.rule('ip')).tracked).toBe(1_000)
  })

  it('reaches the keys of candidates too', () => {
    const clock = manualClock(epochMs)
    const options = [ipRule({ window: '1m', candidates: [{ limit: 9, window: '1s' }] })]
    const rules = compileRules(options)
    const store = new MemoryStore(rules, clock)
    const limiter = new RuleLimiter(options, rules, store, null)
    for (let n = 0; n < 100; n++) void limiter.decide(facts(n))
    const [candidate] = limiter.rule('ip').candidates
    expect(candidate === undefined ? null : store.keyCounts(candidate).tracked).toBe(100)
    for (let second = 0; second < 5; second++) {
      clock.advance(1_000)
      store.sweep()
    }
    expect(candidate === undefined ? null : store.keyCounts(candidate).tracked).toBe(0)
    expect(store.keyCounts(limiter.rule('ip')).tracked).toBe(100)
  })
})

describe('memory store: a flood', () => {
  it.each(algorithmNames)(
    '%s: 200,000 keys of one attempt free no exhausted one and exceed no bound',
    (algorithm) => {
      const maxKeys = 10_000
      const options = [ipRule({ limit: 5, window: '1d', maxKeys, algorithm })]
      const rules = compileRules(options)
      const store = new MemoryStore(rules, manualClock(epochMs))
      const limiter = new RuleLimiter(options, rules, store, null)
      const [rule] = rules
      const tracked = () => (rule === undefined ? NaN : store.keyCounts(rule).tracked)
      const exhausted = Array.from({ length: 100 }, (_, n) => ({ keys: { ip: `exhausted ${n}` } }))
      for (const facts of exhausted) void limiter.decide(facts, { cost: 5 })
      let trackedMost = 0
      for (let n = 0; n < 200_000; n++) {
        void limiter.decide({ keys: { ip: String(n) } })
        trackedMost = Math.max(trackedMost, tracked())
      }
      expect(trackedMost).toBe(maxKeys)
      const allowed = exhausted.filter((facts) => (limiter.peek(facts) as Decision).allowed)
      expect(allowed).toEqual([])
      expect(rule === undefined ? null : store.keyCounts(rule)).toMatchObject({
        tracked: maxKeys,
        evictedExpired: 0,
        evictedLive: 200_100 - maxKeys,
      })
    },
  )

  it('rolling-window: never keeps more entries than maxEntries, and no exhausted key is freed', () => {
    const maxEntries = 1_000
    const options = [ipRule({ limit: 20, algorithm: 'rolling-window', maxEntries })]
    const rules = compileRules(options)
    const clock = manualClock(epochMs)
    const store = new MemoryStore(rules, clock)
    const limiter = new RuleLimiter(options, rules, store, null)
    for (let turn = 0; turn < 20; turn++) {
      clock.advance(1)
      void limiter.decide(someone)
    }
    for (let n = 0; n < 5_000; n++) {
      clock.advance(1)
      void limiter.decide({ keys: { ip: String(n % 1_700) } })
      // Each key has one entry at least, so keys cannot be more than entries.
      expect(store.keyCounts(limiter.rule('ip')).tracked).toBeLessThanOrEqual(maxEntries - 19)
    }
    expect((limiter.peek(someone) as Decision).allowed).toBe(false)
    expect(store.keyCounts(limiter.rule('ip')).evictedLive).toBeGreaterThan(3_000)
  })

  // The log was full of this key alone, which then made room for itself by going.
  it.each([false, true])(
    'rolling-window: a key that fills the log alone neither throws nor spills over, strict %s',
    (strict) => {
      const { limiter, clock } = benchOf(
        ipRule({ limit: 4, algorithm: 'rolling-window', maxEntries: 4, strict }),
      )
      for (let turn = 0; turn < 30; turn++) {
        clock.advance(1)
        expect(limiter.decide(someone).allowed).toBe(turn < 4)
        expect(limiter.peek({ ip: '198.51.100.9' }).verdicts[0]?.usage).toBe(0)
        expect(limiter.peek(someone).verdicts[0]?.usage).toBe(Math.min(turn + 1, 4))
      }
      clock.advance(60_000)
      for (let turn = 0; turn < 4; turn++) {
        clock.advance(1)
        expect(limiter.decide(someone).remaining).toBe(3 - turn)
        expect(limiter.peek({ ip: '198.51.100.9' }).verdicts[0]?.usage).toBe(0)
      }
      expect(limiter.decide({ ip: '198.51.100.9' })).toMatchObject({ allowed: true, remaining: 3 })
    },
  )

  it('rolling-window: an entry more of a key that has some evicts another key and not itself', () => {
    const { limiter, clock } = benchOf(
      ipRule({ limit: 10, algorithm: 'rolling-window', maxEntries: 10 }),
    )
    const other = { ip: '198.51.100.9' }
    limiter.decide(other)
    for (let turn = 1; turn <= 10; turn++) {
      clock.advance(1)
      expect(limiter.decide(someone)).toMatchObject({ allowed: true, remaining: 10 - turn })
    }
    expect(limiter.peek(other).verdicts[0]?.usage).toBe(0)
  })

  it('rolling-window: maxEntries changed while it runs is kept as entries come', () => {
    const options = [ipRule({ algorithm: 'rolling-window' })]
    const rules = compileRules(options)
    const store = new MemoryStore(rules, manualClock(epochMs))
    const limiter = new RuleLimiter(options, rules, store, null)
    const keys = Array.from({ length: 300 }, (_, n) => ({ keys: { ip: String(n) } }))
    for (const facts of keys.slice(0, 100)) void limiter.decide(facts)
    limiter.configure('ip', { maxEntries: 10 })
    for (const facts of keys.slice(100)) void limiter.decide(facts)
    expect(store.keyCounts(limiter.rule('ip'))).toMatchObject({ tracked: 10, evictedLive: 290 })
  })
})

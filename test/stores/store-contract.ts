/*
 * What every store must do, whatever it keeps its state in. A store is asked through the limiter, so that
 * the suite says what users see; every answer is awaited, so that a remote store can be put through it.
 */
import { afterEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../src/core/clock.js'
import type { Decision } from '../../src/core/decision.js'
import type { Facts } from '../../src/core/facts.js'
import { compileRules, type CompiledRule, type RuleOptions } from '../../src/core/rule.js'
import { RuleLimiter, type AttemptOptions } from '../../src/limiter/limiter.js'
import type { KeyCounts, Store } from '../../src/stores/store.js'
import { manualClock, type ManualClock } from '../../src/testing/index.js'
import { epochMs, ipRule } from '../support/units/limits.js'

/** Makes a store that reads its time from the clock, so that no test need sleep. */
export type CreateStore = (rules: readonly CompiledRule[], clock: Clock) => Store | Promise<Store>

interface Harness {
  readonly limiter: RuleLimiter
  readonly store: Store
  readonly clock: ManualClock
  readonly decide: (ip: string, options?: AttemptOptions) => Promise<Decision>
  readonly usage: (ip: string, rule?: string) => Promise<number>
  readonly counts: (rule?: string) => KeyCounts
}

const me = '203.0.113.7'
const factsOf = (ip: string): Facts => ({ ip })

export function storeContract(name: string, createStore: CreateStore): void {
  const open: RuleLimiter[] = []

  async function harness(...options: RuleOptions[]): Promise<Harness> {
    const clock = manualClock(epochMs)
    const rules = compileRules(options)
    const store = await createStore(rules, clock)
    const limiter = new RuleLimiter(options, rules, store, null)
    open.push(limiter)
    return {
      limiter,
      store,
      clock,
      decide: async (ip, asked) => limiter.decide(factsOf(ip), asked),
      async usage(ip, rule = 'ip') {
        const { verdicts } = await limiter.peek(factsOf(ip))
        return verdicts.find((verdict) => verdict.rule === rule)?.usage ?? NaN
      },
      counts: (rule = 'ip') => store.keyCounts(limiter.rule(rule)),
    }
  }

  afterEach(async () => {
    for (const limiter of open.splice(0)) await limiter.close()
  })

  describe(`${name}: decisions`, () => {
    it('exactly the limit passes of many attempts asked at once', async () => {
      const { decide } = await harness(ipRule({ limit: 10 }))
      const decisions = await Promise.all(Array.from({ length: 50 }, () => decide(me)))
      expect(decisions.filter(({ allowed }) => allowed).length).toBe(10)
    })

    it('a decline takes nothing in any rule', async () => {
      const { decide, usage } = await harness(
        ipRule({ name: 'global', key: 'global', limit: 100 }),
        ipRule({ limit: 2 }),
      )
      for (let turn = 0; turn < 5; turn++) await decide(me)
      expect([await usage(me), await usage(me, 'global')]).toEqual([2, 2])
    })

    it('a strict rule counts each attempt it sees, a shadow rule those that it allows', async () => {
      const { decide, usage } = await harness(
        ipRule({ limit: 2 }),
        ipRule({ name: 'strict', key: 'global', limit: 50, strict: true }),
        ipRule({ name: 'shadow', key: 'global', limit: 3, mode: 'shadow' }),
      )
      for (let turn = 0; turn < 5; turn++) await decide(me)
      expect(await usage(me, 'strict')).toBe(5)
      expect(await usage(me, 'shadow')).toBe(3)
    })

    it('time passes by the clock of the store', async () => {
      const { decide, clock, usage } = await harness(ipRule({ limit: 4 }))
      await decide(me, { cost: 4 })
      clock.advance(90_000)
      expect(await usage(me)).toBe(2)
      clock.advance(30_000)
      expect(await usage(me)).toBe(0)
    })

    it('a declined attempt says how long to wait', async () => {
      const { decide, clock } = await harness(ipRule({ limit: 4 }))
      await decide(me, { cost: 4 })
      const { retryAfterMs } = await decide(me)
      expect(retryAfterMs).toBe(75_000)
      clock.advance(retryAfterMs)
      expect((await decide(me)).allowed).toBe(true)
    })
  })

  describe(`${name}: refund, adjust, reset, configure`, () => {
    it('a refund comes off the window in which it was counted, while that weighs', async () => {
      const { limiter, clock, usage } = await harness(ipRule({ limit: 10 }))
      const early = await limiter.attempt(factsOf(me), { cost: 4 })
      clock.advance(60_000)
      const late = await limiter.attempt(factsOf(me), { cost: 2 })
      expect(await usage(me)).toBe(6)
      await limiter.refund(early)
      expect(await usage(me)).toBe(2)
      await limiter.refund(late)
      expect(await usage(me)).toBe(0)
      await limiter.attempt(factsOf(me), { cost: 3 })
      clock.advance(120_000)
      const now = await limiter.attempt(factsOf(me), { cost: 5 })
      await limiter.refund(early)
      expect(await usage(me)).toBe(5)
      await limiter.refund(now)
      expect(await usage(me)).toBe(0)
    })

    it('strict and shadow rules keep what they counted, a declined attempt gets nothing back', async () => {
      const { limiter, usage } = await harness(
        ipRule({ limit: 3 }),
        ipRule({ name: 'strict', limit: 9, strict: true }),
        ipRule({ name: 'shadow', limit: 9, mode: 'shadow' }),
      )
      const allowed = await limiter.attempt(factsOf(me), { cost: 2 })
      const declined = await limiter.attempt(factsOf(me), { cost: 2 })
      await limiter.refund(declined)
      expect(await usage(me)).toBe(2)
      await limiter.refund(allowed)
      expect([await usage(me), await usage(me, 'strict')]).toEqual([0, 4])
      expect(await usage(me, 'shadow')).toBe(4)
    })

    it('a refund leaves alone what was counted after the rule was started afresh', async () => {
      const { limiter, decide, usage } = await harness(ipRule({ limit: 5 }))
      const before = await limiter.attempt(factsOf(me), { cost: 5 })
      limiter.configure('ip', { window: '2m' })
      await decide(me, { cost: 5 })
      await limiter.refund(before)
      expect(await usage(me)).toBe(5)
    })

    it('a refund after a change of limit still comes', async () => {
      const { limiter, usage } = await harness(ipRule({ limit: 5 }))
      const before = await limiter.attempt(factsOf(me), { cost: 5 })
      limiter.configure('ip', { limit: 3 })
      await limiter.refund(before)
      expect(await usage(me)).toBe(0)
    })

    it('adjust acts on the current window alone', async () => {
      const { limiter, decide, clock, usage } = await harness(ipRule({ limit: 10 }))
      await decide(me, { cost: 4 })
      clock.advance(90_000)
      await limiter.adjust('ip', factsOf(me), -4)
      expect(await usage(me)).toBe(2)
      await limiter.adjust('ip', factsOf(me), 3)
      expect(await usage(me)).toBe(5)
      await limiter.adjust('ip', factsOf(me), -1)
      expect(await usage(me)).toBe(4)
    })

    it('reset forgets the key and no other', async () => {
      const { limiter, decide, usage } = await harness(ipRule())
      await decide(me)
      await decide('9.9.9.9')
      await limiter.reset('ip', factsOf(me))
      await limiter.reset('ip', factsOf('8.8.8.8'))
      expect([await usage(me), await usage('9.9.9.9')]).toEqual([0, 1])
    })

    it('a changed limit keeps the state, a changed window does not', async () => {
      const { limiter, decide, usage } = await harness(ipRule())
      await decide(me, { cost: 5 })
      limiter.configure('ip', { limit: 9 })
      expect(await usage(me)).toBe(5)
      limiter.configure('ip', { window: '2m' })
      expect(await usage(me)).toBe(0)
    })
  })

  describe(`${name}: keys`, () => {
    it('a peek of an unknown key leaves no trace', async () => {
      const { limiter, counts, usage } = await harness(ipRule())
      for (let n = 0; n < 100; n++) await limiter.peek(factsOf(`10.0.0.${n}`))
      expect(counts().tracked).toBe(0)
      expect(await usage(me)).toBe(0)
    })

    it('what is declined without being counted leaves no trace', async () => {
      const { decide, counts } = await harness(ipRule({ limit: 1 }))
      for (let n = 0; n < 100; n++) await decide(`10.0.0.${n}`, { cost: 2 })
      expect(counts().tracked).toBe(0)
    })

    it('KEY-02: with room for two keys, tracks two, the empty one like any other', async () => {
      const { limiter, counts } = await harness(ipRule({ maxKeys: 2 }))
      for (const key of ['', 'one', 'two', 'three']) {
        await limiter.decide({ keys: { ip: key } })
        expect(counts().tracked).toBeLessThanOrEqual(2)
      }
      expect(counts().evictedLive).toBe(2)
    })

    it('MEM-03: 5,000 keys where 1,000 fit are all answered, and the evictions counted', async () => {
      const { decide, counts } = await harness(ipRule({ maxKeys: 1_000 }))
      for (let n = 0; n < 5_000; n++) {
        expect((await decide(`10.0.${n >> 8}.${n & 255}`)).allowed).toBe(true)
        expect(counts().tracked).toBeLessThanOrEqual(1_000)
      }
      expect(counts()).toMatchObject({ tracked: 1_000, evictedExpired: 0, evictedLive: 4_000 })
    })

    it('MEM-04: a flood of keys below their limit does not free an exhausted one', async () => {
      const { decide, counts } = await harness(ipRule({ limit: 5, maxKeys: 1_000 }))
      for (let turn = 0; turn < 6; turn++) await decide(me)
      for (let n = 0; n < 5_000; n++) await decide(`10.0.${n >> 8}.${n & 255}`)
      expect((await decide(me)).allowed).toBe(false)
      expect(counts().evictedLive).toBe(4_001)
    })

    it('MEM-04: nor does a flood that goes as near to its limit as it can', async () => {
      const { decide } = await harness(ipRule({ limit: 5, maxKeys: 1_000 }))
      const exhausted = Array.from({ length: 20 }, (_, n) => `10.9.0.${n}`)
      for (let n = 0; n < 300; n++) await decide(`10.1.${n >> 8}.${n & 255}`)
      for (const ip of exhausted) {
        await decide(ip, { cost: 5 })
        // Others lie between: only where all nearby are exhausted may one of them go.
        for (let n = 0; n < 5; n++) await decide(`${ip.replace('10.9', '10.8')}${n}`)
      }
      for (let n = 0; n < 4_000; n++) await decide(`10.2.${n >> 8}.${n & 255}`, { cost: 4 })
      for (const ip of exhausted) expect((await decide(ip)).allowed).toBe(false)
    })

    it('where all are exhausted the one that is free soonest goes', async () => {
      const { decide, clock } = await harness(ipRule({ limit: 5, maxKeys: 3 }))
      // The first is tracked first, so that it is not by its place that the second goes.
      await decide('10.0.0.1')
      await decide('10.0.0.2', { cost: 5 })
      clock.advance(60_000)
      await decide('10.0.0.1', { cost: 4 })
      await decide('10.0.0.3', { cost: 5 })
      await decide('10.0.0.4', { cost: 5 })
      for (const ip of ['10.0.0.1', '10.0.0.3', '10.0.0.4']) {
        expect((await decide(ip)).allowed).toBe(false)
      }
      expect((await decide('10.0.0.2')).allowed).toBe(true)
    })

    it('at the cap an expired key goes before a live one', async () => {
      const { decide, clock, counts } = await harness(ipRule({ maxKeys: 4 }))
      for (let n = 0; n < 4; n++) await decide(`10.0.0.${n}`)
      clock.advance(120_000)
      for (let n = 0; n < 4; n++) await decide(`10.0.1.${n}`)
      expect(counts()).toMatchObject({ evictedLive: 0, evictedExpired: 4 })
    })

    it('a cap that is lowered while it runs is kept as keys come', async () => {
      const { limiter, decide, counts } = await harness(ipRule({ maxKeys: 100 }))
      for (let n = 0; n < 100; n++) await decide(`10.0.0.${n}`)
      limiter.configure('ip', { maxKeys: 10 })
      for (let n = 0; n < 200; n++) await decide(`10.0.1.${n}`)
      expect(counts().tracked).toBeLessThanOrEqual(10)
    })

    it('MEM-06: a sweep by the short window of one rule keeps the live keys of another', async () => {
      const { decide, store, clock, usage } = await harness(
        ipRule({ name: 'a', limit: 3, window: '24h' }),
        ipRule({ name: 'b', key: 'global', limit: 100, window: '1m' }),
      )
      await decide(me, { cost: 3 })
      for (let second = 0; second < 200; second++) {
        clock.advance(1_000)
        store.sweep()
        await decide('9.9.9.9')
      }
      expect(await usage(me, 'a')).toBe(3)
      expect((await decide(me)).retryAfterMs).toBe((24 + 8) * 3_600_000 - 200_000)
    })

    it('frees what has expired of a large table within two short windows', async () => {
      const { decide, store, clock, counts } = await harness(ipRule({ limit: 5, window: '1s' }))
      for (let n = 0; n < 120_000; n++) await decide(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`)
      clock.advance(2_000)
      let calls = 1
      while (store.sweep()) calls++
      expect(counts()).toMatchObject({ tracked: 0, evictedExpired: 120_000, evictedLive: 0 })
      // In pieces, so that no call keeps everybody waiting.
      expect(calls).toBeGreaterThan(2)
    })

    it('frees what has expired within two windows, swept once a second', async () => {
      const { decide, store, clock, counts } = await harness(ipRule({ limit: 5, window: '10s' }))
      for (let n = 0; n < 500; n++) await decide(`10.0.${n >> 8}.${n & 255}`)
      // In the second window they still weigh; expired from t = 20 s, gone by t = 40 s.
      for (let second = 1; second < 20; second++) {
        clock.advance(1_000)
        store.sweep()
      }
      expect(counts()).toMatchObject({ tracked: 500, evictedExpired: 0, evictedLive: 0 })
      for (let second = 20; second <= 40; second++) {
        clock.advance(1_000)
        store.sweep()
      }
      expect(counts()).toMatchObject({ tracked: 0, evictedExpired: 500, evictedLive: 0 })
    })
  })
}

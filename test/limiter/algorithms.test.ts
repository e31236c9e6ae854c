/*
 * Every algorithm through the public limiter: the reported failures of others that show there, each under
 * its id; the fields that one algorithm alone has; rules of several algorithms in one attempt.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Decision } from '../../src/core/decision.js'
import { compileRules, type RuleOptions } from '../../src/core/rule.js'
import type { AttemptOptions } from '../../src/limiter/index.js'
import { RuleLimiter, type Attempt } from '../../src/limiter/limiter.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { manualClock } from '../../src/testing/index.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import { benchOf, burst, epochMs, ipRule, passedOf, someone } from '../support/units/limits.js'

const log = (fields: Partial<RuleOptions> = {}) =>
  ipRule({ algorithm: 'rolling-window', ...fields })
const average = (fields: Partial<RuleOptions> = {}) =>
  ipRule({ algorithm: 'exponential', ...fields })
const bucket = (fields: Partial<RuleOptions> = {}) =>
  ipRule({ algorithm: 'token-bucket', ...fields })

const usageIn = ({ verdicts }: Decision, rule = 'ip') =>
  verdicts.find((verdict) => verdict.rule === rule)?.usage ?? NaN

/** The limiter with attempts and refunds, which the public one does not show. */
function innerOf(...options: RuleOptions[]) {
  const clock = manualClock(epochMs)
  const rules = compileRules(options)
  const limiter = new RuleLimiter(options, rules, new MemoryStore(rules, clock), null)
  return {
    clock,
    limiter,
    attempt: (asked?: AttemptOptions) => limiter.attempt(someone, asked) as Attempt,
    usage: (rule?: string) => usageIn(limiter.peek(someone) as Decision, rule),
  }
}

const isFiniteNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value)

describe('ALG: window edges, counts, decay', () => {
  it('ALG-06: a steady pace above the limit gets its share', () => {
    const { limiter, at } = benchOf(log({ limit: 10, window: '10m' }))
    const passed: number[] = []
    for (let seconds = 0; seconds < 1_200; seconds += 30) {
      at(seconds)
      if (limiter.decide(someone).allowed) passed.push(seconds)
      expect(usageIn(limiter.peek(someone))).toBeLessThanOrEqual(10)
    }
    const share = Array.from({ length: 10 }, (_, index) => index * 30)
    expect(passed).toEqual([...share, ...share.map((seconds) => 600 + seconds)])
  })

  it('ALG-08: an entry exactly one window old no longer counts, and no decline announces 0', () => {
    const { limiter, at } = benchOf(log({ limit: 1, window: '10s' }))
    expect(limiter.decide(someone).allowed).toBe(true)
    for (let ms = 0; ms < 10_000; ms += 37) {
      at(ms / 1_000)
      expect(limiter.decide(someone)).toMatchObject({ allowed: false, retryAfterMs: 10_000 - ms })
    }
    at(9.999)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    at(9.9999)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    at(10)
    expect(limiter.decide(someone).allowed).toBe(true)
  })

  it('ALG-10: attempts of one millisecond all count', () => {
    const { limiter } = benchOf(log({ limit: 10 }))
    const decisions = burst(limiter, 100)
    expect(decisions.map(({ allowed }) => allowed)).toEqual(decisions.map((_, n) => n < 10))
    expect(usageIn(limiter.peek(someone))).toBe(10)
  })

  const kinds: [string, Partial<RuleOptions>, object, AttemptOptions][] = [
    ['global', { key: 'global' }, {}, {}],
    ['ip', { key: 'ip' }, someone, {}],
    ['session', { key: 'session' }, { session: 's', ...someone }, {}],
    ['function', { key: 'ip', function: 'parse' }, someone, { function: 'parse' }],
    [
      'function beside the general ones',
      { key: 'ip', function: 'parse' },
      someone,
      { also: 'parse' },
    ],
  ]

  it.each(
    algorithmNames.flatMap((algorithm) => kinds.map((kind) => [algorithm, ...kind] as const)),
  )(
    'ALG-12: %s, %s: exactly the limit passes of a burst at one instant',
    (algorithm, _, fields, facts, asked) => {
      for (const limit of [1, 5]) {
        const { limiter, at } = benchOf(ipRule({ ...fields, limit, algorithm }))
        at(7.25)
        const decisions = burst(limiter, 8, facts, asked)
        expect(decisions.map(({ allowed }) => allowed)).toEqual(decisions.map((__, n) => n < limit))
        expect(decisions.map(({ remaining }) => remaining)).toEqual(
          decisions.map((__, n) => Math.max(0, limit - 1 - n)),
        )
      }
    },
  )

  it('ALG-14: no time between two attempts is no infinite rate', () => {
    const { limiter, at } = benchOf(average({ limit: 10 }))
    const decisions = burst(limiter, 11)
    expect(passedOf(decisions)).toBe(10)
    at(60)
    expect(usageIn(limiter.peek(someone))).toBeCloseTo(3.6788, 4)
    const later = burst(limiter, 8)
    expect(passedOf(later)).toBe(6)
    for (const { verdicts, ...decision } of [...decisions, ...later]) {
      const { remaining, retryAfterMs, resetMs } = decision
      const numbers = [remaining, retryAfterMs, resetMs, verdicts[0]?.usage, verdicts[0]?.resetMs]
      expect(numbers.every(isFiniteNumber)).toBe(true)
      expect(JSON.stringify({ verdicts, decision })).not.toMatch(/null|NaN|Infinity/)
    }
  })

  it('ALG-16: the average of a steady rate is that rate', () => {
    const { limiter, at } = benchOf(average({ limit: 100 }))
    let usage = NaN
    for (let seconds = 0; seconds <= 1_800; seconds += 4) {
      at(seconds)
      usage = usageIn(limiter.decide(someone))
    }
    expect(usage).toBeCloseTo(15, 9)
    at(1_804)
    expect(usageIn(limiter.peek(someone))).toBeCloseTo(14.03, 2)
  })

  it('ALG-17: one early burst is no sustained overload', () => {
    const { limiter, at } = benchOf(average({ limit: 5 }))
    for (let ms = 0; ms < 5; ms++) {
      at(ms / 1_000)
      expect(limiter.decide(someone).allowed).toBe(true)
    }
    expect(limiter.decide(someone).allowed).toBe(false)
  })
})

describe('CLK: clock moves', () => {
  it.each(algorithmNames)('CLK-01: %s: passes after a step back of 11 s', (algorithm) => {
    const { limiter, at } = benchOf(ipRule({ limit: 10, algorithm }))
    at(30)
    expect(passedOf(burst(limiter, 3))).toBe(3)
    at(19)
    const decision = limiter.decide(someone)
    expect(decision.allowed).toBe(true)
    expect(decision.remaining).toBe(6)
    expect(usageIn(decision)).toBeCloseTo(4, 9)
  })

  it.each(['rolling-window', 'sliding-window'] as const)(
    'CLK-03: %s: a clock that flips gives no quota',
    (algorithm) => {
      const { limiter, at } = benchOf(ipRule({ limit: 10, algorithm }))
      let passed = 0
      for (let stop = 0; stop < 10; stop++) {
        at(stop % 2 === 0 ? 30 : 90.001)
        passed += passedOf(burst(limiter, 10))
      }
      expect(passed).toBeLessThanOrEqual(20)
    },
  )

  it.each(algorithmNames)(
    '%s: a step of any size locks nobody out for four windows',
    (algorithm) => {
      for (const stepMs of [-1, -60_000, -120_000, -120_001, -(10 ** 12), 10 ** 12]) {
        const { limiter, clock } = benchOf(ipRule({ limit: 5, algorithm }))
        burst(limiter, 9)
        clock.advance(stepMs)
        const { retryAfterMs } = limiter.decide(someone)
        expect(retryAfterMs).toBeLessThanOrEqual(240_000)
        clock.advance(240_000)
        expect(limiter.decide(someone).allowed).toBe(true)
      }
    },
  )
})

describe('HDR, CMB, MEM, CFG: what rests on the log', () => {
  it('HDR-03: a lowered limit waits for all entries that are too many', () => {
    const { limiter, at } = benchOf(log({ limit: 3 }))
    for (const seconds of [0, 10, 20]) {
      at(seconds)
      expect(limiter.decide(someone).allowed).toBe(true)
    }
    limiter.configure('ip', { limit: 1 })
    at(25.4)
    const declined = limiter.decide(someone)
    expect(declined).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 54_600 })
    expect(Math.ceil(declined.retryAfterMs / 1_000)).toBe(55)
    expect(declined.resetMs).toBe(54_600)
    at(80)
    expect(limiter.decide(someone).allowed).toBe(true)
  })

  it('CMB-03: two limits of one client keep their own counts', () => {
    const { limiter, at } = benchOf(
      log({ name: 'minute', limit: 5, window: '1m' }),
      log({ name: 'day', limit: 50, window: '1d' }),
    )
    expect(burst(limiter, 6).map(({ allowed }) => allowed)).toEqual([1, 1, 1, 1, 1, 0].map(Boolean))
    at(60)
    const decisions = burst(limiter, 6)
    expect(passedOf(decisions)).toBe(5)
    expect(usageIn(limiter.peek(someone), 'day')).toBe(10)
  })

  it('CMB-04: rules of one list neither share a window nor a key', () => {
    const { limiter, at } = benchOf(
      log({ name: 'day', limit: 500, window: '1d' }),
      log({ name: 'short', limit: 10, window: '60s' }),
    )
    const decisions = burst(limiter, 11)
    expect(passedOf(decisions)).toBe(10)
    expect(decisions[10]?.allowed).toBe(false)
    const day = decisions[9]?.verdicts.find(({ rule }) => rule === 'day')
    expect(day?.remaining).toBe(490)
    at(61)
    expect(passedOf(burst(limiter, 11))).toBe(10)
  })

  it('MEM-06: traffic of a short rule frees nothing of a long one', () => {
    const clock = manualClock(epochMs)
    const options = [
      log({ name: 'a', limit: 3, window: '24h' }),
      log({ name: 'b', key: 'global', limit: 100, window: '60s', function: 'b' }),
    ]
    const rules = compileRules(options)
    const store = new MemoryStore(rules, clock)
    const limiter = new RuleLimiter(options, rules, store, null)
    for (let turn = 0; turn < 3; turn++) void limiter.decide(someone)
    for (let second = 1; second <= 61; second++) {
      clock.advance(1_000)
      store.sweep()
      void limiter.decide(someone, { function: 'b' })
    }
    clock.advance(1_000)
    const decision = limiter.decide(someone) as Decision
    expect(decision).toMatchObject({ allowed: false, rule: 'a', retryAfterMs: 86_338_000 })
  })

  it.each([7, 30, 365])(
    'CFG-01: a window of %i days neither overflows nor lets go early',
    (days) => {
      const { limiter, at } = benchOf(log({ limit: 5, window: `${days}d` }))
      const day = 86_400
      expect(passedOf(burst(limiter, 6))).toBe(5)
      at(1)
      expect(limiter.decide(someone)).toMatchObject({
        allowed: false,
        retryAfterMs: (days * day - 1) * 1_000,
      })
      at((days * day * 5) / 6)
      expect(limiter.decide(someone).allowed).toBe(false)
      at(days * day - 0.001)
      expect(limiter.decide(someone).allowed).toBe(false)
      at(days * day)
      expect(passedOf(burst(limiter, 6))).toBe(5)
    },
  )
})

describe('minInterval', () => {
  it('declines until exactly that long after the last attempt that was allowed', () => {
    const { limiter, at } = benchOf(log({ limit: 5, minInterval: '2s' }))
    expect(limiter.decide(someone)).toMatchObject({ allowed: true, remaining: 4 })
    at(1)
    expect(limiter.decide(someone)).toMatchObject({
      allowed: false,
      rule: 'ip',
      remaining: 4,
      retryAfterMs: 1_000,
    })
    expect(limiter.peek(someone).verdicts[0]?.verdict).toBe('over')
    at(1.9999)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    at(2)
    expect(limiter.decide(someone)).toMatchObject({ allowed: true, remaining: 3 })
  })

  it('of a strict rule runs from any attempt', () => {
    const { limiter, at } = benchOf(log({ limit: 50, minInterval: '2s', strict: true }))
    for (const seconds of [0, 1.9, 3.8, 5.7]) {
      at(seconds)
      expect(limiter.decide(someone).allowed).toBe(seconds === 0)
    }
    at(7.7)
    expect(limiter.decide(someone).allowed).toBe(true)
  })

  it('waits for whichever is later, the interval or the log', () => {
    const { limiter, at } = benchOf(log({ limit: 2, window: '10s', minInterval: '9s' }))
    limiter.decide(someone)
    at(9)
    limiter.decide(someone)
    at(9.5)
    expect(limiter.decide(someone).retryAfterMs).toBe(8_500)
    at(18)
    expect(limiter.decide(someone).allowed).toBe(true)
    at(18.5)
    expect(limiter.decide(someone).retryAfterMs).toBe(8_500)
  })

  it('is of each key, and goes with a reset', () => {
    const { limiter } = benchOf(log({ minInterval: '10s' }))
    limiter.decide(someone)
    expect(limiter.decide({ ip: '198.51.100.1' }).allowed).toBe(true)
    expect(limiter.decide(someone).allowed).toBe(false)
    limiter.reset('ip', someone)
    expect(limiter.decide(someone).allowed).toBe(true)
  })

  it('goes back with a refund', () => {
    const { limiter, attempt } = innerOf(log({ minInterval: '10s' }))
    const first = attempt()
    expect(attempt().decision.allowed).toBe(false)
    void limiter.refund(first)
    expect(attempt().decision.allowed).toBe(true)
  })
})

describe('maxAge', () => {
  it('lets a strict rule go, exactly when it was announced', () => {
    const { limiter, at } = benchOf(average({ limit: 1, strict: true, maxAge: '90s' }))
    burst(limiter, 1_000)
    const { retryAfterMs } = limiter.peek(someone)
    expect(retryAfterMs).toBe(90_001)
    at(90)
    expect(limiter.peek(someone).allowed).toBe(false)
    at(90.001)
    expect(limiter.decide(someone)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('without one a strict rule remembers', () => {
    const { limiter, at } = benchOf(average({ limit: 1, strict: true }))
    burst(limiter, 1_000)
    at(90.001)
    expect(limiter.peek(someone).allowed).toBe(false)
  })
})

describe('burst', () => {
  it('is what a key that has rested may use at once; the limit is what it may use in the long run', () => {
    const { limiter, at } = benchOf(bucket({ limit: 60, burst: 5 }))
    const decisions = burst(limiter, 8)
    expect(passedOf(decisions)).toBe(5)
    expect(decisions[0]).toMatchObject({ limit: 5, remaining: 4 })
    expect(decisions[7]).toMatchObject({ limit: 5, remaining: 0, retryAfterMs: 1_000 })
    at(3)
    expect(passedOf(burst(limiter, 8))).toBe(3)
    at(600)
    expect(passedOf(burst(limiter, 8))).toBe(5)
  })

  it('may be larger than the limit', () => {
    const { limiter, at } = benchOf(bucket({ limit: 1, burst: 10 }))
    expect(passedOf(burst(limiter, 20))).toBe(10)
    at(59.999)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, retryAfterMs: 1 })
    at(60)
    expect(passedOf(burst(limiter, 3))).toBe(1)
  })

  it('bounds the cost of an attempt', () => {
    const { limiter } = benchOf(bucket({ limit: 60, burst: 5 }))
    expect(limiter.decide(someone, { cost: 6 })).toMatchObject({
      allowed: false,
      retryAfterMs: Infinity,
    })
    expect(limiter.decide(someone, { cost: 5 }).allowed).toBe(true)
  })

  it('is what near is a share of', () => {
    const { limiter } = benchOf(bucket({ limit: 1_000, burst: 10 }))
    expect(burst(limiter, 11).map(({ verdicts }) => verdicts[0]?.verdict)).toEqual([
      ...Array.from({ length: 8 }, () => 'within'),
      'near',
      'near',
      'over',
    ])
  })

  it('strict: declined attempts take tokens too, down to one empty bucket of debt', () => {
    const { limiter } = benchOf(bucket({ limit: 60, burst: 5, strict: true }))
    const decisions = burst(limiter, 40)
    expect(passedOf(decisions)).toBe(5)
    expect(usageIn(limiter.peek(someone))).toBe(10)
    expect(limiter.peek(someone)).toMatchObject({ remaining: 0, retryAfterMs: 6_000 })
  })

  it('with a limit of 0 declines everything', () => {
    const { limiter } = benchOf(bucket({ limit: 0, burst: 5 }))
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, retryAfterMs: Infinity })
  })
})

const mixed = (limit: number) =>
  algorithmNames.map((algorithm) => ipRule({ name: algorithm, limit, algorithm }))

describe('rules of several algorithms', () => {
  it.each(algorithmNames)('a decline by %s takes nothing of the others', (name) => {
    const rules = mixed(100).map((rule) => (rule.name === name ? { ...rule, limit: 3 } : rule))
    const { limiter } = benchOf(...rules)
    expect(passedOf(burst(limiter, 10))).toBe(3)
    for (const { usage } of limiter.peek(someone).verdicts) expect(usage).toBeCloseTo(3, 9)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, rule: name })
  })

  it.each(algorithmNames)('a strict %s counts what another declines, the others do not', (name) => {
    const rules = mixed(50).map((rule) => (rule.name === name ? { ...rule, strict: true } : rule))
    const { limiter } = benchOf(...rules, ipRule({ limit: 2 }))
    burst(limiter, 10)
    for (const { rule, usage } of limiter.peek(someone).verdicts) {
      expect(usage).toBeCloseTo(rule === name ? 10 : 2, 9)
    }
  })

  it('are all or nothing in any order, and allow when they said', () => {
    const rule = fc.record({
      algorithm: fc.constantFrom(...algorithmNames),
      limit: fc.integer({ min: 1, max: 6 }),
      window: fc.constantFrom(700, 1_000, 3_000),
      strict: fc.boolean(),
    })
    const steps = fc.array(fc.record({ gapMs: fc.nat(900), cost: fc.constantFrom(1, 1, 2) }), {
      minLength: 5,
      maxLength: 30,
    })
    const rules = fc
      .array(rule, { minLength: 1, maxLength: 5 })
      .map((list) => list.map((fields, index) => ipRule({ name: `r${index}`, ...fields })))
    const byName = (a: { rule: string }, b: { rule: string }) => (a.rule < b.rule ? -1 : 1)
    fc.assert(
      fc.property(rules, steps, (list, taken) => {
        const [one, other] = [benchOf(...list), benchOf(...list.toReversed())]
        for (const { gapMs, cost } of taken) {
          one.clock.advance(gapMs)
          other.clock.advance(gapMs)
          const before = one.limiter.peek(someone, { cost })
          const { verdicts, ...decision } = one.limiter.decide(someone, { cost })
          const answer = other.limiter.decide(someone, { cost })
          expect({ ...decision, verdicts: verdicts.toSorted(byName) }).toEqual({
            ...answer,
            verdicts: answer.verdicts.toSorted(byName),
          })
          expect(decision.allowed).toBe(verdicts.every(({ allowed }) => allowed))
          for (const [index, { usage }] of verdicts.entries()) {
            const isCounted = decision.allowed || list[index]?.strict === true
            const isKept = usage === before.verdicts[index]?.usage
            expect(isCounted || isKept).toBe(true)
          }
          const { retryAfterMs } = decision
          if (decision.allowed || retryAfterMs === Infinity) continue
          const nowMs = one.clock.monotonicMs()
          one.clock.set(nowMs + retryAfterMs)
          expect(one.limiter.peek(someone, { cost }).allowed).toBe(true)
          one.clock.set(nowMs)
        }
      }),
      { numRuns: 200 },
    )
  })
})

describe('a refund', () => {
  it.each(algorithmNames)('%s: given twice comes back once', (algorithm) => {
    const { limiter, attempt, usage } = innerOf(ipRule({ limit: 10, algorithm }))
    attempt({ cost: 3 })
    const second = attempt({ cost: 2 })
    expect(second.receipts.length).toBe(1)
    expect(usage()).toBeCloseTo(5, 9)
    void limiter.refund(second)
    expect(usage()).toBeCloseTo(3, 9)
    expect(second.receipts).toEqual([])
    void limiter.refund(second)
    expect(usage()).toBeCloseTo(3, 9)
  })

  it.each(algorithmNames)('%s: of an attempt that was declined is nothing', (algorithm) => {
    const { limiter, attempt, usage } = innerOf(
      ipRule({ limit: 10, algorithm }),
      ipRule({ name: 'small', limit: 2 }),
    )
    attempt({ cost: 2 })
    const declined = attempt({ cost: 2 })
    expect(declined).toMatchObject({ receipts: [], decision: { allowed: false } })
    void limiter.refund(declined)
    expect(usage()).toBeCloseTo(2, 9)
  })

  it('gives back to every enforced rule, and to no strict or shadow one', () => {
    const { limiter, attempt, usage } = innerOf(
      ...mixed(100),
      ipRule({ name: 'strict', limit: 100, strict: true }),
      ipRule({ name: 'shadow', limit: 100, mode: 'shadow' }),
    )
    void limiter.refund(attempt({ cost: 4 }))
    for (const name of algorithmNames) expect(usage(name)).toBeCloseTo(0, 9)
    expect([usage('strict'), usage('shadow')]).toEqual([4, 4])
  })

  it.each(algorithmNames)('%s: finds nothing where the key was forgotten', (algorithm) => {
    const { limiter, attempt, usage } = innerOf(ipRule({ limit: 10, algorithm }))
    const first = attempt({ cost: 3 })
    void limiter.reset('ip', someone)
    void limiter.refund(first)
    expect(usage()).toBe(0)
  })

  it('of an attempt before two changes of window leaves alone what came after', () => {
    const { limiter, clock, attempt, usage } = innerOf(ipRule({ limit: 10 }))
    const before = attempt({ cost: 4 })
    limiter.configure('ip', { window: '2m' })
    limiter.configure('ip', { window: '1m' })
    clock.advance(1_000)
    attempt({ cost: 4 })
    void limiter.refund(before)
    expect(usage()).toBe(4)
  })
})

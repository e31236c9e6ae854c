/*
 * The limiter over several rules: all or nothing, whatever their order; what a decision says; what may be
 * asked, given back and changed while it runs.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../src/limiter/index.js'
import { manualClock } from '../../src/testing/index.js'
import {
  benchOf,
  burst,
  epochMs,
  ipRule,
  messageOf,
  passedOf,
  someone,
} from '../support/units/limits.js'

const globalRule = (limit: number, fields = {}) =>
  ipRule({ name: 'global', key: 'global', limit, ...fields })

const verdictOf = (decision: { verdicts: { rule: string }[] }, name: string) =>
  decision.verdicts.find(({ rule }) => rule === name)

const namesOf = (decision: { verdicts: { rule: string }[] }) =>
  decision.verdicts.map(({ rule }) => rule)

const verdictsOf = (fields: object, count: number) =>
  burst(benchOf(ipRule(fields)).limiter, count).map(({ verdicts }) => verdicts[0]?.verdict)

describe('several rules', () => {
  for (const isGlobalFirst of [true, false]) {
    it(`CMB-01: a decline takes nothing anywhere, the global rule ${isGlobalFirst ? 'first' : 'last'}`, () => {
      const rules = [globalRule(100), ipRule({ limit: 2 })]
      const { limiter } = benchOf(...(isGlobalFirst ? rules : rules.toReversed()))
      expect(passedOf(burst(limiter, 100, { ip: '10.0.0.1' }))).toBe(2)
      const others = Array.from({ length: 60 }, (_, n) => burst(limiter, 2, { ip: `10.0.1.${n}` }))
      expect(passedOf(others.flat())).toBe(98)
    })
  }

  it('CMB-03: two limits of one client keep their own counts', () => {
    const { limiter, at } = benchOf(
      ipRule({ name: 'minute', limit: 5, window: '1m' }),
      ipRule({ name: 'day', limit: 50, window: '1d' }),
    )
    expect(passedOf(burst(limiter, 6))).toBe(5)
    at(120)
    const decisions = burst(limiter, 6)
    expect(passedOf(decisions)).toBe(5)
    expect(verdictOf(decisions.at(-1) ?? { verdicts: [] }, 'day')).toMatchObject({ usage: 10 })
  })

  it('CMB-04: rules of one list neither share a window nor a key', () => {
    const { limiter, at } = benchOf(
      ipRule({ name: 'day', limit: 500, window: '1d' }),
      ipRule({ name: 'short', limit: 10, window: '10s' }),
    )
    const decisions = burst(limiter, 11)
    expect(passedOf(decisions)).toBe(10)
    expect(verdictOf(decisions.at(-1) ?? { verdicts: [] }, 'day')).toMatchObject({ remaining: 490 })
    at(61)
    expect(passedOf(burst(limiter, 11))).toBe(10)
  })

  it('CMB-04: two limiters made of one list share nothing', () => {
    const rules = [ipRule({ limit: 1 })]
    const clock = manualClock(epochMs)
    const [first, second] = [createLimiter({ rules, clock }), createLimiter({ rules, clock })]
    first.configure('ip', { limit: 2 })
    expect(passedOf(burst(first, 3))).toBe(2)
    expect(passedOf(burst(second, 3))).toBe(1)
    expect(rules).toEqual([ipRule({ limit: 1 })])
  })

  it('a strict rule counts what another rule declines, and other rules do not', () => {
    const { limiter } = benchOf(
      ipRule({ limit: 2 }),
      globalRule(100, { name: 'strict', strict: true }),
      globalRule(100, { name: 'lenient' }),
    )
    const last = burst(limiter, 10).at(-1)
    expect(verdictOf(last ?? { verdicts: [] }, 'strict')).toMatchObject({ usage: 10 })
    expect(verdictOf(last ?? { verdicts: [] }, 'lenient')).toMatchObject({ usage: 2 })
  })

  it('a shadow rule decides as if it were alone, and never declines', () => {
    const { limiter } = benchOf(
      globalRule(3, { name: 'shadow', mode: 'shadow' }),
      ipRule({ limit: 5 }),
    )
    const decisions = burst(limiter, 7)
    expect(passedOf(decisions)).toBe(5)
    expect(decisions.map((decision) => verdictOf(decision, 'shadow'))).toMatchObject(
      [true, true, true, false, false, false, false].map((allowed) => ({
        allowed,
        mode: 'shadow',
      })),
    )
    expect(decisions.every(({ rule }) => rule === 'ip')).toBe(true)
  })

  it('a shadow rule counts what enforced rules decline', () => {
    const { limiter } = benchOf(
      ipRule({ limit: 0 }),
      globalRule(9, { name: 'shadow', mode: 'shadow' }),
    )
    const last = burst(limiter, 4).at(-1)
    expect(last).toMatchObject({ allowed: false, rule: 'ip', retryAfterMs: Infinity })
    expect(verdictOf(last ?? { verdicts: [] }, 'shadow')).toMatchObject({ usage: 4, allowed: true })
  })

  it('a shadow rule of limit 0 is over and declines nobody', () => {
    const { limiter } = benchOf(ipRule({ limit: 0, mode: 'shadow' }))
    expect(limiter.decide(someone)).toMatchObject({ allowed: true, rule: null, retryAfterMs: 0 })
    expect(limiter.decide(someone).verdicts[0]).toMatchObject({ verdict: 'over', allowed: false })
  })
})

describe('what is asked', () => {
  const rules = [ipRule({ limit: 5 }), globalRule(2, { name: 'parse', function: 'parse' })]
  it('without a function only the general rules, with one only its own, with also both', () => {
    const { limiter } = benchOf(...rules)
    expect(namesOf(limiter.decide(someone))).toEqual(['ip'])
    expect(namesOf(limiter.decide(someone, { function: 'parse' }))).toEqual(['parse'])
    expect(namesOf(limiter.decide(someone, { also: 'parse' }))).toEqual(['ip', 'parse'])
    expect(namesOf(limiter.decide(someone, { also: 'other' }))).toEqual(['ip'])
    expect(namesOf(limiter.decide(someone, { function: 'other' }))).toEqual([])
  })

  it('also is one attempt: its decline takes nothing of the general rules', () => {
    const { limiter } = benchOf(...rules)
    expect(passedOf(burst(limiter, 10, someone, { also: 'parse' }))).toBe(2)
    expect(passedOf(burst(limiter, 10))).toBe(3)
  })

  it('a cost of several units is taken whole or not at all', () => {
    const { limiter } = benchOf(...rules)
    expect(limiter.decide(someone, { cost: 3 })).toMatchObject({
      allowed: true,
      remaining: 2,
      cost: 3,
    })
    expect(limiter.decide(someone, { cost: 3 })).toMatchObject({ allowed: false, remaining: 2 })
    expect(limiter.decide(someone, { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
    expect(limiter.decide(someone, { cost: 6 }).retryAfterMs).toBe(Infinity)
  })

  it('a cost of 0 passes, applies to no rule and leaves no trace', () => {
    const { limiter } = benchOf(ipRule({ limit: 0 }))
    const decision = limiter.decide(someone, { cost: 0 })
    expect(decision).toEqual({
      allowed: true,
      rule: null,
      limit: Infinity,
      remaining: Infinity,
      retryAfterMs: 0,
      resetMs: 0,
      cost: 0,
      verdicts: [],
    })
  })

  it.each([-1, 0.5, NaN, Infinity, -Infinity, 2 ** 53, '1', true, {}, 1n])(
    'a cost of %s is a RangeError, and takes nothing',
    (cost) => {
      const { limiter } = benchOf(...rules)
      const options = { cost: cost as number }
      expect(() => limiter.decide(someone, options)).toThrow(RangeError)
      expect(() => limiter.peek(someone, options)).toThrow(RangeError)
      expect(limiter.peek(someone).verdicts[0]?.usage).toBe(0)
    },
  )

  it('no facts at all: only global rules apply', () => {
    const { limiter } = benchOf(ipRule(), globalRule(5), ipRule({ name: 's', key: 'session' }))
    expect(namesOf(limiter.decide({}))).toEqual(['global'])
  })
})

describe('a decision', () => {
  it('tells of the rule with the least share remaining while all allow', () => {
    const { limiter } = benchOf(
      globalRule(100),
      ipRule({ limit: 10 }),
      ipRule({ name: 'wide', limit: 20 }),
    )
    expect(limiter.decide(someone)).toMatchObject({ rule: 'ip', limit: 10, remaining: 9 })
    burst(limiter, 50, { ip: '10.0.0.1' })
    burst(limiter, 80, { ip: '10.0.0.2' })
    for (let n = 0; n < 70; n++) limiter.decide({ ip: `10.0.1.${n}` })
    expect(limiter.decide(someone)).toMatchObject({ rule: 'global', limit: 100 })
  })

  it('tells of the first by name where two rules are level, whatever their order', () => {
    const level = ['beta', 'alpha'].map((name) => ipRule({ name }))
    for (const rules of [level, level.toReversed()]) {
      const limiter = createLimiter({ rules, clock: manualClock(epochMs) })
      expect(limiter.decide(someone).rule).toBe('alpha')
    }
  })

  it('tells of the longest wait among those that declined', () => {
    const { limiter } = benchOf(
      ipRule({ name: 'second', limit: 1, window: '1s' }),
      ipRule({ name: 'minute', limit: 1, window: '1m' }),
      globalRule(100, { window: '1h' }),
    )
    limiter.decide(someone)
    const decision = limiter.decide(someone)
    expect(decision).toMatchObject({
      allowed: false,
      rule: 'minute',
      limit: 1,
      retryAfterMs: 120_000,
    })
    expect(decision.verdicts.map(({ retryAfterMs }) => retryAfterMs)).toEqual([2_000, 120_000, 0])
  })

  it('waits for a strict rule that became full by the declined attempt itself', () => {
    const { limiter, at } = benchOf(
      ipRule({ name: 'second', limit: 1, window: '1s' }),
      ipRule({ name: 'strict', limit: 2, window: '1m', strict: true }),
    )
    limiter.decide(someone)
    const decision = limiter.decide(someone)
    // The strict rule allowed it, counted it, and is full: 2 · (120 − d) / 60 + 1 ≤ 2 from d = 90 s.
    expect(decision).toMatchObject({ allowed: false, rule: 'second', retryAfterMs: 90_000 })
    expect(verdictOf(decision, 'strict')).toMatchObject({
      allowed: true,
      retryAfterMs: 0,
      usage: 2,
    })
    at(89.999)
    expect(limiter.peek(someone).allowed).toBe(false)
    at(90)
    expect(limiter.peek(someone).allowed).toBe(true)
  })

  it('writes an endless wait as null in JSON', () => {
    const { limiter } = benchOf(ipRule({ limit: 0 }))
    const json = JSON.parse(JSON.stringify(limiter.decide(someone))) as Record<string, unknown>
    expect(json).toMatchObject({ retryAfterMs: null, verdicts: [{ retryAfterMs: null }] })
  })

  it('has exactly the fields of the contract', () => {
    const decision = benchOf(ipRule()).limiter.decide(someone)
    expect(Object.keys(decision).toSorted()).toEqual([
      'allowed',
      'cost',
      'limit',
      'remaining',
      'resetMs',
      'retryAfterMs',
      'rule',
      'verdicts',
    ])
    expect(decision.verdicts[0]).toMatchObject({
      rule: 'ip',
      mode: 'enforce',
      verdict: 'within',
      allowed: true,
      limit: 5,
      usage: 1,
      remaining: 4,
      retryAfterMs: 0,
    })
  })

  it('is not changed by later decisions', () => {
    const { limiter } = benchOf(ipRule())
    const first = limiter.decide(someone)
    const copy = structuredClone(first)
    burst(limiter, 9)
    expect(first).toEqual(copy)
  })
})

describe('the verdict', () => {
  it('is near strictly above the share of the limit, and over only where the rule itself declines', () => {
    expect(verdictsOf({ limit: 10 }, 12)).toEqual([
      ...Array.from({ length: 8 }, () => 'within'),
      'near',
      'near',
      'over',
      'over',
    ])
  })

  it('is near from the first attempt at 0, and never at 1', () => {
    expect(verdictsOf({ limit: 2, near: 0 }, 3)).toEqual(['near', 'near', 'over'])
    expect(verdictsOf({ limit: 2, near: 1 }, 3)).toEqual(['within', 'within', 'over'])
  })

  // 0.57 · 100 is 56.99999999999999 in doubles, and 57 of 100 is not above 57 %.
  it('is near strictly above every share of two decimals', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 100 }),
        fc.constantFrom(10, 100, 1_000),
        (share, limit) => {
          const { limiter } = benchOf(ipRule({ limit, near: share / 100 }))
          const edge = Math.floor((share * limit) / 100)
          const verdict = (cost: number) => limiter.peek(someone, { cost }).verdicts[0]?.verdict
          expect(edge === 0 || verdict(edge) === 'within').toBe(true)
          expect(edge === limit || verdict(edge + 1) === 'near').toBe(true)
        },
      ),
    )
    expect(
      benchOf(ipRule({ limit: 100, near: 0.57 })).limiter.peek(someone, { cost: 57 }),
    ).toMatchObject({
      verdicts: [{ verdict: 'within' }],
    })
  })

  it('of a rule that allows is not over because another declines', () => {
    const { limiter } = benchOf(ipRule({ limit: 0 }), globalRule(10))
    expect(limiter.decide(someone).verdicts.map(({ verdict }) => verdict)).toEqual([
      'over',
      'within',
    ])
  })

  it('takes the attempt into account as if it were allowed', () => {
    const { limiter } = benchOf(ipRule({ limit: 0 }), globalRule(10))
    expect(verdictOf(limiter.decide(someone, { cost: 9 }), 'global')).toMatchObject({
      verdict: 'near',
      usage: 0,
    })
  })
})

describe('adjust and reset', () => {
  it('adjust gives back and adds in the current window, never below 0', () => {
    const { limiter, at } = benchOf(ipRule())
    const usage = () => limiter.peek(someone).verdicts[0]?.usage
    burst(limiter, 3)
    limiter.adjust('ip', someone, -1)
    expect(usage()).toBe(2)
    limiter.adjust('ip', someone, -100)
    expect(usage()).toBe(0)
    limiter.adjust('ip', someone, 7)
    expect(usage()).toBe(7)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, remaining: 0 })
    at(90)
    limiter.adjust('ip', someone, -7)
    expect(usage()).toBe(3.5)
  })

  it('adjust of a key that is not tracked gives nothing back, and adds', () => {
    const { limiter } = benchOf(ipRule())
    limiter.adjust('ip', someone, -5)
    expect(limiter.peek(someone).remaining).toBe(5)
    limiter.adjust('ip', someone, 5)
    expect(limiter.decide(someone).allowed).toBe(false)
    expect(limiter.decide({ ip: '9.9.9.9' }).allowed).toBe(true)
  })

  it.each([0.5, NaN, Infinity, '1', null])('adjust by %s is a RangeError', (delta) => {
    const { limiter } = benchOf(ipRule())
    expect(() => limiter.adjust('ip', someone, delta as number)).toThrow(RangeError)
  })

  it('reset forgets one key of one rule', () => {
    const { limiter } = benchOf(ipRule({ limit: 1 }), globalRule(10))
    limiter.decide(someone)
    limiter.decide({ ip: '9.9.9.9' })
    limiter.reset('ip', someone)
    const decision = limiter.decide(someone)
    expect(decision.allowed).toBe(true)
    expect(verdictOf(decision, 'global')).toMatchObject({ usage: 3 })
    expect(limiter.decide({ ip: '9.9.9.9' }).allowed).toBe(false)
  })

  it('finds a key by its canonical address', () => {
    const { limiter } = benchOf(ipRule({ limit: 1 }))
    limiter.decide({ ip: '::ffff:1.2.3.4' })
    limiter.reset('ip', { ip: '1.2.3.4' })
    expect(limiter.decide({ ip: '[::ffff:102:304]:80' }).allowed).toBe(true)
  })

  it('a rule that does not exist is named, with those that do', () => {
    const { limiter } = benchOf(ipRule(), globalRule(5))
    for (const call of [
      () => limiter.reset('nope', someone),
      () => limiter.adjust('nope', someone, 1),
      () => limiter.configure('nope', { limit: 1 }),
    ]) {
      expect(messageOf(call)).toBe(
        'No such rule: must be one of ip, global: received "nope" (TALLYGATE_RULE_NAME)',
      )
    }
  })
})

describe('configure', () => {
  it('drops with an algorithm the fields that only that had, unless they are given anew', () => {
    const options = { algorithm: 'token-bucket', limit: 5, burst: 9 } as const
    const { limiter } = benchOf(ipRule(options))
    expect(limiter.decide(someone).limit).toBe(9)
    limiter.configure('ip', { algorithm: 'sliding-window' })
    expect(limiter.decide(someone).limit).toBe(5)
    limiter.configure('ip', { algorithm: 'token-bucket' })
    expect(limiter.decide(someone).limit).toBe(5)
    expect(
      messageOf(() => limiter.configure('ip', { algorithm: 'exponential', burst: 3 })),
    ).toContain('burst is for algorithm token-bucket alone')
    expect(limiter.decide(someone).remaining).toBe(3)
  })

  it('limit keeps the state, up and down', () => {
    const { limiter } = benchOf(ipRule())
    burst(limiter, 5)
    limiter.configure('ip', { limit: 7 })
    expect(passedOf(burst(limiter, 5))).toBe(2)
    limiter.configure('ip', { limit: 3 })
    expect(limiter.peek(someone)).toMatchObject({ allowed: false, limit: 3, remaining: 0 })
    expect(limiter.peek(someone).verdicts[0]?.usage).toBe(7)
  })

  it('mode keeps the state', () => {
    const { limiter } = benchOf(ipRule())
    burst(limiter, 5)
    limiter.configure('ip', { mode: 'shadow' })
    expect(limiter.decide(someone)).toMatchObject({ allowed: true, rule: null })
    limiter.configure('ip', { mode: 'disabled' })
    expect(limiter.decide(someone).verdicts).toEqual([])
    limiter.configure('ip', { mode: 'enforce' })
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, rule: 'ip' })
  })

  it('near keeps the state', () => {
    const { limiter } = benchOf(ipRule({ limit: 10 }))
    burst(limiter, 5)
    limiter.configure('ip', { near: 0.5 })
    expect(limiter.decide(someone).verdicts[0]).toMatchObject({ verdict: 'near', usage: 6 })
  })

  it('a changed window starts the rule afresh, the same one does not', () => {
    const { limiter } = benchOf(ipRule(), globalRule(20))
    burst(limiter, 5)
    limiter.configure('ip', { window: 60_000 })
    expect(limiter.peek(someone).allowed).toBe(false)
    limiter.configure('ip', { window: '2m' })
    expect(passedOf(burst(limiter, 6))).toBe(5)
    expect(verdictOf(limiter.peek(someone), 'global')).toMatchObject({ usage: 10 })
  })

  it('what is impossible changes nothing', () => {
    const { limiter } = benchOf(ipRule())
    burst(limiter, 4)
    for (const changes of [
      { limit: -1 },
      { window: '0s' },
      { mode: 'off' },
      { near: 2 },
      { limt: 1 },
    ]) {
      expect(messageOf(() => limiter.configure('ip', changes as object))).toContain("rule 'ip'")
    }
    expect(limiter.decide(someone)).toMatchObject({ allowed: true, limit: 5, remaining: 0 })
  })

  it('cannot give a rule the name of another', () => {
    const { limiter } = benchOf(ipRule(), globalRule(20))
    expect(() => limiter.configure('ip', { name: 'global', limit: 1 } as object)).toThrow(
      "Cannot change rule 'ip': name stays as it was created",
    )
    expect(limiter.decide(someone).rule).toBe('ip')
  })
})

describe('close', () => {
  it('may be called twice', () => {
    const { limiter } = benchOf(ipRule())
    limiter.close()
    expect(() => limiter.close()).not.toThrow()
  })
})

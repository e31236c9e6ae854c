/*
 * A limit that is a function of the facts: each key by its own plan, all plans in one table.
 */
import { algorithmNames } from '../support/algorithm-harness.js'
import { describe, expect, it } from 'vitest'
import { shownLimit } from '../../src/core/plans.js'
import { compileRules, type RuleOptions } from '../../src/core/rule.js'
import type { Decision, Facts } from '../../src/limiter/index.js'
import { RuleLimiter } from '../../src/limiter/limiter.js'
import { Recorder } from '../../src/metrics/recorder.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { manualClock } from '../../src/testing/index.js'
import {
  benchOf,
  burst,
  epochMs,
  ipRule,
  messageOf,
  passedOf,
  observerOf,
} from '../support/units/limits.js'

const plans: Readonly<Record<string, number>> = { free: 2, pro: 5, none: 0 }

/** The plan stands in a header. */
const limit = ({ headers }: Facts) => plans[String(headers?.['x-plan'])] ?? NaN

const client = (ip: string, plan: string): Facts => ({ ip, headers: { 'x-plan': plan } })
const free = client('1.1.1.1', 'free')
const pro = client('2.2.2.2', 'pro')

function watched(options: RuleOptions) {
  const clock = manualClock(epochMs)
  const rules = compileRules([options])
  const recorder = new Recorder(1)
  const store = new MemoryStore(rules, clock)
  const limiter = new RuleLimiter(
    [options],
    rules,
    store,
    observerOf(recorder.judged.bind(recorder)),
  )
  const rule = () => limiter.rule(options.name)
  return {
    limiter,
    clock,
    rule,
    decide: (facts: Facts) => limiter.decide(facts) as Decision,
    utilization: () => recorder.utilization(rule(), clock.monotonicMs()),
  }
}

describe('a limit that is a function', () => {
  it.each(algorithmNames)('holds each client to its own plan by %s', (algorithm) => {
    const { limiter } = benchOf(ipRule({ limit, algorithm }))
    for (const [facts, most] of [
      [free, 2],
      [pro, 5],
      [client('3.3.3.3', 'none'), 0],
    ] as const) {
      const decisions = burst(limiter, 7, facts)
      expect(passedOf(decisions)).toBe(most)
      expect(decisions.at(-1)).toMatchObject({ limit: most, remaining: 0, rule: 'ip' })
    }
  })

  it('keeps the usage of a key that goes over to another plan', () => {
    const { limiter } = benchOf(ipRule({ limit }))
    expect(passedOf(burst(limiter, 3, free))).toBe(2)
    expect(passedOf(burst(limiter, 9, client('1.1.1.1', 'pro')))).toBe(3)
    expect(limiter.peek(free)).toMatchObject({ allowed: false, limit: 2, remaining: 0 })
    expect(limiter.peek(free).verdicts[0]?.usage).toBe(5)
  })

  it('is asked once an attempt, and not where the rule does not apply', () => {
    let asked = 0
    const counting = () => 5 + 0 * ++asked
    const { limiter } = benchOf(
      ipRule({ limit: counting, match: { paths: ['/a'] }, candidates: [{ limit: 3 }] }),
    )
    limiter.decide({ ip: '1.1.1.1', path: '/a' })
    expect(asked).toBe(1)
    limiter.decide({ ip: '1.1.1.1', path: '/b' })
    limiter.decide({ path: '/a' })
    limiter.decide({ ip: '1.1.1.1', path: '/a' }, { cost: 0 })
    expect(asked).toBe(1)
  })

  it.each([NaN, Infinity, -1, 2.5, 2 ** 32, '5', null, undefined, {}, true, 5n])(
    'that gives %s is a RangeError that names the rule, and takes nothing',
    (given) => {
      let isWrong = false
      const { limiter } = benchOf(ipRule({ limit: (() => (isWrong ? given : 5)) as never }))
      limiter.decide(free)
      isWrong = true
      expect(() => limiter.decide(free)).toThrow(RangeError)
      expect(messageOf(() => limiter.decide(free))).toContain(
        "the limit of rule 'ip' must be a whole number from 0 to 4294967295: its function gave ",
      )
      isWrong = false
      expect(limiter.peek(free).verdicts[0]?.usage).toBe(1)
    },
  )

  it('takes −0 for 0 and the largest limit for what it is', () => {
    expect(benchOf(ipRule({ limit: () => -0 })).limiter.decide(free)).toMatchObject({
      allowed: false,
      limit: 0,
    })
    expect(benchOf(ipRule({ limit: () => 2 ** 32 - 1 })).limiter.decide(free).allowed).toBe(true)
  })

  it('that is async is refused at the start, and a promise when it is given', () => {
    expect(messageOf(() => benchOf(ipRule({ limit: (async () => 5) as never })))).toContain(
      'not by an async function',
    )
    const { limiter } = benchOf(ipRule({ limit: (() => Promise.resolve(5)) as never }))
    expect(() => limiter.decide(free)).toThrow(TypeError)
  })

  it('in a file is refused with a word about code', () => {
    expect(messageOf(() => benchOf(ipRule({ limit: '(facts) => 5' as never })))).toContain(
      'limit must be a whole number from 0 to 4294967295: received "(facts) => 5" ' +
        '(a function is for rules in code',
    )
  })

  it('gives at most 64 numbers, and says so', () => {
    let next = 0
    const { limiter } = benchOf(ipRule({ limit: () => ++next }))
    for (let turn = 0; turn < 64; turn++) limiter.decide(free)
    expect(messageOf(() => limiter.decide(free))).toBe(
      "Cannot decide: the limit of rule 'ip' must be one of at most 64 numbers: " +
        'its function gave one more, 65',
    )
    next = 9
    expect(limiter.decide(free).limit).toBe(10)
  })

  it('of a rolling-window ends where its entries do', () => {
    const rolling = { algorithm: 'rolling-window', maxEntries: 500 } as const
    const { limiter } = benchOf(ipRule({ ...rolling, limit: () => 501 }))
    expect(messageOf(() => limiter.decide(free))).toContain('from 0 to 500: its function gave 501')
    const { limiter: wide } = benchOf(ipRule({ algorithm: 'rolling-window', limit: () => 10_001 }))
    expect(messageOf(() => wide.decide(free))).toContain('from 0 to 10000')
  })

  it('leaves no room for a burst', () => {
    const options = ipRule({ algorithm: 'token-bucket', burst: 9, limit })
    expect(messageOf(() => benchOf(options))).toContain(
      'burst must be left out where limit is a function',
    )
  })

  it('has its own near', () => {
    const { limiter } = benchOf(ipRule({ limit }))
    const verdicts = (facts: Facts) =>
      burst(limiter, 6, facts).map(({ verdicts: [one] }) => one?.verdict)
    expect(verdicts(free)).toEqual(['within', 'near', 'over', 'over', 'over', 'over'])
    expect(verdicts(pro)).toEqual(['within', 'within', 'within', 'within', 'near', 'over'])
  })
})

describe('a live change of a limit that is a function', () => {
  it('to a number puts that in its place, for every plan', () => {
    const { limiter } = benchOf(ipRule({ limit }))
    burst(limiter, 2, free)
    limiter.configure('ip', { limit: 3 })
    expect(passedOf(burst(limiter, 5, free))).toBe(1)
    expect(passedOf(burst(limiter, 5, pro))).toBe(3)
  })

  it('from a number keeps what was used', () => {
    const { limiter, clock } = benchOf(ipRule({ algorithm: 'token-bucket', limit: 4 }))
    burst(limiter, 4, pro)
    limiter.configure('ip', { limit })
    clock.advance(1)
    // A new key sweeps; before any plan is known nothing may be swept as if it were full again.
    limiter.decide(free)
    expect(passedOf(burst(limiter, 9, pro))).toBe(1)
  })

  it('of its mode keeps the greatest limit that was given', () => {
    const { limiter, rule, decide } = watched(ipRule({ limit }))
    expect(shownLimit(rule())).toBe(0)
    decide(pro)
    decide(free)
    expect(shownLimit(rule())).toBe(5)
    limiter.configure('ip', { mode: 'shadow' })
    expect(shownLimit(rule())).toBe(5)
    expect(decide(free).verdicts[0]).toMatchObject({ mode: 'shadow', limit: 2 })
    limiter.configure('ip', { limit: 3 })
    expect(shownLimit(rule())).toBe(3)
  })

  it('leaves receipts good for a refund', () => {
    const { limiter } = watched(ipRule({ limit }))
    const attempt = limiter.attempt(pro)
    if (attempt instanceof Promise) throw new Error('the memory store answers at once')
    limiter.configure('ip', { mode: 'shadow' })
    expect((limiter.peek(pro) as Decision).verdicts[0]?.usage).toBe(1)
    void limiter.refund(attempt)
    expect((limiter.peek(pro) as Decision).verdicts[0]?.usage).toBe(0)
  })
})

describe('keys of several plans', () => {
  it('are adjusted and reset by the plan of the facts', () => {
    const { limiter } = benchOf(ipRule({ limit, algorithm: 'rolling-window' }))
    limiter.adjust('ip', pro, 4)
    expect(passedOf(burst(limiter, 3, pro))).toBe(1)
    limiter.reset('ip', pro)
    expect(passedOf(burst(limiter, 9, pro))).toBe(5)
  })

  it('MEM-04: an exhausted one is not freed by a flood of a plan with a higher limit', () => {
    const { limiter } = benchOf(ipRule({ limit, maxKeys: 1_000 }))
    burst(limiter, 1, client('9.9.9.9', 'free'))
    burst(limiter, 2, free)
    for (let n = 0; n < 5_000; n++) {
      limiter.decide(client(`10.0.${n >> 8}.${n & 255}`, 'pro'))
    }
    expect(limiter.decide(free).allowed).toBe(false)
  })

  it('are swept by the least limit, so that no bucket is taken for full early', () => {
    const { limiter, decide, clock } = watched(ipRule({ limit, algorithm: 'token-bucket' }))
    for (let turn = 0; turn < 2; turn++) decide(free)
    decide(pro)
    // A second refills 5/60 of a token for one and 2/60 for the other.
    clock.advance(30_000)
    limiter.store.sweep()
    expect((limiter.peek(free) as Decision).verdicts[0]?.usage).toBe(1)
  })

  it('show the highest share that one has of its own limit', () => {
    const { limiter, decide, utilization } = watched(ipRule({ limit }))
    for (let turn = 0; turn < 2; turn++) decide(pro)
    expect(utilization()).toBe(0.4)
    decide(free)
    expect(utilization()).toBe(0.5)
    decide(client('3.3.3.3', 'none'))
    expect(utilization()).toBe(1)
    limiter.configure('ip', { limit: 10 })
    expect(utilization()).toBe(0)
    decide(pro)
    expect(utilization()).toBe(0.3)
  })
})

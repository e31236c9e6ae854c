/*
 * Candidates: other limits judged beside a rule on the same keys. Each decides as if it were alone, is told
 * to the observer, and never shows in what a client is answered.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verdicts, type Decision } from '../../src/core/decision.js'
import {
  compileRule,
  compileRules,
  type CompiledRule,
  type RuleOptions,
} from '../../src/core/rule.js'
import { RuleLimiter, type Attempt } from '../../src/limiter/limiter.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { manualClock } from '../../src/testing/index.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import {
  benchOf,
  burst,
  epochMs,
  ipRule,
  messageOf,
  observerOf,
  passedOf,
  someone,
} from '../support/units/limits.js'

interface Judged {
  rule: CompiledRule
  verdict: string
  usage: number
}

/** A limiter whose observer keeps what it was told. */
function watched(...options: RuleOptions[]) {
  const clock = manualClock(epochMs)
  const rules = compileRules(options)
  const judged: Judged[] = []
  const observer = observerOf((rule, verdict, _key, _cost, { usage }) => {
    judged.push({ rule, verdict: verdicts[verdict] ?? '', usage })
  })
  const store = new MemoryStore(rules, clock)
  const limiter = new RuleLimiter(options, rules, store, observer)
  return {
    clock,
    limiter,
    store,
    judged,
    of: (label: string) => judged.filter((one) => one.rule.label === label),
  }
}

const decide = (limiter: RuleLimiter, cost = 1) => limiter.decide(someone, { cost }) as Decision

const labelsOf = (rule: CompiledRule) => rule.candidates.map(({ label }) => label)

describe('a compiled candidate', () => {
  const rule = compileRule(
    ipRule({
      limit: 200,
      strict: true,
      near: 0.5,
      maxKeys: 77,
      ipv6Prefix: 56,
      candidates: [
        { limit: 300 },
        { limit: 300, window: '2m' },
        { limit: 300, algorithm: 'rolling-window' },
        { limit: 300, window: 90_000, algorithm: 'token-bucket' },
        { limit: 7, algorithm: 'sliding-window' },
        { limit: 0, window: undefined, algorithm: undefined },
      ],
    }),
    0,
    1,
  )

  it('is labelled by limit and window, and by the algorithm where it is another one', () => {
    expect(labelsOf(rule)).toEqual([
      '300/1m',
      '300/2m',
      '300/1m/rolling-window',
      '300/90s/token-bucket',
      '7/1m',
      '0/1m',
    ])
  })

  it('has what it states, in shadow, and all else from its rule', () => {
    for (const candidate of rule.candidates) {
      expect(candidate).toMatchObject({
        name: 'ip',
        key: 'ip',
        strict: true,
        near: 0.5,
        maxKeys: 77,
        ipv6Prefix: 56,
        mode: 'shadow',
        persist: false,
        candidateOf: 'ip',
        candidates: [],
      })
      expect(Object.isFrozen(candidate)).toBe(true)
    }
    expect(rule).toMatchObject({ candidateOf: null, label: '', mode: 'enforce' })
    expect(rule.candidates.map(({ windowMs }) => windowMs)).toEqual([
      60_000, 120_000, 60_000, 90_000, 60_000, 60_000,
    ])
  })

  it('has an index of its own after all rules', () => {
    const two = [{ limit: 1 }, { limit: 2 }]
    const rules = compileRules([
      ipRule({ name: 'a', candidates: two }),
      ipRule({ name: 'b' }),
      ipRule({ name: 'c', candidates: two }),
    ])
    expect(rules.map(({ index }) => index)).toEqual([0, 1, 2])
    expect(rules.flatMap((one) => one.candidates.map(({ index }) => index))).toEqual([3, 4, 5, 6])
  })

  it('keeps the fields of its own algorithm, and none of another one', () => {
    const { candidates } = compileRule(
      ipRule({
        algorithm: 'rolling-window',
        minInterval: '1s',
        maxEntries: 500,
        candidates: [{ limit: 9 }, { limit: 9, algorithm: 'exponential' }],
      }),
      0,
    )
    expect(candidates).toMatchObject([
      { minIntervalMs: 1_000, maxEntries: 500 },
      { minIntervalMs: 0, maxAgeMs: Infinity },
    ])
    const [wide] = compileRule(
      ipRule({ algorithm: 'token-bucket', burst: 50, candidates: [{ limit: 9 }] }),
      0,
    ).candidates
    expect(wide).toMatchObject({ limit: 9, capacity: 9 })
  })

  it.each([
    [{ limit: -1 }, 'limit must be a whole number'],
    [{ window: '2m' }, 'limit must be a whole number from 0 to 4294967295: received nothing'],
    [{ limit: () => 5 }, 'limit must be a whole number: received a function'],
    [{ limit: 5, window: '0s' }, 'window must be a span'],
    [{ limit: 5, algorithm: 'sliding' }, 'algorithm must be sliding-window'],
    [{ limit: 10_001, algorithm: 'rolling-window' }, 'limit must be at most 10000'],
    [{ limit: 5, mode: 'enforce' }, "unknown field 'mode'"],
    [{ limit: 5, windw: '1m' }, "unknown field 'windw': did you mean window?"],
    [{ limit: 5, burst: 9 }, "unknown field 'burst'"],
    [{ limit: 5, candidates: [] }, "unknown field 'candidates'"],
    [{ limit: 5, max: 9 }, "unknown field 'max': did you mean limit?"],
  ])('%j is refused, naming rule, candidate and field', (candidate, why) => {
    const rules = [{ ...ipRule(), candidates: [{ limit: 1 }, candidate] }]
    const message = messageOf(() => compileRules(rules))
    expect(message).toContain(`Cannot create rule 'ip', candidate ${JSON.stringify(candidate)}: `)
    expect(message).toContain(why)
  })

  // Two series of one label would make the whole scrape unreadable.
  it('that equals another one, however it is spelt, is refused', () => {
    for (const candidates of [
      [{ limit: 300 }, { limit: 300 }],
      [{ limit: 300 }, { limit: 300, window: '60s' }],
      [{ limit: 300 }, { limit: 300, algorithm: 'sliding-window' as const }],
    ]) {
      const message = messageOf(() => compileRules([ipRule({ candidates })]))
      expect(message).toContain("Cannot create rule 'ip'")
      expect(message).toContain('300/1m')
    }
  })
})

describe('a limiter with candidates', () => {
  it('answers as if there were none', () => {
    const bare = ipRule({ limit: 3 })
    const candidates = [{ limit: 0 }, { limit: 1 }, { limit: 9, algorithm: 'exponential' as const }]
    const [without, with_] = [benchOf(bare), benchOf({ ...bare, candidates })]
    for (let turn = 0; turn < 40; turn++) {
      without.clock.advance(turn * 300)
      with_.clock.advance(turn * 300)
      const asked = { cost: 1 + (turn % 3) }
      expect(with_.limiter.peek(someone, asked)).toEqual(without.limiter.peek(someone, asked))
      expect(with_.limiter.decide(someone, asked)).toEqual(without.limiter.decide(someone, asked))
    }
  })

  it('tells its observer of each, beside the rule and on the same key', () => {
    const { limiter, of } = watched(ipRule({ limit: 3, candidates: [{ limit: 1 }, { limit: 5 }] }))
    for (let turn = 0; turn < 7; turn++) decide(limiter)
    expect(of('').map(({ verdict }) => verdict)).toEqual([
      'within',
      'within',
      'near',
      'over',
      'over',
      'over',
      'over',
    ])
    expect(of('1/1m').map(({ verdict }) => verdict)).toEqual([
      'near',
      'over',
      'over',
      'over',
      'over',
      'over',
      'over',
    ])
    // It allows what the rule declines: it lives as if it alone decided.
    expect(of('5/1m').map(({ verdict, usage }) => [verdict, usage])).toEqual([
      ['within', 1],
      ['within', 2],
      ['within', 3],
      ['within', 4],
      ['near', 5],
      ['over', 5],
      ['over', 5],
    ])
  })

  it('judges candidates of each algorithm as that rule alone would', () => {
    const step = fc.record({
      gapMs: fc.nat(40_000),
      cost: fc.constantFrom(1, 1, 2),
      who: fc.nat(2),
    })
    const candidate = fc.record({
      limit: fc.integer({ min: 0, max: 6 }),
      window: fc.constantFrom('30s', '1m', '2m'),
      algorithm: fc.constantFrom(...algorithmNames),
    })
    const list = fc.uniqueArray(candidate, {
      maxLength: 5,
      selector: ({ limit, window, algorithm }) => `${limit} ${window} ${algorithm}`,
    })
    fc.assert(
      fc.property(
        fc.boolean(),
        list,
        fc.array(step, { maxLength: 30 }),
        (strict, candidates, taken) => {
          const { limiter, clock, judged } = watched(ipRule({ limit: 2, strict, candidates }))
          const alone = candidates.map((fields) => benchOf(ipRule({ ...fields, strict })))
          for (const { gapMs, cost, who } of taken) {
            const facts = { ip: `10.0.0.${who}` }
            clock.advance(gapMs)
            judged.length = 0
            void limiter.decide(facts, { cost })
            const answers = alone.map((bench) => {
              bench.clock.advance(gapMs)
              const [verdict] = bench.limiter.decide(facts, { cost }).verdicts
              return { verdict: verdict?.verdict, usage: verdict?.usage }
            })
            const beside = judged.filter(({ rule }) => rule.candidateOf === 'ip')
            expect(beside.map(({ verdict, usage }) => ({ verdict, usage }))).toEqual(answers)
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  it('asks them only where their rule applies', () => {
    const { limiter, judged } = watched(
      ipRule({ name: 'parse', function: 'parse', candidates: [{ limit: 1 }] }),
      ipRule({ name: 'off', mode: 'disabled', candidates: [{ limit: 1 }] }),
      ipRule({ name: 'session', key: 'session', absent: 'skip', candidates: [{ limit: 1 }] }),
    )
    decide(limiter)
    expect(judged).toEqual([])
    void limiter.decide(someone, { also: 'parse' })
    expect(judged.map(({ rule }) => `${rule.name} ${rule.label}`)).toEqual(['parse ', 'parse 1/1m'])
  })

  it('a peek tells nobody and moves nothing', () => {
    const { limiter, judged, of } = watched(ipRule({ candidates: [{ limit: 1 }] }))
    for (let turn = 0; turn < 5; turn++) void limiter.peek(someone)
    expect(judged).toEqual([])
    decide(limiter)
    expect(of('1/1m')).toMatchObject([{ verdict: 'near', usage: 1 }])
  })

  it('reset and adjust reach them, a refund of the rule does not', () => {
    const { limiter, of } = watched(ipRule({ limit: 9, candidates: [{ limit: 20 }] }))
    const lastUsage = () => of('20/1m').at(-1)?.usage
    const attempt = limiter.attempt(someone, { cost: 4 }) as Attempt
    expect(attempt.receipts.map(({ rule }) => rule.label)).toEqual([''])
    void limiter.refund(attempt)
    decide(limiter)
    expect(lastUsage()).toBe(5)
    void limiter.adjust('ip', someone, 3)
    decide(limiter)
    expect(lastUsage()).toBe(9)
    void limiter.reset('ip', someone)
    decide(limiter)
    expect(lastUsage()).toBe(1)
  })

  it('cannot be changed while it runs', () => {
    const { limiter } = benchOf(ipRule({ candidates: [{ limit: 1 }] }))
    expect(messageOf(() => limiter.configure('ip', { candidates: [] } as object))).toContain(
      "Cannot change rule 'ip': candidates stays as it was created",
    )
  })
})

describe('candidates while their rule is changed', () => {
  const rules = () => [
    ipRule({ name: 'first', limit: 50, candidates: [{ limit: 60 }] }),
    ipRule({ limit: 3, candidates: [{ limit: 20 }, { limit: 20, window: '5m' }] }),
  ]
  const labelled = (rule: CompiledRule) => rule.candidates.map(({ index, label }) => [index, label])

  it('a changed limit keeps the state of both, and their places', () => {
    const { limiter, of } = watched(...rules())
    for (let turn = 0; turn < 5; turn++) decide(limiter)
    limiter.configure('ip', { limit: 100 })
    expect(labelled(limiter.rule('ip'))).toEqual([
      [3, '20/1m'],
      [4, '20/5m'],
    ])
    decide(limiter)
    expect([of('20/1m').at(-1)?.usage, of('20/5m').at(-1)?.usage]).toEqual([6, 6])
    expect(of('60/1m').at(-1)?.usage).toBe(6)
  })

  it('a changed window starts those afresh that have it from the rule, and no others', () => {
    const { limiter, of } = watched(...rules())
    for (let turn = 0; turn < 2; turn++) decide(limiter)
    limiter.configure('ip', { window: '2m' })
    expect(labelled(limiter.rule('ip'))).toEqual([
      [3, '20/2m'],
      [4, '20/5m'],
    ])
    decide(limiter)
    expect(of('20/2m').at(-1)?.usage).toBe(1)
    expect(of('20/5m').at(-1)?.usage).toBe(3)
    expect(of('60/1m').at(-1)?.usage).toBe(3)
  })

  it('a changed algorithm goes over to those that have it from the rule', () => {
    const { limiter, of } = watched(...rules())
    decide(limiter)
    limiter.configure('ip', { algorithm: 'token-bucket', burst: 7 })
    expect(limiter.rule('ip').candidates.map(({ algorithm }) => algorithm.name)).toEqual([
      'token-bucket',
      'token-bucket',
    ])
    decide(limiter)
    expect([of('20/1m').at(-1)?.usage, of('20/5m').at(-1)?.usage]).toEqual([1, 1])
  })

  it('a disabled rule takes its candidates with it, and brings them back as they were', () => {
    const { limiter, judged, of } = watched(...rules())
    decide(limiter)
    limiter.configure('ip', { mode: 'disabled' })
    judged.length = 0
    decide(limiter)
    expect(judged.map(({ rule }) => rule.name)).toEqual(['first', 'first'])
    limiter.configure('ip', { mode: 'enforce' })
    decide(limiter)
    expect(of('20/1m').at(-1)?.usage).toBe(2)
  })

  it('what is impossible for a candidate changes nothing', () => {
    const { limiter } = watched(ipRule({ limit: 5, candidates: [{ limit: 20_000 }] }))
    expect(messageOf(() => limiter.configure('ip', { algorithm: 'rolling-window' }))).toContain(
      'candidate {"limit":20000}: limit must be at most 10000',
    )
    expect(limiter.rule('ip').algorithm.name).toBe('sliding-window')
    expect(passedOf([decide(limiter)])).toBe(1)
  })

  // The list that was handed in is the caller's: what becomes of it later is no live change.
  it('the list that was handed in may change without a trace', () => {
    const candidates = [{ limit: 20 }]
    const { limiter } = benchOf(ipRule({ limit: 3, candidates }))
    const inner = watched(ipRule({ limit: 3, candidates }))
    candidates[0] = { limit: 99 }
    candidates.push({ limit: 7 })
    limiter.configure('ip', { limit: 4 })
    expect(passedOf(burst(limiter, 9))).toBe(4)
    inner.limiter.configure('ip', { limit: 4 })
    expect(labelsOf(inner.limiter.rule('ip'))).toEqual(['20/1m'])
  })

  it('an entry of that list may change without a trace', () => {
    const candidate = { limit: 20 }
    const { limiter } = watched(ipRule({ limit: 3, candidates: [candidate] }))
    candidate.limit = 99
    limiter.configure('ip', { limit: 4 })
    expect(labelsOf(limiter.rule('ip'))).toEqual(['20/1m'])
  })
})

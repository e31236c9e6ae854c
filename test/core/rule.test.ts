/*
 * Rules as somebody writes them: defaults, every value that is refused, and the words of each refusal,
 * which name the rule, the field, what was received and what would be right.
 */
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { TallygateError } from '../../src/core/errors.js'
import { ruleFields } from '../../src/core/rule-fields.js'
import { compileRule, compileRules } from '../../src/core/rule.js'
import { algorithms } from '../../src/core/algorithms/index.js'
import { createLimiter } from '../../src/limiter/index.js'
import { benchOf, burst, ipRule, messageOf, passedOf, someone } from '../support/units/limits.js'

const valid = { name: 'login', limit: 5, window: '1m' }

const refusal = (fields: Record<string, unknown>) =>
  messageOf(() => compileRules([{ ...valid, ...fields }]))

/** Accepted by nothing: what a numeric field must not be. */
const noNumbers = [NaN, '6O', '', '10abc', null, Infinity, -Infinity, -1, [], {}, true, 1n]

const nineCandidates = Array.from({ length: 9 }, (_, limit) => ({ limit }))

describe('a compiled rule', () => {
  it('has the documented defaults', () => {
    const { algorithm, ...rule } = compileRule(valid, 3)
    expect(algorithm.name).toBe('sliding-window')
    expect(rule).toEqual({
      index: 3,
      name: 'login',
      key: 'global',
      keyParts: [],
      limit: 5,
      capacity: 5,
      plans: null,
      planOf: null,
      windowMs: 60_000,
      minIntervalMs: 0,
      maxAgeMs: Infinity,
      maxEntries: 1_000_000,
      strict: false,
      function: null,
      match: null,
      isPlain: true,
      mode: 'enforce',
      near: 0.8,
      nearUsage: 4 * (1 + 2 ** -50),
      absent: 'skip',
      maxKeys: 1_000_000,
      ipv6Prefix: 64,
      expose: false,
      persist: false,
      candidates: [],
      candidateOf: null,
      label: '',
    })
  })

  it('counts a missing session by its address unless told otherwise', () => {
    expect(compileRule({ ...valid, key: 'session' }, 0).absent).toBe('address')
    expect(compileRule({ ...valid, key: 'session', absent: 'skip' }, 0).absent).toBe('skip')
    expect(compileRule({ ...valid, key: 'ip' }, 0).absent).toBe('skip')
  })

  it('is exposed unless its key is global', () => {
    const exposed = ['global', 'ip', 'session'].map(
      (key) => compileRule({ ...valid, key }, 0).expose,
    )
    expect(exposed).toEqual([false, true, true])
    expect(compileRule({ ...valid, expose: true }, 0).expose).toBe(true)
  })

  it('is to persist where its window is an hour or longer, unless told otherwise', () => {
    const persists = ['59m', '3599999ms', '1h', '1d'].map(
      (window) => compileRule({ ...valid, window }, 0).persist,
    )
    expect(persists).toEqual([false, false, true, true])
    expect(compileRule({ ...valid, persist: true }, 0).persist).toBe(true)
    expect(compileRule({ ...valid, window: '1d', persist: false }, 0).persist).toBe(false)
  })

  it('CFG-03: takes undefined for the default of every optional field, known or not', () => {
    const nothing = Object.fromEntries(
      [...Object.keys(ruleFields), 'unheard-of'].map((field) => [field, undefined]),
    )
    expect(compileRule({ ...nothing, ...valid }, 0)).toEqual(compileRule(valid, 0))
  })

  it('is frozen', () => {
    expect(Object.isFrozen(compileRule(valid, 0))).toBe(true)
  })

  it('takes the whole range of limits and windows', () => {
    for (const limit of [0, 1, 2 ** 32 - 1]) {
      expect(compileRule({ ...valid, limit }, 0).limit).toBe(limit)
    }
    for (const window of ['1ms', 1, '366d', 366 * 86_400_000]) {
      expect(compileRule({ ...valid, window }, 0).windowMs).toBeGreaterThan(0)
    }
  })
})

describe('a refused value', () => {
  for (const field of ['limit', 'window']) {
    it(`CFG-03: ${field} that is no number names rule, field, value and what would be right`, () => {
      for (const value of noNumbers) {
        const message = refusal({ [field]: value })
        expect(message).toMatch(
          new RegExp(`^Cannot create rule 'login': ${field} must be .+: received `),
        )
        expect(message).toMatch(/\(TALLYGATE_RULE_VALUE\)$/)
      }
      const { [field]: _, ...without } = valid as Record<string, unknown>
      expect(messageOf(() => compileRules([without]))).toContain(`${field} must be `)
      expect(messageOf(() => compileRules([without]))).toContain('received nothing')
    })
  }

  it('CFG-03: shows the value as it came', () => {
    expect(refusal({ limit: '6O' })).toContain('received "6O"')
    expect(refusal({ limit: NaN })).toContain('received NaN')
    expect(refusal({ limit: -3 })).toContain('a whole number from 0 to 4294967295: received -3')
    expect(refusal({ window: null })).toContain('received null')
    expect(refusal({ window: '' })).toContain('received ""')
  })

  it.each([
    ['name', ['', 'A', '1a', '-a', 'a b', 'a_b', 'a.b', 'é', 'a'.repeat(65), 7, null, 'a\nb']],
    ['key', ['', 'IP', 'user', null, 1, 'header', 'header:', 'header:a b', 'Header:a', [], ['ip']]],
    ['match', ['/login', null, 5, [], {}, { paths: [] }, { methods: 'POST' }, { paths: [5] }]],
    ['limit', [2 ** 32, 2.5, '10', 1e300]],
    ['window', [0, '0s', '367d', '53w', 2.5, '60', '1 m', 366 * 86_400_000 + 1]],
    ['algorithm', ['', 'sliding', 'Sliding-Window', null, 1]],
    ['strict', ['true', 1, null, 'yes']],
    ['function', ['', 'Parse', 'a b', null, 1]],
    ['mode', ['', 'off', 'enforced', null]],
    ['near', [-0.1, 1.1, NaN, '0.8', null, Infinity]],
    ['absent', ['', 'deny', null]],
    ['maxKeys', [0, -1, 1.5, '10', null, NaN, Infinity, 2 ** 27 + 1]],
    ['burst', [0, -1, 2.5, '10', null, NaN, Infinity, 2 ** 32]],
    ['minInterval', [-1, '1 s', 2.5, '', null, NaN, '367d', true]],
    ['maxAge', [0, '0s', -1, 2.5, '', null, NaN, '367d', true]],
    ['maxEntries', [0, -1, 1.5, '10', null, NaN, Infinity, 2 ** 27 + 1]],
    ['candidates', ['300/1m', {}, null, 5, [5], ['300/1m'], [null], nineCandidates]],
    ['ipv6Prefix', [0, 129, 64.5, '64', null, NaN]],
    ['expose', ['true', 0, null]],
    ['persist', ['true', 1, null, 'yes']],
  ])('of %s names the field', (field, values) => {
    for (const value of values) {
      const message = refusal({ [field]: value })
      expect(message).toContain(`: ${field} must be `)
      expect(message).toContain('received ')
      expect(message.split('\n').length).toBe(1)
    }
  })

  it('CFG-05: is refused and never rounded, clamped or read out of text', () => {
    expect(refusal({ limit: 2.5 })).toContain('limit must be a whole number')
    expect(refusal({ limit: '10' })).toContain('limit must be a whole number')
    expect(compileRule({ ...valid, limit: 1e9, window: 1 }, 0)).toMatchObject({
      limit: 1e9,
      windowMs: 1,
    })
  })

  it('says why true and false come out of words in older YAML', () => {
    for (const [field, value] of [
      ['key', true],
      ['name', true],
      ['absent', false],
    ] as const) {
      expect(refusal({ [field]: value })).toContain('YAML 1.1 reads on, yes, off and no')
    }
    expect(refusal({ mode: 'off' })).toContain('did you mean disabled?')
    expect(refusal({ mode: 'dry-run' })).toContain('did you mean shadow?')
    expect(refusal({ max: 5 })).toContain("unknown field 'max': did you mean limit?")
    expect(refusal({ mode: false })).toContain(
      'YAML 1.1 reads off as false: write disabled to switch a rule off',
    )
    const old = parse('{ name: login, limit: 5, window: 1m, mode: off }', {
      version: '1.1',
    }) as object
    expect(messageOf(() => compileRules([old]))).toContain(
      'mode must be enforce, shadow or disabled',
    )
    expect(refusal({ strict: 1 })).not.toContain('YAML')
  })

  const own = [
    ['burst', 10, 'token-bucket'],
    ['minInterval', '1s', 'rolling-window'],
    ['maxEntries', 1_000, 'rolling-window'],
    ['maxAge', '5m', 'exponential'],
  ] as const

  it.each(own)('%s is for one algorithm alone, and named with any other', (field, value, only) => {
    expect(compileRule({ ...valid, algorithm: only, [field]: value }, 0).algorithm.name).toBe(only)
    for (const algorithm of [undefined, ...algorithms.keys()]) {
      if (algorithm === only) continue
      const fields = { ...valid, algorithm, [field]: value }
      expect(messageOf(() => compileRules([fields]))).toBe(
        `Cannot create rule 'login': ${field} is for algorithm ${only} alone: ` +
          `received it with ${algorithm ?? 'sliding-window'} (TALLYGATE_RULE_FIELD)`,
      )
      expect(compileRule({ ...fields, [field]: undefined }, 0).limit).toBe(5)
    }
  })

  it('a rolling-window keeps each attempt, so that its limit ends at 10,000', () => {
    const rolling = { algorithm: 'rolling-window' }
    expect(compileRule({ ...valid, ...rolling, limit: 10_000 }, 0).limit).toBe(10_000)
    expect(refusal({ ...rolling, limit: 10_001 })).toBe(
      "Cannot create rule 'login': limit must be at most 10000 for a rolling-window, " +
        'which keeps each attempt: received 10001 (TALLYGATE_RULE_VALUE)',
    )
  })

  it('maxEntries is no less than the limit, which no key could reach', () => {
    const rolling = { algorithm: 'rolling-window', limit: 100 }
    expect(compileRule({ ...valid, ...rolling, maxEntries: 100 }, 0).maxEntries).toBe(100)
    const message = refusal({ ...rolling, maxEntries: 99 })
    expect(message).toContain('maxEntries must be at least the limit')
    expect(message).toContain('received 99 with limit 100')
  })

  it('survives values that cannot be written as JSON', () => {
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    for (const value of [circular, { n: 1n }, Symbol('x'), async () => 1, Object.create(null)]) {
      for (const field of ['limit', 'key', 'algorithm']) {
        expect(refusal({ [field]: value })).toMatch(/'login': \w+ must be .*TALLYGATE_RULE_VALUE/)
      }
    }
  })

  it('keeps a long value short', () => {
    expect(refusal({ key: 'x'.repeat(10_000) }).length).toBeLessThan(300)
  })
})

describe('an unknown algorithm', () => {
  it('is refused with all that are known', () => {
    const message = refusal({ algorithm: 'leaky-bucket' })
    expect(message).toContain('algorithm must be sliding-window, fixed-window, rolling-window, ')
    expect(message).toContain('exponential, token-bucket: received "leaky-bucket"')
  })
})

describe('an unknown field', () => {
  it.each([
    ['limt', 'limit'],
    ['windows', 'window'],
    ['Mode', 'mode'],
    ['maxkeys', 'maxKeys'],
    ['ipv6prefix', 'ipv6Prefix'],
    ['algoritm', 'algorithm'],
  ])('%s is told of %s', (field, near) => {
    expect(refusal({ [field]: 1 })).toBe(
      `Cannot create rule 'login': unknown field '${field}': did you mean ${near}? (TALLYGATE_RULE_FIELD)`,
    )
  })

  it('that is like no other is told of all', () => {
    expect(refusal({ blocklistedCountries: 1 })).toContain('known fields are name, key, limit')
  })

  it('is refused where it is named like an inherited member', () => {
    expect(refusal({ constructor: 1 })).toContain("unknown field 'constructor'")
    expect(refusal({ toString: 1 })).toContain("unknown field 'toString'")
    const proto = JSON.parse('{"__proto__": 1}') as Record<string, unknown>
    const own = Object.defineProperty({ ...valid }, '__proto__', {
      value: proto,
      enumerable: true,
    })
    expect(messageOf(() => compileRules([own]))).toContain("unknown field '__proto__'")
  })
})

describe('a list of rules', () => {
  it.each([undefined, null, {}, 'rules', 5, []])('is not %j', (rules) => {
    const message = messageOf(() => compileRules(rules))
    expect(message).toContain('rules must be a list of one or more rules: received ')
  })

  it.each([null, undefined, 'login', 5, ['login']])('has no entry %j', (entry) => {
    expect(messageOf(() => compileRules([valid, entry]))).toContain(
      'Cannot create rule 2: a rule must be a mapping of fields',
    )
  })

  it('has no name twice', () => {
    const message = messageOf(() => compileRules([valid, { ...valid, name: 'a' }, valid]))
    expect(message).toBe(
      `Cannot create rule 'login': names must be unique: received it for rules 1 and 3 (TALLYGATE_RULE_NAME)`,
    )
  })

  it('names a rule without a name by its place', () => {
    const { name: _, ...nameless } = valid
    expect(messageOf(() => compileRules([valid, nameless]))).toContain(
      'Cannot create rule 2: name must be 1 to 64 of a-z',
    )
  })

  it('is checked before a limiter is there', () => {
    const rules = [{ ...valid, limit: '10' as unknown as number }]
    expect(() => createLimiter({ rules })).toThrow(TallygateError)
    expect(messageOf(() => createLimiter({ rules: [valid], ruless: [] } as never))).toContain(
      "unknown option 'ruless': did you mean rules?",
    )
  })
})

describe('limits at the ends of their range', () => {
  it.each([7, 30, 365])(
    'CFG-01: a window of %i days neither overflows nor lets go early',
    (days) => {
      const { limiter, at } = benchOf(ipRule({ limit: 5, window: `${days}d` }))
      const daySeconds = 86_400
      // The window of the scenario begins where the epoch says, so go to the start of the next one.
      const start = days * daySeconds - ((20_400 * daySeconds) % (days * daySeconds))
      at(start)
      expect(passedOf(burst(limiter, 6))).toBe(5)
      at(start + 1)
      expect(limiter.decide(someone).allowed).toBe(false)
      at(start + days * daySeconds * 0.8)
      expect(limiter.decide(someone).allowed).toBe(false)
      at(start + days * daySeconds)
      expect(limiter.peek(someone).verdicts[0]?.usage).toBe(5)
      at(start + 2 * days * daySeconds)
      expect(passedOf(burst(limiter, 6))).toBe(5)
    },
  )

  it('CFG-04: a limit of 0 declines everything, for ever, and says so in JSON', () => {
    const { limiter, clock } = benchOf(ipRule({ limit: 0 }))
    for (let turn = 0; turn < 3; turn++) {
      const decision = limiter.decide(someone)
      expect(decision).toMatchObject({
        allowed: false,
        rule: 'ip',
        limit: 0,
        remaining: 0,
        retryAfterMs: Infinity,
      })
      expect(JSON.parse(JSON.stringify(decision))).toMatchObject({
        retryAfterMs: null,
        remaining: 0,
      })
      expect(decision.verdicts[0]?.verdict).toBe('over')
      clock.advance(600_000)
    }
  })

  it('CFG-04: a disabled rule neither applies nor moves', () => {
    const { limiter } = benchOf(ipRule({ limit: 0, mode: 'disabled' }), ipRule({ name: 'on' }))
    const decisions = burst(limiter, 6)
    expect(passedOf(decisions)).toBe(5)
    expect(decisions.every(({ verdicts }) => verdicts.every(({ rule }) => rule === 'on'))).toBe(
      true,
    )
  })

  it('CFG-05: the largest limit in the shortest window is exact', () => {
    const { limiter } = benchOf(ipRule({ limit: 2 ** 32 - 1, window: 1 }))
    expect(limiter.decide(someone, { cost: 2 ** 32 - 1 }).allowed).toBe(true)
    expect(limiter.decide(someone)).toMatchObject({ allowed: false, remaining: 0 })
    expect(limiter.decide(someone, { cost: 2 ** 32 }).retryAfterMs).toBe(Infinity)
  })
})

/*
 * The dialects as pure text, over random sets of rules: whatever was decided, the fields are well formed
 * and agree with the decision. A response is a map here; the way over HTTP is in waits.test.ts.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RuleVerdict } from '../../../src/core/decision.js'
import { compileRules, type RuleOptions } from '../../../src/core/rule.js'
import type { Reported } from '../../../src/express/headers/dialect.js'
import {
  createDialect,
  dialectNames,
  type DialectName,
} from '../../../src/express/headers/index.js'
import { RuleLimiter, type Attempt } from '../../../src/limiter/limiter.js'
import { MemoryStore } from '../../../src/stores/memory/memory-store.js'
import { manualClock, type ManualClock } from '../../../src/testing/index.js'
import { rateLimitFields, type Item } from '../../support/structured-fields.js'
import { epochMs } from '../../support/units/limits.js'
import { ruleSets } from '../../support/units/rule-sets.js'

function limiterOf(options: readonly RuleOptions[], clock: ManualClock): RuleLimiter {
  const rules = compileRules(options)
  return new RuleLimiter(options, rules, new MemoryStore(rules, clock), null)
}

class FieldMap extends Map<string, string> {
  setHeader(name: string, value: string): void {
    this.set(name, value)
  }
  removeHeader(name: string): void {
    this.delete(name)
  }
}

function fieldsOf(dialect: DialectName, attempts: readonly Reported[], clock: ManualClock) {
  const fields = new FieldMap()
  createDialect(dialect, clock)(attempts, fields)
  return fields
}

interface Told extends RuleVerdict {
  quota: number
  windowMs: number
  waitMs: number
}

/** What the fields have to tell, found the plain way. */
function toldOf(attempts: readonly Attempt[]): Told[] {
  return attempts.flatMap(({ question, decision }) => {
    const rules = question.rules.filter(({ candidateOf }) => candidateOf === null)
    return decision.verdicts.flatMap((verdict, index) => {
      const rule = rules[index]
      if (rule?.name !== verdict.rule) throw new Error('a verdict of another rule')
      if (rule.mode !== 'enforce' || (verdict.allowed && !rule.expose)) return []
      const waitMs = verdict.allowed ? verdict.resetMs : verdict.retryAfterMs
      return [{ ...verdict, quota: rule.limit, windowMs: rule.windowMs, waitMs }]
    })
  })
}

function theOneOf(told: readonly Told[]): Told {
  const declining = told.filter(({ allowed }) => !allowed)
  const share = ({ usage, limit }: Told) => usage / limit
  const byName = (one: Told, other: Told) => (one.rule < other.rule ? -1 : 1)
  const [first] =
    declining.length > 0
      ? declining.toSorted((a, b) => (a.waitMs === b.waitMs ? byName(a, b) : b.waitMs - a.waitMs))
      : told.toSorted((a, b) => share(b) - share(a) || byName(a, b))
  return first as Told
}

const bare = (value: number): Item[] => [{ value, parameters: {} }]
/** Nothing where the value has no end. */
const ending = (name: string, value: number) => (value === Infinity ? {} : { [name]: bare(value) })
const cap = (value: number, most: number) => (value === Infinity ? value : Math.min(value, most))
const secondsOf = (ms: number) => cap(Math.ceil(ms / 1000), 999_999_999_999_999)
const isWhole = (windowMs: number) => windowMs % 1000 === 0

/** What a strict client must read in each dialect. */
const expected: Record<DialectName, (told: readonly Told[], nowMs: number) => object> = {
  'draft-8': (told) => ({
    'ratelimit-policy': told.map(({ rule, quota, windowMs }) => ({
      value: rule,
      parameters: { q: quota, ...(isWhole(windowMs) ? { w: windowMs / 1000 } : {}) },
    })),
    ratelimit: told.map(({ rule, remaining, waitMs }) => ({
      value: rule,
      parameters: { r: remaining, ...(waitMs === Infinity ? {} : { t: secondsOf(waitMs) }) },
    })),
  }),
  'draft-6': (told) => {
    const { limit, remaining, quota, windowMs, waitMs } = theOneOf(told)
    const policy = { value: quota, parameters: { w: windowMs / 1000 } }
    return {
      'ratelimit-limit': bare(limit),
      'ratelimit-remaining': bare(remaining),
      ...ending('ratelimit-reset', secondsOf(waitMs)),
      ...(isWhole(windowMs) ? { 'ratelimit-policy': [policy] } : {}),
    }
  },
  legacy: (told, nowMs) => {
    const { limit, remaining, waitMs } = theOneOf(told)
    return {
      'x-ratelimit-limit': bare(limit),
      'x-ratelimit-remaining': bare(remaining),
      ...ending('x-ratelimit-reset', cap(Math.ceil((nowMs + waitMs) / 1000), 9_999_999_999)),
    }
  },
  off: () => ({}),
}

const largest = { limit: 2 ** 32 - 1, windowMs: 366 * 86_400_000, rules: 6 }
const turns = fc.array(
  fc.record({
    waitMs: fc.oneof(
      fc.nat(2_000),
      fc.nat(86_400_000),
      fc.double({ max: 1e6, min: 0, noNaN: true }),
    ),
    session: fc.constantFrom(undefined, 's1'),
    function: fc.constantFrom(undefined, 'item'),
    cost: fc.constantFrom(undefined, 0, 1, 3, 2 ** 31),
  }),
  { minLength: 1, maxLength: 12 },
)

it.each(dialectNames)(
  '%s is well formed and agrees with the decision, whatever the rules',
  (dialect) => {
    fc.assert(
      fc.property(ruleSets(largest), turns, (rules, sequence) => {
        const clock = manualClock(epochMs)
        const limiter = limiterOf(rules, clock)
        for (const { waitMs, session, function: name, cost } of sequence) {
          clock.advance(waitMs)
          const facts = { ip: '203.0.113.7', session }
          const attempts = [limiter.attempt(facts, { cost }) as Attempt]
          if (name !== undefined)
            attempts.push(limiter.attempt(facts, { cost, function: name }) as Attempt)
          const told = toldOf(attempts)
          const read = rateLimitFields(fieldsOf(dialect, attempts, clock))
          expect(read).toEqual(told.length === 0 ? {} : expected[dialect](told, clock.wallMs()))
        }
      }),
      { numRuns: 300 },
    )
  },
)

it('where every rule is exposed the one rule is the decision’s', () => {
  const exposed = ruleSets(largest).map((rules) => rules.map((rule) => ({ ...rule, expose: true })))
  fc.assert(
    fc.property(exposed, turns, (rules, sequence) => {
      const clock = manualClock(epochMs)
      const limiter = limiterOf(rules, clock)
      for (const { waitMs, session, function: name } of sequence) {
        clock.advance(waitMs)
        const attempt = limiter.attempt({ ip: '203.0.113.7', session }, { also: name }) as Attempt
        const { rule, limit, remaining } = attempt.decision
        const fields = fieldsOf('draft-6', [attempt], clock)
        const shown = [fields.get('RateLimit-Limit'), fields.get('RateLimit-Remaining')]
        expect(shown).toEqual(rule === null ? [undefined, undefined] : [`${limit}`, `${remaining}`])
      }
    }),
    { numRuns: 300 },
  )
})

describe('a field', () => {
  /** A token a year. */
  const slow: RuleOptions = {
    name: 'slow',
    key: 'ip',
    limit: 1,
    window: '366d',
    burst: 2 ** 32 - 1,
    algorithm: 'token-bucket',
  }

  it('is at most 2 KB long for 20 rules of the longest names and numbers', () => {
    const rules = Array.from({ length: 20 }, (_, index) => ({
      name: `${'n'.repeat(62)}${index + 10}`,
      key: 'ip' as const,
      limit: 2 ** 32 - 1,
      window: '366d',
      algorithm: 'token-bucket' as const,
    }))
    const clock = manualClock(epochMs)
    const attempts = [limiterOf(rules, clock).attempt({ ip: '203.0.113.7' }) as Attempt]
    const lengths = (['draft-8', 'draft-6', 'legacy'] as const).map((dialect) =>
      Math.max(...[...fieldsOf(dialect, attempts, clock).values()].map((text) => text.length)),
    )
    expect(lengths[0]).toBeGreaterThan(1_000)
    expect(Math.max(...lengths)).toBeLessThanOrEqual(2_048)
  })

  it('has at most 15 digits where a bucket takes longer than the universe to refill', () => {
    const clock = manualClock(epochMs)
    const limiter = limiterOf([slow], clock)
    const attempts = [limiter.attempt({ ip: '203.0.113.7' }, { cost: 2 ** 32 - 1 }) as Attempt]
    expect(attempts[0]?.decision.allowed).toBe(true)
    expect(fieldsOf('draft-8', attempts, clock).get('RateLimit')).toBe(
      '"slow";r=0;t=999999999999999',
    )
    expect(fieldsOf('draft-6', attempts, clock).get('RateLimit-Reset')).toBe('999999999999999')
    expect(fieldsOf('legacy', attempts, clock).get('X-RateLimit-Reset')).toBe('9999999999')
  })

  it('of a moment goes by the wall clock, whatever the rules go by', () => {
    const clock = manualClock(epochMs)
    const attempts = [limiterOf([slow], clock).attempt({ ip: '203.0.113.7' }) as Attempt]
    const apart = { ...clock, wallMs: () => 1_700_000_000_250 }
    const fields = new FieldMap()
    createDialect('legacy', apart)(attempts, fields)
    expect(fields.get('X-RateLimit-Reset')).toBe(String(1_700_000_001 + 366 * 86_400))
  })

  it('of draft 6 that a later attempt has no value for is taken off again', () => {
    const clock = manualClock(epochMs)
    const limiter = limiterOf(
      [
        { name: 'ip', key: 'ip', limit: 5, window: '1m' },
        { name: 'closed', key: 'ip', limit: 0, window: 500, function: 'item' },
      ],
      clock,
    )
    const facts = { ip: '203.0.113.7' }
    const first = limiter.attempt(facts) as Attempt
    const second = limiter.attempt(facts, { function: 'item' }) as Attempt
    for (const [dialect, before, after] of [
      ['draft-6', 4, ['RateLimit-Limit', 'RateLimit-Remaining']],
      ['legacy', 3, ['X-RateLimit-Limit', 'X-RateLimit-Remaining']],
    ] as const) {
      const write = createDialect(dialect, clock)
      const fields = new FieldMap()
      write([first], fields)
      expect(fields.size).toBe(before)
      write([first, second], fields)
      expect([...fields.keys()]).toEqual(after)
    }
  })

  it('names a rule once, as its last attempt left it, also over a live change', () => {
    const clock = manualClock(epochMs)
    const limiter = limiterOf([{ name: 'ip', key: 'ip', limit: 5, window: '1m' }], clock)
    const facts = { ip: '203.0.113.7' }
    const attempts = [limiter.attempt(facts) as Attempt]
    limiter.configure('ip', { limit: 10 })
    attempts.push(limiter.attempt(facts) as Attempt)
    const fields = fieldsOf('draft-8', attempts, clock)
    expect(fields.get('RateLimit-Policy')).toBe('"ip";q=10;w=60')
    expect(fields.get('RateLimit')).toBe('"ip";r=8;t=120')
  })
})

describe('draft-8', () => {
  it('says of each list of rules what it would say of it alone, whatever came before', () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const subset = fc.subarray(names)
    const step = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({ headers: subset, cost: fc.integer({ min: 1, max: 4 }) }),
      },
      { weight: 1, arbitrary: fc.record({ name: fc.constantFrom(...names), limit: fc.nat(20) }) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const clock = manualClock(epochMs)
        const options = names.map((name): RuleOptions => ({
          name,
          key: `header:${name}`,
          limit: 12,
          window: '1m',
        }))
        const limiter = limiterOf(options, clock)
        const shared = createDialect('draft-8', clock)
        for (const each of steps) {
          if ('name' in each) {
            limiter.configure(each.name, { limit: each.limit })
            continue
          }
          const headers = Object.fromEntries(each.headers.map((name) => [name, 'x']))
          const attempt = limiter.attempt({ headers }, { cost: each.cost }) as Attempt
          const fields = new FieldMap()
          shared([attempt], fields)
          expect(fields).toEqual(fieldsOf('draft-8', [attempt], clock))
          expect([...fields.keys()].length).toBe(each.headers.length === 0 ? 0 : 2)
        }
      }),
    )
  })
})

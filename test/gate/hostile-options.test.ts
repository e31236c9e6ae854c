/*
 * Values that no type lets through, as callers without types hand them in: one clear error, or the default.
 */
import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import { checkOptions } from '../../src/gate/options.js'
import { createLimiter, TallygateError, type RuleOptions } from '../../src/limiter/index.js'
import { manualClock } from '../../src/testing/index.js'

const rule = (more: object = {}) =>
  ({ name: 'ip', key: 'ip', limit: 2, window: '1m', ...more }) as RuleOptions
const clock = () => manualClock(1_760_000_000_000)
const circle: Record<string, unknown> = {}
circle['self'] = circle

describe('an impossible value', () => {
  const values = [
    { big: 1n },
    circle,
    Object.create(null),
    [Symbol('x')],
    async () => 1,
    Symbol('x'),
    5n,
  ]
  for (const field of Object.keys(rule({ algorithm: '', strict: 0, near: 0, absent: 0 }))) {
    it(`of ${field} is refused in one line, whatever it is`, () => {
      for (const value of values) {
        const create = () => createLimiter({ rules: [rule({ [field]: value })] })
        expect(create).toThrow(TallygateError)
        expect(create).toThrow(new RegExp(`^Cannot create rule .*${field} must be [^\\n]+$`))
      }
    })
  }

  it('of an option of the gate is refused, naming it', () => {
    const names = ['clock', 'logger', 'registry', 'adminToken', 'metricsToken', 'timeZone']
    for (const name of [...names, 'headers', 'onDecline']) {
      for (const value of [null, ...values.slice(0, 3)]) {
        const given = { rules: [rule()], [name]: value }
        if (name === 'timeZone' && value !== null) continue
        expect(() => checkOptions(given)).toThrow(TallygateError)
        expect(() => checkOptions(given)).toThrow(name)
      }
    }
  })

  it('of a clock is refused by the limiter too', () => {
    for (const value of [null, 5, {}, new Date()]) {
      expect(() => createLimiter({ rules: [rule()], clock: value as never })).toThrow(/clock must/)
    }
    expect(() => createLimiter(null as never)).toThrow('options must be an object')
  })

  it('of a registry is one that another gate has filled', async () => {
    const registry = new Registry()
    const gate = createGate({ rules: [rule()], registry })
    expect(() => createGate({ rules: [rule()], registry })).toThrow(TallygateError)
    await gate.close()
  })

  it('is found where a list of rules has a hole', () => {
    const holed: RuleOptions[] = []
    holed[1] = rule()
    expect(() => createLimiter({ rules: holed })).toThrow('Cannot create rule 1: a rule must be')
  })
})

describe('a rule', () => {
  it('is what was checked, even where a getter answers differently each time', () => {
    for (let late = 0; late < 5; late++) {
      let reads = 0
      const options = Object.defineProperty(rule(), 'limit', {
        enumerable: true,
        get: () => (reads++ < late ? 2 : NaN),
      })
      const passed: unknown[] = []
      try {
        const limiter = createLimiter({ rules: [options], clock: clock() })
        for (let turn = 0; turn < 4; turn++)
          passed.push(limiter.decide({ ip: '192.0.2.1' }).allowed)
      } catch (error) {
        passed.push(error instanceof TallygateError)
      }
      expect([[true], [true, true, false, false]]).toContainEqual(passed)
    }
  })

  it('does not take over what its caller changes afterwards', () => {
    const mine = rule()
    const limiter = createLimiter({ rules: [mine], clock: clock() })
    mine.limit = 1_000_000
    limiter.configure('ip', { near: 0.5 })
    expect(limiter.decide({ ip: '192.0.2.1' }).limit).toBe(2)
  })

  it('keeps its name, key and function in a live change, and what is undefined', () => {
    const limiter = createLimiter({ rules: [rule()], clock: clock() })
    for (const field of ['name', 'key', 'function', 'absent']) {
      expect(() => limiter.configure('ip', { [field]: 'global' })).toThrow(`${field} stays`)
    }
    limiter.configure('ip', { limit: undefined, near: 0.5 } as object)
    expect(limiter.decide({ ip: '192.0.2.1' }).limit).toBe(2)
  })
})

it('facts that are null count as absent, numbers as text', () => {
  const rules = [rule(), { name: 'session', key: 'session', limit: 1, window: '1m' } as const]
  const limiter = createLimiter({ rules, clock: clock() })
  const rulesOf = (facts: object) => limiter.peek(facts).verdicts.map((verdict) => verdict.rule)
  expect(rulesOf({ ip: null, session: null, keys: null })).toEqual([])
  expect(rulesOf({ ip: '192.0.2.1', keys: { ip: undefined } })).toEqual(['ip', 'session'])
  const numbered = { session: 7 } as object
  limiter.decide(numbered)
  expect(limiter.peek({ session: '7' }).allowed).toBe(false)
})

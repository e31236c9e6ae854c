/*
 * Keys beyond the plain ones: headers, functions, and several joined. However parts are spelt, two that
 * differ never come to one key; what is absent does as the rule's `absent` says.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyOf as keyObjectOf, type Facts } from '../../src/core/facts.js'
import { keyKinds, KeyMaker } from '../../src/core/key.js'
import { compileRule, type KeyOption, type RuleOptions } from '../../src/core/rule.js'
import { benchOf, burst, ipRule, messageOf, passedOf } from '../support/units/limits.js'

const rule = (key: unknown, fields: Partial<RuleOptions> = {}) =>
  compileRule(ipRule({ ...fields, key: key as KeyOption }), 0)

/** A key in one text that is equal where kind and text are; null where there is none. */
function keyOf(key: unknown, facts: Facts, fields: Partial<RuleOptions> = {}): string | null {
  const found = keyObjectOf(rule(key, fields), facts, new KeyMaker())
  return found === null ? null : JSON.stringify([found.kind, found.text])
}

const withKey = (value: string | string[] | undefined): Facts => ({
  ip: '1.2.3.4',
  headers: { 'x-api-key': value },
})

describe('a header as key', () => {
  it('is found by its name in lower case, however the rule spells it', () => {
    const key = keyOf('header:x-api-key', withKey('abc'))
    expect(keyOf('header:X-API-Key', withKey('abc'))).toBe(key)
    expect(rule('header:X-API-Key').key).toBe('header:x-api-key')
    expect(keyOf('header:x-api-key', withKey('abd'))).not.toBe(key)
  })

  it('that is absent makes the rule skip, or count the address where it says so', () => {
    for (const facts of [withKey(undefined), withKey([]), { ip: '1.2.3.4' }]) {
      expect(keyOf('header:x-api-key', facts)).toBeNull()
      expect(keyOf('header:x-api-key', facts, { absent: 'address' })).toBe(keyOf('ip', facts))
    }
  })

  it('KEY-02: that is empty is a key like any other', () => {
    expect(keyOf('header:x-api-key', withKey(''))).toBe(JSON.stringify([keyKinds.header, '']))
  })

  it('as a list of one is that value, and of several never a value of another list', () => {
    expect(keyOf('header:x-api-key', withKey(['a']))).toBe(keyOf('header:x-api-key', withKey('a')))
    const lists = fc.array(fc.string(), { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(lists, lists, (one, other) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other))
        const key = keyOf('header:x-api-key', withKey(one))
        expect(keyOf('header:x-api-key', withKey(other))).not.toBe(key)
        expect(keyOf('header:x-api-key', withKey(one.join(', ')))).not.toBe(key)
      }),
    )
  })

  it('KEY-01: is no inherited member of the headers', () => {
    for (const name of ['constructor', '__proto__', 'tostring', 'hasOwnProperty']) {
      expect(keyOf(`header:${name}`, { headers: {} })).toBeNull()
    }
    const { limiter } = benchOf(ipRule({ key: 'header:constructor', limit: 2 }))
    const headers = JSON.parse('{"constructor": "me"}') as Record<string, string>
    expect(passedOf(burst(limiter, 3, { headers }))).toBe(2)
  })

  it.each([
    'header:',
    'header:a b',
    'header:a:b',
    'header:é',
    'header:a"b',
    `header:${'a'.repeat(101)}`,
  ])('%j is refused', (key) => {
    expect(messageOf(() => rule(key))).toMatch(/key must be global, ip, session, header:NAME/)
  })
})

describe('a function as key', () => {
  const giving = (result: unknown) => keyOf(() => result, { ip: '1.2.3.4' })

  it('is asked with the facts, and shown as function', () => {
    const key = (facts: Facts) => facts.headers?.['x-tenant']
    expect(keyOf(key, { headers: { 'x-tenant': 'a' } })).toBe(
      JSON.stringify([keyKinds.function, 'a']),
    )
    expect(rule(key).key).toBe('function')
  })

  it('that gives null or undefined finds nobody', () => {
    expect(giving(null)).toBeNull()
    expect(giving(undefined)).toBeNull()
    const address = keyOf(() => null, { ip: '1.2.3.4' }, { absent: 'address' })
    expect(address).toBe(keyOf('ip', { ip: '1.2.3.4' }))
  })

  it('KEY-02: that gives an empty text gives a key like any other', () => {
    expect(giving('')).toBe(JSON.stringify([keyKinds.function, '']))
  })

  it('that gives a number gives its text', () => {
    expect(giving(42)).toBe(giving('42'))
    expect(giving(42n)).toBe(giving('42'))
    expect(giving(-0)).toBe(giving('0'))
  })

  it('that gives several texts gives a key of their own, as a header does', () => {
    expect(giving(['a'])).toBe(giving('a'))
    const several = [['a', 'b'], ['ab', ''], ['a,b'], ['1:a1:b'], ['b', 'a']].map(giving)
    expect(new Set(several).size).toBe(5)
  })

  // An object may come out of a query, so a client decides; see docs/library.md.
  it('that gives what is no text gives one key for all of it, and never throws', () => {
    const odd = [
      [],
      NaN,
      Infinity,
      true,
      false,
      {},
      ['a', {}],
      [1],
      Symbol('x'),
      () => 'a',
      new Date(0),
    ]
    expect(new Set(odd.map(giving))).toEqual(new Set([JSON.stringify([keyKinds.odd, ''])]))
    const { limiter } = benchOf(ipRule({ key: (() => ({})) as never, limit: 2 }))
    expect(passedOf(burst(limiter, 3))).toBe(2)
  })

  it('that is async is refused at the start, and a promise when it is given', async () => {
    for (const key of [async () => 'a', async function* () {}, function* () {}]) {
      expect(messageOf(() => rule(key))).toContain('not by an async function')
    }
    const { limiter } = benchOf(ipRule({ key: (() => Promise.reject(new Error('late'))) as never }))
    expect(() => limiter.decide({})).toThrow(TypeError)
    expect(messageOf(() => limiter.decide({}))).toBe(
      "Cannot decide: the key of rule 'ip' must be known at once: its function gave a promise",
    )
    // Were it not handled, the rejection would end the process about now.
    await new Promise((resolve) => void setImmediate(resolve))
  })

  it('that throws tells whoever asked, and nothing is taken from any rule', () => {
    let fails = false
    const key = () => {
      if (fails) throw new Error('no plan')
      return 'a'
    }
    const { limiter } = benchOf(ipRule(), ipRule({ name: 'mine', key }))
    limiter.decide({ ip: '1.2.3.4' })
    fails = true
    expect(() => limiter.decide({ ip: '1.2.3.4' })).toThrow('no plan')
    fails = false
    expect(limiter.peek({ ip: '1.2.3.4' }).verdicts.map(({ usage }) => usage)).toEqual([1, 1])
  })

  it('KEY-01: takes names of inherited members for keys like any other', () => {
    const before = Object.getOwnPropertyNames(Object.prototype)
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']) {
      const { limiter } = benchOf(ipRule({ key: ({ session }) => session, limit: 2 }))
      expect(passedOf(burst(limiter, 3, { session: name }))).toBe(2)
      expect(passedOf(burst(limiter, 1, { session: 'other' }))).toBe(1)
    }
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
  })

  it('is asked once an attempt, whatever candidates there are', () => {
    let asked = 0
    const key = () => String(++asked)
    const { limiter } = benchOf(ipRule({ key, candidates: [{ limit: 1 }, { limit: 2 }] }))
    limiter.decide({})
    expect(asked).toBe(1)
  })

  it('in a file is refused with a word about code', () => {
    for (const key of ['(facts) => facts.ip', 'function (f) { return f.ip }']) {
      expect(messageOf(() => rule(key))).toContain('a function is for rules in code')
    }
  })
})

describe('several keys joined', () => {
  it('are called by their names with + between', () => {
    expect(rule(['ip', 'header:X-Api-Key']).key).toBe('ip+header:x-api-key')
    expect(rule(['session', () => 'a']).key).toBe('session+function')
  })

  it('never collide by how their parts are joined', () => {
    const key = ['session', 'header:a', 'header:b']
    // Texts that are likely to be mistaken for what joins them.
    const text = fc.oneof(fc.string({ maxLength: 6 }), fc.stringMatching(/^[0-9:+,]{0,8}$/))
    const parts = fc.tuple(text, text, text)
    const facts = ([session, a, b]: readonly [string, string, string]): Facts => ({
      session,
      headers: { a, b },
    })
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other))
        expect(keyOf(key, facts(one))).not.toBe(keyOf(key, facts(other)))
      }),
      { numRuns: 1_000 },
    )
    expect(keyOf(key, facts(['1', '4:1:x', '']))).not.toBe(keyOf(key, facts(['14:1:x', '', ''])))
  })

  it('tell a header of one value from one of several, and a text from what is none', () => {
    const key = ['header:a', (facts: Facts) => facts.request as string]
    const texts = [
      keyOf(key, { headers: { a: '1:x1:y' }, request: '' }),
      keyOf(key, { headers: { a: ['x', 'y'] }, request: '' }),
      keyOf(key, { headers: { a: ['x', 'y'] }, request: {} }),
    ]
    expect(new Set(texts).size).toBe(3)
  })

  it('take the address as one client, and not as a session of that name', () => {
    const key = ['ip', 'header:a']
    const of = (ip: string) => keyOf(key, { ip, headers: { a: '1' } })
    expect(of('::ffff:1.2.3.4')).toBe(of('1.2.3.4'))
    expect(of('2001:db8::1')).toBe(of('2001:db8::2'))
    const session = keyOf(['session', 'header:a'], { session: '1.2.3.4', headers: { a: '1' } })
    expect(of('1.2.3.4')).not.toBe(session)
  })

  it('are absent where one of them is', () => {
    const key = ['ip', 'header:a', () => null]
    const facts = { ip: '1.2.3.4', headers: { a: '1' } }
    expect(keyOf(key, facts)).toBeNull()
    expect(keyOf(key, facts, { absent: 'address' })).toBe(keyOf('ip', facts))
    expect(keyOf(['ip', 'header:a'], { headers: { a: '1' } }, { absent: 'address' })).toBeNull()
  })

  it.each([
    [['global', 'ip'], 'global means nothing beside another key'],
    [['ip'], 'a list joins 2 to 4 keys'],
    [[], 'a list joins 2 to 4 keys'],
    [['ip', 'session', 'header:a', 'header:b', 'header:c'], 'a list joins 2 to 4 keys'],
    [['ip', ['session', 'ip']], 'a list holds no lists'],
    [['header:a', 'header:A'], 'a key twice means nothing'],
    [['ip', 'user'], 'key must be'],
    [['ip', undefined], 'key must be'],
    [['ip', async () => 'a'], 'not by an async function'],
  ])('%j is refused', (key, why) => {
    expect(messageOf(() => rule(key))).toContain(why)
  })

  it('changed by the caller afterwards do not come in with a live change', () => {
    const key: ['ip', 'session'] = ['ip', 'session']
    const { limiter } = benchOf(ipRule({ key, limit: 1 }))
    key.pop()
    limiter.configure('ip', { limit: 2 })
    expect(limiter.decide({ ip: '1.2.3.4' }).verdicts).toEqual([])
  })
})

describe('what is shown', () => {
  const secret = 'sk-live-4242'

  it('KEY-08: of a header that is a key is never its value', () => {
    const { limiter } = benchOf(
      ipRule({ name: 'a', key: 'header:x-api-key', limit: 1 }),
      ipRule({ name: 'b', key: ['ip', 'header:x-api-key'] }),
      ipRule({ name: 'c', limit: ((facts: Facts) => facts.headers?.['x-api-key']) as never }),
    )
    const facts = { ip: '1.2.3.4', headers: { 'x-api-key': secret } }
    const message = messageOf(() => limiter.decide(facts))
    expect(message).toContain('its function gave a string')
    limiter.configure('c', { limit: 5 })
    const decisions = [limiter.decide(facts), limiter.decide(facts)]
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(message + JSON.stringify(decisions)).not.toContain(secret)
  })
})

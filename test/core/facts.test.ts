/*
 * Keys: whom a rule counts. Kinds never share a key, hostile names are names like any other, and a key
 * takes bounded memory whatever a client sends.
 */
import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyOf as keyObjectOf, questionOf, type Facts } from '../../src/core/facts.js'
import { KeyMaker } from '../../src/core/key.js'
import { compileRule, type CompiledRule, type RuleOptions } from '../../src/core/rule.js'
import { benchOf, burst, ipRule, passedOf } from '../support/units/limits.js'

const rule = (fields: Partial<RuleOptions> = {}) => compileRule(ipRule(fields), 0)
const bySession = ipRule({ name: 'session', key: 'session', limit: 2 })

/** A key in one text that is equal where kind and text are; null where there is none. */
function keyOf(of: CompiledRule, facts: Facts): string | null {
  const key = keyObjectOf(of, facts, new KeyMaker())
  return key === null ? null : JSON.stringify([key.kind, key.text])
}

const keyed = (key: string): Facts => ({ keys: { ip: key } })

describe('keyOf', () => {
  it('is one key for everybody where the rule is global', () => {
    const global = rule({ key: 'global' })
    const keys = [{}, { ip: '1.2.3.4' }, { session: 'a' }].map((facts) => keyOf(global, facts))
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).not.toBeNull()
  })

  it('is none where the fact is missing', () => {
    expect(keyOf(rule(), {})).toBeNull()
    expect(keyOf(rule(), { ip: undefined, session: 'a' })).toBeNull()
    const skip = rule({ key: 'session', absent: 'skip' })
    expect(keyOf(skip, { ip: '1.2.3.4' })).toBeNull()
    expect(keyOf(rule({ key: 'session' }), {})).toBeNull()
  })

  it('falls back to the address for a missing session', () => {
    const session = rule({ key: 'session' })
    expect(keyOf(session, { ip: '1.2.3.4' })).toBe(keyOf(rule(), { ip: '1.2.3.4' }))
    expect(keyOf(session, { ip: '1.2.3.4', session: 'a' })).not.toBe(
      keyOf(session, { ip: '1.2.3.4' }),
    )
  })

  it('takes a key that is given for the rule by name, and only its own', () => {
    const given = { ip: '1.2.3.4', keys: { ip: 'me', other: 'you' } }
    expect(keyOf(rule(), given)).toBe(keyOf(rule(), keyed('me')))
    expect(keyOf(rule({ name: 'b' }), given)).toBe(keyOf(rule({ name: 'b' }), { ip: '1.2.3.4' }))
  })

  it('takes a given key that is undefined for none given', () => {
    const facts = { ip: '1.2.3.4', keys: { ip: undefined } } as unknown as Facts
    expect(keyOf(rule(), facts)).toBe(keyOf(rule(), { ip: '1.2.3.4' }))
  })

  it('takes a number that plain JavaScript gives as a key for its text', () => {
    const facts = { keys: { ip: 42 } } as unknown as Facts
    expect(keyOf(rule(), facts)).toBe(keyOf(rule(), keyed('42')))
  })

  it('does not take an inherited member of keys for a key', () => {
    const named = rule({ name: 'constructor' })
    expect(keyOf(named, { ip: '1.2.3.4', keys: {} })).toBe(keyOf(named, { ip: '1.2.3.4' }))
  })

  it('never gives an address, a session and a given key the same key', () => {
    const session = rule({ key: 'session' })
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.string({ minLength: 70 })), (text) => {
        const keys = [
          keyOf(session, { ip: text }),
          keyOf(session, { session: text }),
          keyOf(session, { keys: { ip: text } }),
          keyOf(rule({ key: 'global' }), {}),
        ]
        expect(new Set(keys).size).toBe(4)
      }),
    )
  })

  it('is different for different texts, long and odd ones too', () => {
    const text = fc.string({ unit: 'binary', maxLength: 200 })
    const tail = fc.string({ unit: 'binary', maxLength: 3 })
    fc.assert(
      fc.property(text, tail, tail, (head, a, b) => {
        fc.pre(a !== b)
        expect(keyOf(rule(), keyed(head + a))).not.toBe(keyOf(rule(), keyed(head + b)))
      }),
    )
    const base = 'x'.repeat(100)
    // Half of a surrogate pair has no UTF-8, and must not make two keys one.
    const halves = ['\ud800', '\ud801', '\ufffd'].map((half) => keyOf(rule(), keyed(base + half)))
    expect(new Set(halves).size).toBe(3)
  })

  it('is the same object for rules that count the same client, so that it is hashed once', () => {
    const rules = ['a', 'b'].map((name, index) => compileRule(ipRule({ name }), index))
    const { keys } = questionOf(rules, { ip: '1.2.3.4' }, 1, new KeyMaker())
    expect(keys.length).toBe(2)
    expect(keys[0]).toBe(keys[1])
  })
})

/** What a table keeps of a key: two words, whatever its length. */
function hashOf(maker: KeyMaker, facts: Facts): string {
  const key = keyObjectOf(rule(), facts, maker)
  return `${key?.low} ${key?.high}`
}

describe('what is kept of a key', () => {
  const maker = new KeyMaker()

  it('is two words of 32 bits, whatever its length', () => {
    for (const length of [0, 1, 63, 64, 65, 66, 16_384]) {
      const words = hashOf(maker, keyed('x'.repeat(length)))
        .split(' ')
        .map(Number)
      expect(words.every((word) => Number.isInteger(word) && word === (word | 0))).toBe(true)
    }
  })

  it('does not mistake a short key that is spelt like a digest for the long one', () => {
    const text = 'x'.repeat(100)
    const long = hashOf(maker, keyed(text))
    for (const encoding of ['utf16le', 'utf8'] as const) {
      for (const form of ['base64url', 'base64', 'hex'] as const) {
        const spelt = createHash('sha256').update(text, encoding).digest(form)
        expect(spelt.length).toBeLessThanOrEqual(64)
        for (const short of [spelt, spelt.slice(1), spelt.slice(2)]) {
          expect(hashOf(maker, keyed(short))).not.toBe(long)
        }
      }
    }
  })
})

const inherited = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']

describe('a limiter', () => {
  it('KEY-01: takes names of inherited members for keys like any other', () => {
    const before = Object.getOwnPropertyNames(Object.prototype)
    for (const name of inherited) {
      const { limiter } = benchOf(ipRule({ limit: 2 }), bySession)
      expect(burst(limiter, 3, { keys: { ip: name } }).map(({ allowed }) => allowed)).toEqual([
        true,
        true,
        false,
      ])
      expect(passedOf(burst(limiter, 3, { session: name }))).toBe(2)
      expect(passedOf(burst(limiter, 1, { session: 'other' }))).toBe(1)
    }
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
  })

  it('KEY-01: takes a function that is named like one, and asks nothing where there is none', () => {
    const { limiter } = benchOf(ipRule({ limit: 2, function: 'constructor' }))
    expect(passedOf(burst(limiter, 3, { ip: '1.2.3.4' }, { function: 'constructor' }))).toBe(2)
    for (const name of ['__proto__', 'toString']) {
      expect(limiter.decide({ ip: '1.2.3.4' }, { function: name }).verdicts).toEqual([])
      expect(limiter.decide({ ip: '1.2.3.4' }, { also: name }).verdicts).toEqual([])
    }
  })

  it('KEY-02: limits the empty key like any other', () => {
    const { limiter } = benchOf(ipRule({ limit: 1, maxKeys: 2 }), bySession)
    expect(passedOf(burst(limiter, 3, keyed('')))).toBe(1)
    expect(passedOf(burst(limiter, 3, { session: '' }))).toBe(2)
  })

  it('KEY-03: keeps two keys of 16 KB apart that differ in the last byte', () => {
    const { limiter } = benchOf(ipRule({ limit: 1 }), bySession)
    const long = 'x'.repeat(16_383)
    expect(passedOf(burst(limiter, 2, keyed(`${long}a`)))).toBe(1)
    expect(passedOf(burst(limiter, 2, keyed(`${long}b`)))).toBe(1)
    expect(passedOf(burst(limiter, 3, { session: `${long}a` }))).toBe(2)
    expect(passedOf(burst(limiter, 3, { session: `${long}b` }))).toBe(2)
  })

  it('KEY-03: 10,000 keys of 16 KB take less than 20 MB', () => {
    const { limiter } = benchOf(ipRule({ limit: 1 }))
    const tail = 'x'.repeat(16_000)
    const grown = heapGrowth(() => {
      for (let n = 0; n < 10_000; n++) limiter.decide(keyed(`${n}-${tail}`))
    })
    expect(grown).toBeLessThan(20_000_000)
    expect(limiter.decide(keyed(`9999-${tail}`)).allowed).toBe(false)
  })

  // A session id is a piece of a Cookie header; V8 keeps a whole text alive for a piece of it.
  it.each([
    ['a given key', ipRule({ limit: 1 }), keyed],
    ['a session', bySession, (session: string): Facts => ({ session })],
    ['an address', ipRule({ limit: 1 }), (ip: string): Facts => ({ ip })],
    ['a key beyond Latin', ipRule({ limit: 1 }), (key: string) => keyed(`€${key}`)],
  ])('KEY-03: %s cut out of a long text does not keep that alive', (_, options, factsOf) => {
    const { limiter } = benchOf(options)
    const tail = 'x'.repeat(16_000)
    const cut = (n: number) => `${tail}${n}-${tail}`.slice(15_970, 16_010)
    const grown = heapGrowth(() => {
      for (let n = 0; n < 2_000; n++) limiter.decide(factsOf(cut(n)))
    })
    expect(grown).toBeLessThan(10_000_000)
    expect(limiter.decide(factsOf(cut(1)), { cost: 2 }).allowed).toBe(false)
  })

  it('never lets an address and a session share a key', () => {
    const { limiter } = benchOf(ipRule({ name: 'session', key: 'session', limit: 1 }))
    expect(limiter.decide({ session: '203.0.113.7' }).allowed).toBe(true)
    expect(limiter.decide({ ip: '203.0.113.7' }).allowed).toBe(true)
    expect(limiter.decide({ ip: '203.0.113.7' }).allowed).toBe(false)
  })
})

/** Bytes by which the heap is larger after `run`, garbage not counted. */
function heapGrowth(run: () => void): number {
  // vitest starts its workers without --expose-gc; the flag can be set while running.
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  gc()
  const before = process.memoryUsage().heapUsed
  run()
  gc()
  return process.memoryUsage().heapUsed - before
}

/*
 * How many keys a limit stopped: exactly while they are few, well estimated when they are many, in the
 * current and the last window of the rule.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeyHasher } from '../../src/core/hash.js'
import { keyKinds, type Key } from '../../src/core/key.js'
import { DeclinedKeys } from '../../src/metrics/declined-keys.js'
import { DistinctKeys, exactKeysMax } from '../../src/metrics/distinct-keys.js'

const windowMs = 60_000
const startMs = 1_760_000_040_000
const hasher = new KeyHasher(Buffer.alloc(544, 'a seed for the tests of declined keys'))
const none = new DistinctKeys()

function key(name: number | string): Key {
  hasher.hash(keyKinds.given, String(name))
  return { kind: keyKinds.given, text: '', low: hasher.low, high: hasher.high }
}

function setOf(from: number, to: number): DistinctKeys {
  const keys = new DistinctKeys()
  for (let name = from; name < to; name++) keys.add(key(name))
  return keys
}

describe('different keys', () => {
  it('are counted exactly beside a plain set, however often each comes', () => {
    const names = fc.array(fc.nat(400), { maxLength: 600 })
    fc.assert(
      fc.property(names, names, (some, others) => {
        const [one, other] = [new DistinctKeys(), new DistinctKeys()]
        for (const name of some) one.add(key(name))
        for (const name of others) other.add(key(name))
        expect(one.countWith(none)).toBe(new Set(some).size)
        expect(one.countWith(other)).toBe(new Set([...some, ...others]).size)
      }),
      { numRuns: 50 },
    )
  })

  it(`are exact up to ${exactKeysMax}, and not wrong by much one later`, () => {
    expect(setOf(0, exactKeysMax).countWith(none)).toBe(exactKeysMax)
    const one = setOf(0, exactKeysMax + 1).countWith(none)
    expect(Math.abs(one - exactKeysMax)).toBeLessThan(0.06 * exactKeysMax)
  })

  it.each([1_000, 5_000, 20_000, 200_000])('%i are estimated to some per cent', (count) => {
    const found = setOf(0, count).countWith(none)
    expect(Math.abs(found / count - 1)).toBeLessThan(0.06)
  })

  it('of both are counted once, though one knows them exactly and the other does not', () => {
    const found = setOf(0, 10_000).countWith(setOf(9_900, 10_100))
    expect(Math.abs(found / 10_100 - 1)).toBeLessThan(0.06)
    expect(setOf(9_900, 10_100).countWith(setOf(0, 10_000))).toBe(found)
  })

  it('are forgotten', () => {
    const keys = setOf(0, 2_000)
    keys.clear()
    expect(keys.countWith(none)).toBe(0)
    keys.add(key('again'))
    expect(keys.countWith(none)).toBe(1)
  })
})

describe('what a limit declines', () => {
  it('is shown for the current window and the last one together', () => {
    const declined = new DeclinedKeys(windowMs)
    for (const name of ['a', 'a', 'b']) declined.count(key(name), startMs)
    expect(declined.read(startMs)).toEqual({ over: 3, keysOver: 2 })
    declined.count(key('b'), startMs + windowMs)
    declined.count(key('c'), startMs + windowMs)
    expect(declined.read(startMs + windowMs)).toEqual({ over: 5, keysOver: 3 })
    expect(declined.read(startMs + 2 * windowMs)).toEqual({ over: 2, keysOver: 2 })
    expect(declined.read(startMs + 3 * windowMs)).toEqual({ over: 0, keysOver: 0 })
  })

  it('is gone after a window in which nothing happened', () => {
    const declined = new DeclinedKeys(windowMs)
    declined.count(key('a'), startMs)
    declined.count(key('b'), startMs + 2 * windowMs)
    expect(declined.read(startMs + 2 * windowMs)).toEqual({ over: 1, keysOver: 1 })
  })

  it('counts in the current window when the clock is behind by up to two, and afresh beyond', () => {
    const declined = new DeclinedKeys(windowMs)
    declined.count(key('a'), startMs)
    declined.count(key('b'), startMs - 2 * windowMs)
    expect(declined.read(startMs)).toEqual({ over: 2, keysOver: 2 })
    declined.count(key('c'), startMs - 2 * windowMs - 1)
    expect(declined.read(startMs - 2 * windowMs - 1)).toEqual({ over: 1, keysOver: 1 })
  })
})

/*
 * The sketch of one window beside an exact count, on streams that crowd a few sets: what its header says
 * always holds.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyKinds, type Key } from '../../src/core/key.js'
import { noSlot, SpaceSaving } from '../../src/metrics/space-saving.js'

const wayCount = 8
const setCount = 64

/** A key whose set is chosen, which the seeded hash lets nobody do. */
function keyOf(number: number, set: number): Key {
  const high = (0xffff_0000 + number * setCount + set) | 0
  return {
    kind: keyKinds.address,
    text: `key ${number} of ${set}`,
    low: (0xffff_ffff - number) | 0,
    high,
  }
}

interface Exact {
  requests: number
  over: number
}

class ExactCount {
  readonly keys = new Map<Key, Exact>()
  readonly sets = new Map<number, number>()

  count(key: Key, isOver: boolean): void {
    const exact = this.keys.get(key) ?? { requests: 0, over: 0 }
    exact.requests++
    if (isOver) exact.over++
    this.keys.set(key, exact)
    const set = key.high & (setCount - 1)
    this.sets.set(set, (this.sets.get(set) ?? 0) + 1)
  }
}

interface Attempt {
  number: number
  set: number
  isOver: boolean
  times: number
}

/** Numbers near 0 come often, so that some keys are heavy and many pass by. */
const attempt: fc.Arbitrary<Attempt> = fc.record({
  number: fc.oneof(fc.nat(3), fc.nat(12), fc.nat(200)),
  set: fc.constantFrom(0, 17, 63),
  isOver: fc.boolean(),
  times: fc.integer({ min: 1, max: 20 }),
})
const stream = fc.array(attempt, { maxLength: 300, size: 'max' })

function counted(attempts: readonly Attempt[]) {
  const sketch = new SpaceSaving()
  const exact = new ExactCount()
  const keys = new Map<string, Key>()
  for (const { number, set, isOver, times } of attempts) {
    const name = `${number}/${set}`
    const key = keys.get(name) ?? keyOf(number, set)
    keys.set(name, key)
    for (let time = 0; time < times; time++) {
      sketch.count(key, isOver)
      exact.count(key, isOver)
    }
  }
  return { sketch, exact }
}

/** What the sketch says of a key, listed or not. */
function boundsIn(sketch: SpaceSaving, { low, high }: Key) {
  const slot = sketch.find(low, high)
  if (slot === noSlot) return { atLeast: 0, atMost: sketch.ceiling(high), over: 0 }
  const [atLeast, atMost] = [sketch.atLeastOf(slot), sketch.atMostOf(slot)]
  return { atLeast, atMost, over: sketch.overOf(slot) }
}

describe('a sketch', () => {
  it('holds the true count of each listed key between count - error and count', () => {
    fc.assert(
      fc.property(stream, (attempts) => {
        const { sketch, exact } = counted(attempts)
        for (const [key, { requests }] of exact.keys) {
          const { atLeast, atMost } = boundsIn(sketch, key)
          expect(atLeast).toBeLessThanOrEqual(requests)
          expect(atMost).toBeGreaterThanOrEqual(requests)
        }
      }),
    )
  })

  it('lists every key that made more than an eighth of the attempts of its set', () => {
    let heavyCount = 0
    fc.assert(
      fc.property(stream, (attempts) => {
        const { sketch, exact } = counted(attempts)
        for (const [{ low, high }, { requests }] of exact.keys) {
          const total = exact.sets.get(high & (setCount - 1)) ?? 0
          if (requests * wayCount <= total) continue
          expect(sketch.find(low, high)).not.toBe(noSlot)
          heavyCount++
        }
      }),
    )
    expect(heavyCount).toBeGreaterThan(100)
  })

  it('counts over at most truly, and exactly where nothing was replaced', () => {
    fc.assert(
      fc.property(stream, (attempts) => {
        const { sketch, exact } = counted(attempts)
        for (const [key, { over: overExactly }] of exact.keys) {
          const { atLeast, atMost, over } = boundsIn(sketch, key)
          expect(over).toBeLessThanOrEqual(Math.min(overExactly, atLeast))
          const overAtLeast = atLeast === atMost ? overExactly : 0
          expect(over).toBeGreaterThanOrEqual(overAtLeast)
        }
      }),
    )
  })

  it('counts all attempts exactly, and its listed keys add up to them', () => {
    fc.assert(
      fc.property(stream, (attempts) => {
        const { sketch } = counted(attempts)
        const made = attempts.reduce((sum, { times }) => sum + times, 0)
        let listed = 0
        let largest = 0
        sketch.forEachKey((low, high) => {
          const slot = sketch.find(low, high)
          listed += sketch.atMostOf(slot)
          largest = Math.max(largest, sketch.atLeastOf(slot))
        })
        expect(sketch.attempts).toBe(made)
        expect(listed).toBe(made)
        expect(sketch.largest()).toBe(largest)
      }),
    )
  })

  it('tells keys apart by both words', () => {
    const sketch = new SpaceSaving()
    const key = { kind: keyKinds.given, text: 'a', low: 7, high: 64 }
    for (const other of [key, { ...key, low: 15 }, { ...key, high: 128 }]) {
      sketch.count(other, false)
    }
    const found: [number, number][] = []
    sketch.forEachKey((low, high) => found.push([low, high]))
    expect(found.toSorted(([a, b], [c, d]) => a - c || b - d)).toEqual([
      [7, 64],
      [7, 128],
      [15, 64],
    ])
    expect(sketch.find(15, 128)).toBe(noSlot)
  })

  it('has no error while no more than eight keys share a set', () => {
    const sketch = new SpaceSaving()
    const keys = Array.from({ length: wayCount }, (_, number) => keyOf(number, 5))
    for (let turn = 0; turn < 10; turn++) for (const key of keys) sketch.count(key, turn > 6)
    for (const { low, high, text } of keys) {
      const slot = sketch.find(low, high)
      expect([sketch.atLeastOf(slot), sketch.atMostOf(slot)]).toEqual([10, 10])
      expect(sketch.overOf(slot)).toBe(3)
      expect(sketch.textOf(slot)).toBe(text)
    }
  })

  it('forgets everything when it is cleared', () => {
    const sketch = new SpaceSaving()
    for (let index = 0; index < 200; index++) sketch.count(keyOf(index >> 1, 2), true)
    sketch.clear()
    const keys = Array.from({ length: wayCount }, (_, index) => keyOf(99 - index, 2))
    const { low, high } = keyOf(99, 2)
    expect([sketch.attempts, sketch.largest(), sketch.ceiling(high)]).toEqual([0, 0, 0])
    expect(sketch.find(low, high)).toBe(noSlot)
    sketch.forEachKey(() => expect.unreachable())
    for (const key of keys) sketch.count({ ...key, kind: keyKinds.session }, false)
    const slots = keys.map((key) => sketch.find(key.low, key.high))
    for (const read of ['atLeastOf', 'atMostOf'] as const) {
      expect(slots.map((slot) => sketch[read](slot))).toEqual(keys.map(() => 1))
    }
    expect(slots.map((slot) => sketch.overOf(slot))).toEqual(keys.map(() => 0))
    expect(slots.map((slot) => sketch.textOf(slot))).toEqual(keys.map(() => null))
  })
})

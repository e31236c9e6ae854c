/*
 * The heaviest keys of a rule over two windows: beside an exact count, in a flood, when the clock steps,
 * and what is kept of a key's text.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { keyKinds, type Key } from '../../src/core/key.js'
import { KeyHasher } from '../../src/core/hash.js'
import { HeavyKeys, type HeavyKey } from '../../src/metrics/heavy-keys.js'
import { collectionsIn } from '../support/collections.js'

const windowMs = 60_000
const startMs = 1_760_000_040_000
const hasher = new KeyHasher(Buffer.alloc(544, 'a seed for the tests of heavy keys'))

function hashed(text: string, kind: number = keyKinds.given): Key {
  hasher.hash(kind, text)
  return { kind, text, low: hasher.low, high: hasher.high }
}

const address = (text: string) => hashed(text, keyKinds.address)

function idOf({ low, high }: Key): string {
  return ((BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)).toString(16).padStart(16, '0')
}

let heavy: HeavyKeys

beforeEach(() => {
  heavy = new HeavyKeys(windowMs)
})

function count(key: Key, times: number, nowMs: number, isOver = false): void {
  for (let time = 0; time < times; time++) heavy.count(key, isOver, nowMs)
}

const requestsOf = (list: readonly HeavyKey[]) =>
  Object.fromEntries(list.map(({ key, requests }) => [key, requests]))

describe('the lists', () => {
  it('hold each key with its attempts and declines, the heaviest first', () => {
    count(address('203.0.113.7'), 117, startMs)
    count(address('203.0.113.7'), 3, startMs, true)
    count(address('203.0.113.8'), 40, startMs)
    count(address('203.0.113.9'), 50, startMs, true)
    const first = { key: '203.0.113.7', requests: 120, over: 3, countErrorMax: 0 }
    const second = { key: '203.0.113.9', requests: 50, over: 50, countErrorMax: 0 }
    const third = { key: '203.0.113.8', requests: 40, over: 0, countErrorMax: 0 }
    const [firstId, secondId, thirdId] = ['203.0.113.7', '203.0.113.9', '203.0.113.8'].map((text) =>
      idOf(address(text)),
    )
    expect(heavy.heaviest(startMs, 10)).toEqual([
      { id: firstId, ...first },
      { id: secondId, ...second },
      { id: thirdId, ...third },
    ])
    expect(heavy.mostDeclined(startMs, 10)).toEqual([
      { id: secondId, ...second },
      { id: firstId, ...first },
    ])
    expect(heavy.heaviest(startMs, 1).map(({ id }) => id)).toEqual([firstId])
    expect(heavy.attempts(startMs)).toBe(210)
  })

  it('are empty before the first attempt', () => {
    expect(heavy.heaviest(startMs, 10)).toEqual([])
    expect(heavy.mostDeclined(startMs, 10)).toEqual([])
    expect([heavy.largestRatio(startMs), heavy.attempts(startMs)]).toEqual([0, 0])
  })

  it('order equals by id, which is the hash in 16 lower-case digits', () => {
    const keys = [
      { low: 0xffff_ffff, high: 0 },
      { low: 1, high: 1 },
      { low: 2, high: 0x8000_0000 },
      { low: 0x8000_0000, high: 0x8000_0000 },
      { low: 10, high: 0xffff_ffff },
    ].map(({ low, high }) => ({ kind: keyKinds.session, text: 's', low: low | 0, high: high | 0 }))
    for (const key of keys.toReversed()) count(key, 2, startMs, true)
    const ids = [
      '00000000ffffffff',
      '0000000100000001',
      '8000000000000002',
      '8000000080000000',
      'ffffffff0000000a',
    ]
    expect(heavy.heaviest(startMs, 10).map(({ id }) => id)).toEqual(ids)
    expect(heavy.mostDeclined(startMs, 10).map(({ id }) => id)).toEqual(ids)
  })
})

describe('windows', () => {
  const key = address('203.0.113.7')
  const other = address('203.0.113.8')

  it('a key in both is listed once, with both counts', () => {
    count(key, 5, startMs - 1, true)
    count(key, 7, startMs)
    count(other, 9, startMs)
    const nowMs = startMs + windowMs - 0.001
    expect(requestsOf(heavy.heaviest(nowMs, 10))).toEqual({ '203.0.113.7': 12, '203.0.113.8': 9 })
    expect(heavy.mostDeclined(nowMs, 10)).toMatchObject([{ requests: 12, over: 5 }])
    expect(heavy.attempts(nowMs)).toBe(21)
  })

  it('a window is forgotten when the one after it closes', () => {
    count(key, 5, startMs - 1)
    count(other, 7, startMs)
    expect(requestsOf(heavy.heaviest(startMs + windowMs, 10))).toEqual({ '203.0.113.8': 7 })
    expect(heavy.heaviest(startMs + 2 * windowMs, 10)).toEqual([])
  })

  it('idle windows in between are empty', () => {
    count(key, 5, startMs)
    count(other, 7, startMs + 2 * windowMs)
    expect(requestsOf(heavy.heaviest(startMs + 2 * windowMs, 10))).toEqual({ '203.0.113.8': 7 })
    expect(heavy.attempts(startMs + 100 * windowMs)).toBe(0)
  })

  it('a clock behind by up to two windows counts in the current one', () => {
    count(key, 5, startMs - 1)
    count(key, 5, startMs)
    for (const behindMs of [0.5, windowMs, 2 * windowMs]) count(key, 1, startMs - behindMs)
    count(key, 1, startMs + windowMs - 1)
    expect(requestsOf(heavy.heaviest(startMs, 10))).toEqual({ '203.0.113.7': 14 })
    expect(requestsOf(heavy.heaviest(startMs + windowMs, 10))).toEqual({ '203.0.113.7': 9 })
  })

  it('a clock further behind starts afresh, and counts on from there', () => {
    count(key, 5, startMs, true)
    const backMs = startMs - 3 * windowMs
    count(other, 2, backMs)
    expect(requestsOf(heavy.heaviest(backMs, 10))).toEqual({ '203.0.113.8': 2 })
    expect(heavy.mostDeclined(backMs, 10)).toEqual([])
    expect(requestsOf(heavy.heaviest(backMs + windowMs, 10))).toEqual({ '203.0.113.8': 2 })
  })

  it('a reading that is no time throws nothing and is over with the next good one', () => {
    for (const nowMs of [NaN, Infinity, -Infinity, -1e15, 8.64e15, -0.25]) {
      count(key, 1, nowMs)
      count(key, 3, startMs)
      expect(heavy.heaviest(startMs, 10)).toMatchObject([{ requests: 3 }])
      count(key, 4, startMs + windowMs)
      expect(heavy.heaviest(startMs + windowMs, 10)).toMatchObject([{ requests: 7 }])
    }
  })

  it('turn at multiples of their length since the epoch', () => {
    for (const [lengthMs, closedMs] of [
      [7, 7 * 251_428_576_000 - 0.5],
      [7, -0.5],
      [366 * 86_400_000, 56 * 366 * 86_400_000 - 0.5],
    ] as const) {
      heavy = new HeavyKeys(lengthMs)
      count(key, 5, closedMs)
      count(key, 2, closedMs + 0.5)
      count(other, 2, closedMs + 0.5)
      expect(heavy.largestRatio(closedMs + 0.5)).toBe(1)
      expect(heavy.largestRatio(closedMs + 0.5 + lengthMs)).toBe(0.5)
    }
  })
})

describe('the largest share', () => {
  it('is that of the last closed window where that had attempts, else of the current one', () => {
    count(address('203.0.113.7'), 30, startMs)
    count(address('203.0.113.8'), 70, startMs)
    expect(heavy.largestRatio(startMs)).toBe(0.7)
    count(address('203.0.113.7'), 1, startMs + windowMs)
    expect(heavy.largestRatio(startMs + windowMs)).toBe(0.7)
    expect(heavy.largestRatio(startMs + 2 * windowMs)).toBe(1)
    count(address('203.0.113.7'), 1, startMs + 4 * windowMs)
    count(address('203.0.113.8'), 3, startMs + 4 * windowMs)
    expect(heavy.largestRatio(startMs + 4 * windowMs)).toBe(0.75)
    expect(heavy.largestRatio(startMs + 6 * windowMs)).toBe(0)
  })

  it('is never more than any key made', () => {
    for (let index = 0; index < 20_000; index++) heavy.count(hashed(`${index}`), false, startMs)
    expect(heavy.largestRatio(startMs)).toBe(1 / 20_000)
  })
})

describe('beside an exact count', () => {
  interface Exact {
    requests: number
    over: number
  }

  /** Keys by id, window by window. */
  function exactly(windows: ReadonlyMap<number, ReadonlyMap<string, Exact>>, nowMs: number) {
    const current = Math.floor(nowMs / windowMs)
    const sums = new Map<string, Exact>()
    for (const window of [current, current - 1]) {
      for (const [id, { requests, over }] of windows.get(window) ?? []) {
        const sum = sums.get(id) ?? { requests: 0, over: 0 }
        sums.set(id, { requests: sum.requests + requests, over: sum.over + over })
      }
    }
    return sums
  }

  function isWithin({ requests, over, countErrorMax }: HeavyKey, exact: Exact | undefined) {
    const made = exact ?? { requests: 0, over: 0 }
    const atLeast = requests - countErrorMax
    const isCountRight = atLeast <= made.requests && made.requests <= requests
    return isCountRight && over <= made.over && over <= atLeast
  }

  const step = fc.record({
    number: fc.oneof(fc.nat(3), fc.nat(40), fc.nat(3_000)),
    isOver: fc.boolean(),
    times: fc.integer({ min: 1, max: 5 }),
    waitMs: fc.oneof(
      { weight: 30, arbitrary: fc.nat(100) },
      { weight: 1, arbitrary: fc.nat(150_000) },
    ),
  })
  /** Two sets only, so that a few hundred attempts crowd them. */
  const keys = Array.from({ length: 3_001 }, (_, number) => {
    const { low, high } = hashed(`key ${number}`)
    const squeezed = (high & ~63) | (number % 2)
    return { kind: keyKinds.given, text: `key ${number}`, low, high: squeezed | 0 }
  })

  it('every entry of both lists keeps its bounds, over both windows', () => {
    let inexactCount = 0
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150, size: 'max' }), (steps) => {
        heavy = new HeavyKeys(windowMs)
        const windows = new Map<number, Map<string, Exact>>()
        let nowMs = startMs
        for (const { number, isOver, times, waitMs } of steps) {
          nowMs += waitMs
          const key = keys[number] as Key
          count(key, times, nowMs, isOver)
          const window = windows.get(Math.floor(nowMs / windowMs)) ?? new Map<string, Exact>()
          windows.set(Math.floor(nowMs / windowMs), window)
          const { requests, over } = window.get(idOf(key)) ?? { requests: 0, over: 0 }
          window.set(idOf(key), { requests: requests + times, over: over + (isOver ? times : 0) })
        }
        const exact = exactly(windows, nowMs)
        const total = [...exact.values()].reduce((sum, { requests }) => sum + requests, 0)
        expect(heavy.attempts(nowMs)).toBe(total)
        const lists = [heavy.heaviest(nowMs, 5_000), heavy.mostDeclined(nowMs, 5_000)]
        for (const list of lists) {
          expect(new Set(list.map(({ id }) => id)).size).toBe(list.length)
          expect(list.filter((entry) => !isWithin(entry, exact.get(entry.id)))).toEqual([])
          inexactCount += list.filter(({ countErrorMax }) => countErrorMax > 0).length
        }
        const certain = lists[0]?.map(({ requests, countErrorMax }) => requests - countErrorMax)
        expect(certain).toEqual(certain?.toSorted((a, b) => b - a))
        const declines = lists[1]?.map(({ over }) => over)
        expect(declines).toEqual(declines?.toSorted((a, b) => b - a))
      }),
    )
    expect(inexactCount).toBeGreaterThan(100)
  })
})

describe('a flood', () => {
  const floodCount = 1_000_000
  /** Keys that come once; nothing is kept of them, so one object will do. */
  function passBy(number: number, isOver: boolean): void {
    const text = `flood ${number}`
    hasher.hash(keyKinds.given, text)
    const { low, high } = hasher
    heavy.count({ kind: keyKinds.given, text, low, high }, isOver, startMs)
  }

  it('of a million keys that come once pushes no heavy key out', () => {
    // One in 200 of all attempts: a third of the attempts in its set.
    const keys = Array.from({ length: 5 }, (_, number) => address(`203.0.113.${number}`))
    for (let number = 0; number < floodCount; number++) {
      passBy(number, number % 2 === 0)
      if (number % 200 === 0) for (const key of keys) heavy.count(key, true, startMs)
    }
    const made = floodCount / 200
    const list = heavy.heaviest(startMs, 5)
    expect(list.map(({ id }) => id).toSorted()).toEqual(keys.map(idOf).toSorted())
    for (const { key, requests, over, countErrorMax } of list) {
      expect(key).toMatch(/^203\.0\.113\.\d$/)
      expect(requests).toBeGreaterThanOrEqual(made)
      expect(requests - countErrorMax).toBeLessThanOrEqual(made)
      expect(countErrorMax).toBeLessThan(made * 0.01)
      expect(over).toBeGreaterThan(made * 0.99)
      expect(over).toBeLessThanOrEqual(made)
    }
    expect(
      heavy
        .mostDeclined(startMs, 5)
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(keys.map(idOf).toSorted())
    expect(heavy.attempts(startMs)).toBe(floodCount + keys.length * made)
  })

  it('of declined keys takes nothing from what a heavy key is known to be declined', () => {
    const key = address('203.0.113.7')
    count(key, 50_000, startMs)
    for (let number = 0; number < 200_000; number++) {
      passBy(number, true)
      if (number % 1_000 === 0) heavy.count(key, true, startMs)
    }
    const entry = { id: idOf(key), key: '203.0.113.7', over: 200, countErrorMax: 0 }
    expect(heavy.heaviest(startMs, 1)).toEqual([{ ...entry, requests: 50_200 }])
  })

  it('of allowed keys, however heavy, hides no key that is declined', () => {
    const key = address('203.0.113.7')
    for (let number = 0; number < 200_000; number++) {
      passBy(number % 4_000, false)
      if (number % 2_000 === 0) heavy.count(key, true, startMs)
    }
    const [entry, ...others] = heavy.mostDeclined(startMs, 10)
    expect(entry).toMatchObject({ id: idOf(key), key: '203.0.113.7', over: 100 })
    expect((entry?.requests ?? 0) - (entry?.countErrorMax ?? 0)).toBe(100)
    expect(others).toEqual([])
  })

  it('of the last window does not rank its keys above those of the current one', () => {
    for (let number = 0; number < 100_000; number++) passBy(number, false)
    const key = address('203.0.113.7')
    count(key, 50, startMs + windowMs)
    const [entry] = heavy.heaviest(startMs + windowMs, 1)
    expect(entry).toMatchObject({ id: idOf(key), key: '203.0.113.7' })
    // It may have been among the flood too.
    expect((entry?.requests ?? 0) - (entry?.countErrorMax ?? 0)).toBe(50)
  })
})

describe('the text of a key', () => {
  const textOf = (key: Key, times = 5) => {
    count(key, times, startMs, true)
    const [entry, declined] = [heavy.heaviest(startMs, 1)[0], heavy.mostDeclined(startMs, 1)[0]]
    expect(entry).toEqual(declined)
    return entry?.key
  }

  it.each([
    ['an address', keyKinds.address, '2001:db8::/64'],
    ['an empty one', keyKinds.address, ''],
    ['one of 64 characters', keyKinds.address, 'x'.repeat(64)],
    ['half a surrogate pair', keyKinds.address, 'a\ud83d€𝒳'],
  ])('%s is kept as it is', (_, kind, text) => {
    expect(textOf(hashed(text, kind))).toBe(text)
  })

  it.each([
    ['a session', keyKinds.session, 's3cr3t'],
    ['everybody', keyKinds.global, ''],
    ['one of 65 characters', keyKinds.address, 'x'.repeat(65)],
    ['a given key', keyKinds.given, 'customer 42'],
    ['a header', keyKinds.header, 'sk_live_1'],
    ['one of an unknown kind', 99, 'a'],
  ])('%s is listed by its id alone', (_, kind, text) => {
    expect(textOf(hashed(text, kind))).toBeNull()
  })

  it('is not kept of a key that only passes by in a crowd, and is when it stays', () => {
    const crowd = Array.from({ length: 8 }, (_, number) => ({
      ...address(`203.0.113.${number}`),
      high: number * 64,
    }))
    for (const key of crowd) count(key, 2, startMs)
    const late = { ...address('198.51.100.1'), high: 64 * 9 }
    const keyOfLate = () => heavy.heaviest(startMs, 10).find(({ id }) => id === idOf(late))?.key
    count(late, 1, startMs)
    expect(keyOfLate()).toBeNull()
    count(late, 7, startMs)
    expect(keyOfLate()).toBe('198.51.100.1')
  })

  it('is forgotten with its window', () => {
    const key = address('203.0.113.7')
    count(key, 5, startMs)
    const nowMs = startMs + 2 * windowMs
    count({ ...key, kind: keyKinds.session, text: 'hidden' }, 1, nowMs)
    expect(heavy.heaviest(nowMs, 1)).toMatchObject([{ key: null, requests: 1 }])
  })

  /** Bytes that stay when each of 200 slices of a long text has been handed over. */
  function bytesKept(take: (slice: string) => void): number {
    setFlagsFromString('--expose-gc')
    const gc = runInNewContext('gc') as () => void
    gc()
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < 200; index++) {
      const header = Buffer.alloc(100_000, `${index} `).toString('latin1')
      take(header.slice(0, 40))
    }
    gc()
    return process.memoryUsage().heapUsed - before
  }

  it('keeps nothing alive that it was cut from', () => {
    const slices: string[] = []
    expect(bytesKept((slice) => slices.push(slice))).toBeGreaterThan(15_000_000)
    const kept = bytesKept((slice) => count(address(slice), 3, startMs, true))
    expect(heavy.heaviest(startMs, 1)[0]?.key).toHaveLength(40)
    expect(kept).toBeLessThan(1_000_000)
    expect(slices).toHaveLength(200)
  })
})

describe('the request path', () => {
  const countCount = 3_000_000
  const keys = Array.from({ length: 300 }, (_, number) => address(`203.0.${number >> 8}.${number}`))
  const sessions = Array.from({ length: 3_000 }, (_, number) =>
    hashed(`session ${number}`, keyKinds.session),
  )

  /**
   * One reading of the clock for many counts: a new double would be an object of its own wherever the
   * compiler does not inline the call, and that is the caller's.
   */
  function run(among: readonly Key[], times: number, nowMs: number): void {
    for (let index = 0; index < times; index++) {
      heavy.count(among[index % among.length] as Key, index % 3 === 0, nowMs)
    }
  }

  it('control: one small object a count is seen', async () => {
    const kept: object[] = []
    const collections = await collectionsIn(() => {
      for (let index = 0; index < countCount; index++) kept[index & 1023] = { index }
    })
    expect(collections).toBeGreaterThanOrEqual(3)
  })

  it.each([
    ['a hit', keys],
    ['a miss in a full set', sessions],
  ])('allocates nothing for %s', async (_, among) => {
    for (let round = 0; round < 4; round++) run(among, 200_000, startMs + 0.25)
    const collections = await collectionsIn(() => run(among, countCount, startMs + 0.5))
    // One may fall in the span for what the test runner itself leaves.
    expect(collections).toBeLessThanOrEqual(1)
  })

  it('allocates nothing when windows turn', async () => {
    const turn = (from: number, to: number) => {
      for (let window = from; window < to; window++) {
        run(sessions, countCount / 1_000, startMs + window * windowMs + 0.25)
      }
    }
    turn(0, 300)
    const collections = await collectionsIn(() => turn(300, 1_300))
    expect(collections).toBeLessThanOrEqual(1)
  })
})

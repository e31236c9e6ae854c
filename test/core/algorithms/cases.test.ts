/*
 * Reported failures of other limiters that an algorithm alone can have, each under its id. Times are in
 * seconds from a moment that is a multiple of every window used here.
 */
import { describe, expect, it } from 'vitest'
import { algorithmNames, OneKey, type HarnessOptions } from '../../support/algorithm-harness.js'

const dayMs = 86_400_000
/** A multiple of 365 days, so of all shorter windows here but the odd ones. */
const originMs = 56 * 365 * dayMs
const at = (seconds: number) => originMs + Math.round(seconds * 1000)

const sliding = (limit: number, seconds: number) => keyOf('sliding-window', limit, seconds)
const log = (limit: number, seconds: number, more?: Partial<HarnessOptions>) =>
  keyOf('rolling-window', limit, seconds, more)
const average = (limit: number, seconds: number, more?: Partial<HarnessOptions>) =>
  keyOf('exponential', limit, seconds, more)

function keyOf(
  algorithm: string,
  limit: number,
  seconds: number,
  more: Partial<HarnessOptions> = {},
): OneKey {
  return new OneKey({ algorithm, limit, windowMs: seconds * 1000, ...more })
}

/** How many of `count` attempts at one time pass. */
function burst(key: OneKey, seconds: number, count: number): number {
  let passed = 0
  for (let index = 0; index < count; index++) if (key.attempt(at(seconds)).allowed) passed++
  return passed
}

describe('ALG: window edges, counts, decay', () => {
  it('ALG-01 the window before weighs by its share', () => {
    const key = sliding(10, 60)
    expect(burst(key, 55, 10)).toBe(10)
    expect(burst(key, 90, 10)).toBe(5)
    const fixed = keyOf('fixed-window', 10, 60)
    expect(burst(fixed, 55, 10)).toBe(10)
    expect(burst(fixed, 90, 10)).toBe(10)
  })

  it('ALG-03 the share is not cut to a whole number', () => {
    const key = sliding(10, 10)
    expect(burst(key, 9, 10)).toBe(10)
    expect(burst(key, 10.5, 1)).toBe(0)
    expect(burst(key, 11, 2)).toBe(1)
  })

  it('ALG-04 a limit of one admits', () => {
    const key = sliding(1, 10)
    const passed = Array.from({ length: 20 }, (_, index) => key.attempt(at(index * 10)).allowed)
    expect(passed).toEqual(Array.from({ length: 20 }, (_, index) => index % 2 === 0))
    for (const algorithm of algorithmNames) {
      expect(keyOf(algorithm, 1, 10).attempt(at(3.21)).allowed).toBe(true)
    }
  })

  it('ALG-06 declined attempts are not in the log', () => {
    const key = log(10, 600)
    const passed: number[] = []
    for (let seconds = 0; seconds < 1200; seconds += 30) {
      if (key.attempt(at(seconds)).allowed) passed.push(seconds)
      expect(key.entries().length).toBeLessThanOrEqual(10)
    }
    const expected = [0, 600].flatMap((from) =>
      Array.from({ length: 10 }, (_, index) => from + index * 30),
    )
    expect(passed).toEqual(expected)
  })

  it('ALG-08 an entry exactly one window old no longer counts', () => {
    const key = log(1, 10)
    expect(key.attempt(at(0)).allowed).toBe(true)
    expect(key.attempt(at(9.999))).toMatchObject({ allowed: false, retryAfterMs: 1 })
    expect(key.attempt(at(10)).allowed).toBe(true)
  })

  it('ALG-10 attempts of one millisecond all count', () => {
    const key = log(10, 60)
    expect(burst(key, 5, 100)).toBe(10)
    expect(key.entries().reduce((total, { cost }) => total + cost, 0)).toBe(10)
    expect(key.peek(at(5)).usage).toBe(10)
  })

  it.each(algorithmNames)('ALG-12 %s passes exactly the limit at one instant', (algorithm) => {
    for (const limit of [1, 5]) {
      const key = keyOf(algorithm, limit, 60)
      const measures = Array.from({ length: 8 }, () => key.attempt(at(7)))
      expect(measures.map(({ allowed }) => allowed)).toEqual(measures.map((_, i) => i < limit))
      expect(measures.map(({ remaining }) => remaining)).toEqual(
        measures.map((_, i) => Math.max(0, limit - 1 - i)),
      )
    }
  })

  it('ALG-14 no time between two attempts is no infinite rate', () => {
    const key = average(10, 60)
    expect(burst(key, 0, 11)).toBe(10)
    expect(key.peek(at(60)).usage).toBeCloseTo(3.6788, 4)
    expect(burst(key, 60, 11)).toBe(6)
  })

  it('ALG-16 the average of a steady rate is that rate', () => {
    const key = average(100, 60)
    let usage = 0
    for (let seconds = 0; seconds <= 1800; seconds += 4) usage = key.attempt(at(seconds)).usage
    expect(usage).toBeCloseTo(15, 6)
    expect(key.peek(at(1804)).usage).toBeCloseTo(14.03, 2)
  })

  it('ALG-17 a burst after the start is not extrapolated', () => {
    const key = average(5, 60)
    const passed = [0, 0.001, 0.002, 0.003, 0.004].map((s) => key.attempt(at(s)).allowed)
    expect(passed).toEqual([true, true, true, true, true])
    expect(key.attempt(at(0.004)).allowed).toBe(false)
  })

  it('ALG-18 a look at the turn of a window sees the window before', () => {
    const key = sliding(10, 60)
    expect(burst(key, 59, 10)).toBe(10)
    expect(key.peek(at(60)).usage).toBe(10)
    expect(burst(key, 60, 10)).toBe(0)
  })
})

describe('CLK: clock moves', () => {
  it.each(algorithmNames)('CLK-01 %s passes after a step back', (algorithm) => {
    const key = keyOf(algorithm, 10, 60)
    expect(burst(key, 30, 3)).toBe(3)
    const { allowed, remaining, usage } = key.attempt(at(19))
    expect({ allowed, remaining }).toEqual({ allowed: true, remaining: 6 })
    expect(usage).toBeCloseTo(4, 9)
  })

  it.each(['rolling-window', 'sliding-window'])(
    'CLK-03 %s gives no quota for a clock that flips',
    (algorithm) => {
      const key = keyOf(algorithm, 10, 60)
      let passed = 0
      for (let flip = 0; flip < 10; flip++) passed += burst(key, flip % 2 === 0 ? 30 : 90.001, 10)
      expect(passed).toBeLessThanOrEqual(20)
    },
  )

  it.each(algorithmNames)(
    'CLK-03 %s starts afresh where its record lies far ahead',
    (algorithm) => {
      const key = keyOf(algorithm, 10, 60)
      expect(burst(key, 100_000, 12)).toBe(10)
      expect(key.fork().isExpired(at(0))).toBe(true)
      expect(key.peek(at(0))).toMatchObject({ allowed: true, usage: 0 })
      expect(burst(key, 0, 12)).toBe(10)
      expect(key.attempt(at(0)).retryAfterMs).toBeLessThanOrEqual(120_000)
      expect(key.state.entries?.count ?? 1).toBe(1)
    },
  )
})

describe('HDR, MEM, CFG, CMB: what rests on the log', () => {
  it('HDR-01 the announced wait is enough', () => {
    for (const restMs of [1900, 900, 1]) {
      const key = log(1, 10)
      key.attempt(at(0))
      const clockMs = at(10) - restMs
      expect(key.attempt(clockMs).retryAfterMs).toBe(restMs)
      expect(key.attempt(clockMs + restMs).allowed).toBe(true)
    }
    const key = log(1, 10)
    key.attempt(at(0) + 0.25)
    expect(key.attempt(at(9)).retryAfterMs).toBe(1001)
    expect(key.attempt(at(10)).retryAfterMs).toBe(1)
  })

  it('HDR-03 a lowered limit waits for all entries that are too many', () => {
    const key = log(3, 60)
    for (const seconds of [0, 10, 20]) expect(key.attempt(at(seconds)).allowed).toBe(true)
    key.configure({ limit: 1, capacity: 1 })
    const measure = key.attempt(at(25.4))
    expect(measure).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 54_600 })
    expect(measure.resetMs).toBe(54_600)
  })

  it('MEM-06 a long window outlives a short one', () => {
    const key = log(3, 86_400)
    expect(burst(key, 0, 3)).toBe(3)
    expect(key.isExpired(at(61))).toBe(false)
    expect(key.attempt(at(62)).retryAfterMs).toBe(86_338_000)
  })

  it.each([7, 30, 365])('CFG-01 a window of %i days does not overflow', (days) => {
    const key = log(5, days * 86_400)
    expect(burst(key, 0, 6)).toBe(5)
    expect(burst(key, 1, 1)).toBe(0)
    expect(burst(key, (days * 86_400 * 5) / 6, 1)).toBe(0)
    expect(burst(key, days * 86_400, 1)).toBe(1)
    for (const algorithm of algorithmNames) {
      const other = keyOf(algorithm, 5, days * 86_400)
      expect(burst(other, 0, 6)).toBe(5)
      expect(burst(other, 1, 1)).toBe(0)
      const { retryAfterMs } = other.attempt(at(1))
      expect(retryAfterMs).toBeGreaterThan(days * 8_000_000)
      expect(other.attempt(at(1) + retryAfterMs).allowed).toBe(true)
    }
  })

  it('CMB-03 two limits of one client count apart', () => {
    const [minute, day] = [log(5, 60), log(50, 86_400)]
    for (const start of [0, 61]) {
      for (let count = 0; count < 6; count++) {
        const seconds = start + count
        const isAllowed = minute.peek(at(seconds)).allowed && day.peek(at(seconds)).allowed
        expect(isAllowed).toBe(count < 5)
        if (!isAllowed) continue
        minute.attempt(at(seconds))
        day.attempt(at(seconds))
      }
    }
    expect(day.peek(at(70)).usage).toBe(10)
  })

  it('CMB-04 each rule keeps its own window', () => {
    const [short, day] = [log(10, 60), log(500, 86_400)]
    expect(burst(short, 0, 11)).toBe(10)
    expect(burst(day, 0, 10)).toBe(10)
    expect(day.peek(at(0)).remaining).toBe(490)
    expect(burst(short, 61, 1)).toBe(1)
  })
})

describe('refunds and adjustments', () => {
  it('rolling-window takes a refund off the entry of its time, and the last attempt with it', () => {
    const key = log(5, 60, { minIntervalMs: 2000 })
    const measures = [0, 10, 20].map((seconds) => key.attempt(at(seconds)))
    expect(key.peek(at(21)).retryAfterMs).toBe(1000)
    key.refund(measures[1] ?? key.peek(at(21)))
    expect(key.entries().map(({ timeMs }) => timeMs)).toEqual([at(0), at(20)])
    expect(key.peek(at(21)).allowed).toBe(false)
    key.refund(measures[2] ?? key.peek(at(21)))
    expect(key.entries().map(({ timeMs }) => timeMs)).toEqual([at(0)])
    expect(key.peek(at(21))).toMatchObject({ allowed: true, usage: 1 })
    key.refund(measures[2] ?? key.peek(at(21)))
    expect(key.peek(at(21)).usage).toBe(1)
  })

  it('rolling-window keeps minInterval from the very epoch, and when it is longer than the window', () => {
    const key = log(5, 1, { minIntervalMs: 5000 })
    expect(key.attempt(0).allowed).toBe(true)
    expect(key.attempt(0)).toMatchObject({ allowed: false, retryAfterMs: 5000 })
    expect(key.attempt(4999)).toMatchObject({ allowed: false, usage: 0, retryAfterMs: 1 })
    expect(key.isExpired(4999)).toBe(false)
    expect(key.isExpired(5000)).toBe(true)
    expect(key.attempt(5000).allowed).toBe(true)
  })

  it('rolling-window takes an adjustment off the newest entries', () => {
    const key = log(10, 60)
    for (const seconds of [0, 10, 20]) key.attempt(at(seconds), 3)
    key.adjust(at(30), -4)
    expect(key.entries()).toEqual([
      { timeMs: at(0), cost: 3 },
      { timeMs: at(10), cost: 2 },
    ])
    key.adjust(at(30), 4)
    expect(key.entries().at(-1)).toEqual({ timeMs: at(30), cost: 4 })
    key.adjust(at(30), -100)
    expect(key.entries()).toEqual([])
    expect(key.state.entries?.count).toBe(0)
  })

  it('rolling-window keeps of a strict flood the newest that reach the limit', () => {
    const key = log(3, 60, { strict: true })
    for (let seconds = 0; seconds < 30; seconds++) key.attempt(at(seconds))
    expect(key.entries().map(({ timeMs }) => timeMs)).toEqual([at(27), at(28), at(29)])
    const measure = key.attempt(at(30), 1000)
    expect(measure).toMatchObject({ usage: 3, remaining: 0, retryAfterMs: Infinity })
    expect(key.entries()).toEqual([{ timeMs: at(30), cost: 1000 }])
  })

  it('token-bucket gives nothing back of what has been refilled since', () => {
    const key = keyOf('token-bucket', 10, 60)
    const first = key.attempt(at(0), 8)
    key.attempt(at(60), 9)
    key.refund(first)
    expect(key.peek(at(60)).usage).toBe(9)
  })

  it('token-bucket with limit 0 declines for ever and keeps nothing, whatever its burst', () => {
    const key = keyOf('token-bucket', 0, 60, { burst: 5, strict: true })
    expect(key.attempt(at(0))).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMs: Infinity,
      resetMs: 0,
    })
    expect(key.isExpired(at(0))).toBe(true)
  })

  it('exponential gives back what was taken, decayed since', () => {
    const key = average(10, 60)
    key.attempt(at(0), 2)
    const second = key.attempt(at(30), 3)
    const other = average(10, 60)
    other.attempt(at(0), 2)
    key.attempt(at(45))
    const usage = key.peek(at(60)).usage
    key.refund(second)
    const given = usage - key.peek(at(60)).usage
    expect(given).toBeCloseTo(second.taken * Math.exp(-0.5), 9)
  })

  it('fixed-window gives nothing back into another window', () => {
    const key = keyOf('fixed-window', 5, 60)
    const first = key.attempt(at(10), 3)
    key.attempt(at(70))
    key.refund(first)
    expect(key.peek(at(70)).usage).toBe(1)
  })

  it('exponential answers below 2^-20 as for a key never seen', () => {
    const key = average(3, 60)
    key.attempt(at(0), 3)
    key.adjust(at(0), -3 + 2 ** -21)
    expect(key.isExpired(at(0))).toBe(true)
    expect(key.attempt(at(0), 3)).toMatchObject({ allowed: true, usage: 3 })
  })

  it('exponential records a tie just above the limit as the limit', () => {
    const key = average(3, 366 * 86_400)
    burst(key, 0, 3)
    const { retryAfterMs } = key.attempt(at(0))
    const tie = key.attempt(at(0) + retryAfterMs - 10)
    expect(tie.usageWith).toBeGreaterThan(3)
    expect(tie).toMatchObject({ allowed: true, usage: 3 })
  })

  it('exponential with maxAge forgets a strict record, and announces so', () => {
    const key = average(1, 60, { strict: true, maxAgeMs: 90_000 })
    burst(key, 0, 1000)
    expect(key.peek(at(0)).retryAfterMs).toBe(90_001)
    expect(key.peek(at(90)).allowed).toBe(false)
    expect(key.peek(at(90.001))).toMatchObject({ allowed: true, usage: 0 })
  })

  it.each(algorithmNames)('%s saturates where a strict flood would wrap', (algorithm) => {
    const key = keyOf(algorithm, 2 ** 32 - 1, 366 * 86_400, { strict: true })
    for (let count = 0; count < 5; count++) key.attempt(at(0), 2 ** 32 - 1)
    key.attempt(at(0), Number.MAX_SAFE_INTEGER)
    key.attempt(at(0), 1e300)
    const measure = key.attempt(at(0))
    expect(measure).toMatchObject({ allowed: false, remaining: 0 })
    expect(measure.usage).toBeGreaterThanOrEqual(2 ** 32 - 1)
    expect(Number.isSafeInteger(measure.retryAfterMs)).toBe(true)
    expect(key.peek(at(0) + measure.retryAfterMs).allowed).toBe(true)
  })
})

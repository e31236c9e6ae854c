/*
 * What each algorithm promises, under any traffic: how much passes, that the announced wait is the least
 * one, that looking changes nothing, that a refund gives back what was taken and no more, and that clocks
 * may be set to anything.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Measure } from '../../../src/core/algorithm.js'
import { algorithmNames, OneKey, type HarnessOptions } from '../../support/algorithm-harness.js'

const startMs = 1_760_000_000_000
const dayMs = 86_400_000
const runs = { numRuns: 300 }
/** Where each step is asked again in a copy of the past. */
const costlyRuns = { numRuns: 200 }

interface Step {
  /** In quarters of a millisecond, so that every sum of times is exact. */
  gapQuarters: number
  cost: number
}

function options(algorithm: string, strict: boolean): fc.Arbitrary<HarnessOptions> {
  return fc
    .record({
      limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(60, 1000)),
      windowMs: fc.constantFrom(1, 7, 997, 1000, 60_000, 30 * dayMs, 366 * dayMs),
      burst: fc.integer({ min: 1, max: 20 }),
      minIntervalShare: fc.constantFrom(0, 0, 0.1, 1, 1.5),
      maxAgeShare: fc.constantFrom(Infinity, Infinity, 2),
    })
    .map(({ limit, windowMs, burst, minIntervalShare, maxAgeShare }) => ({
      algorithm,
      limit,
      windowMs,
      strict,
      burst: algorithm === 'token-bucket' ? burst : limit,
      minIntervalMs: algorithm === 'rolling-window' ? Math.floor(windowMs * minIntervalShare) : 0,
      maxAgeMs: algorithm === 'exponential' ? windowMs * maxAgeShare : Infinity,
    }))
}

/** Traffic of about the limit: most gaps a share of the window, some none, some long, some odd. */
function traffic({ windowMs, limit }: HarnessOptions): fc.Arbitrary<Step[]> {
  const quarters = windowMs * 4
  const gap = fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: Math.ceil(quarters / limit) }),
    fc.integer({ min: 0, max: quarters }),
    fc.constantFrom(1, quarters - 1, quarters, quarters + 1, 2 * quarters),
  )
  const cost = fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: limit + 1 }) },
  )
  return fc.array(fc.record({ gapQuarters: gap, cost }), { minLength: 1, maxLength: 40 })
}

const scene = (algorithm: string, strict: boolean) =>
  options(algorithm, strict).chain((rule) =>
    fc.record({ rule: fc.constant(rule), steps: traffic(rule) }),
  )

/** Runs the traffic and hands each step, with its time, to the visitor before it is taken. */
function play(steps: Step[], visit: (atMs: number, cost: number) => void): number {
  let atMs = startMs
  for (const { gapQuarters, cost } of steps) {
    atMs += gapQuarters / 4
    visit(atMs, cost)
  }
  return atMs
}

interface Passed {
  atMs: number
  cost: number
}

function passedOf(rule: HarnessOptions, steps: Step[]): Passed[] {
  const key = new OneKey(rule)
  const passed: Passed[] = []
  play(steps, (atMs, cost) => {
    if (key.attempt(atMs, cost).allowed) passed.push({ atMs, cost })
  })
  return passed
}

const sum = (passed: Passed[]) => passed.reduce((total, { cost }) => total + cost, 0)

describe('never more than the algorithm promises', () => {
  it.each(['sliding-window', 'fixed-window'])('%s: the limit in an aligned window', (algorithm) => {
    fc.assert(
      fc.property(scene(algorithm, false), ({ rule, steps }) => {
        const perWindow = new Map<number, number>()
        for (const { atMs, cost } of passedOf(rule, steps)) {
          const window = Math.floor(atMs / rule.windowMs)
          perWindow.set(window, (perWindow.get(window) ?? 0) + cost)
        }
        expect(Math.max(0, ...perWindow.values())).toBeLessThanOrEqual(rule.limit)
      }),
      runs,
    )
  })

  it('sliding-window: under twice the limit in any window of its length', () => {
    fc.assert(
      fc.property(scene('sliding-window', false), ({ rule, steps }) => {
        const passed = passedOf(rule, steps)
        for (const { atMs } of passed) {
          const within = passed.filter((one) => one.atMs > atMs - rule.windowMs && one.atMs <= atMs)
          expect(sum(within)).toBeLessThanOrEqual(2 * rule.limit - 1)
        }
      }),
      runs,
    )
  })

  it('sliding-window: that bound is reached by a burst before the turn and a steady stream after', () => {
    const key = new OneKey({ algorithm: 'sliding-window', limit: 10, windowMs: 1000 })
    const burstMs = startMs + 999.75
    let passed = 0
    for (let count = 0; count < 10; count++) if (key.attempt(burstMs).allowed) passed++
    for (let restMs = 0; restMs < 999.75; restMs += 0.25) {
      if (key.attempt(startMs + 1000 + restMs).allowed) passed++
    }
    expect(passed).toBe(19)
  })

  it('rolling-window: the limit in any window, exactly, and minInterval kept', () => {
    fc.assert(
      fc.property(scene('rolling-window', false), ({ rule, steps }) => {
        const passed = passedOf(rule, steps)
        for (const [index, { atMs }] of passed.entries()) {
          const within = passed.filter((one) => one.atMs > atMs - rule.windowMs && one.atMs <= atMs)
          expect(sum(within)).toBeLessThanOrEqual(rule.limit)
          const gapMs = atMs - (passed[index - 1]?.atMs ?? -Infinity)
          expect(gapMs).toBeGreaterThanOrEqual(rule.minIntervalMs ?? 0)
        }
      }),
      runs,
    )
  })

  it('rolling-window: no key holds more entries than the limit, strict or not', () => {
    const both = fc.boolean().chain((strict) => scene('rolling-window', strict))
    fc.assert(
      fc.property(both, ({ rule, steps }) => {
        const key = new OneKey(rule)
        play(steps, (atMs, cost) => {
          const { usage } = key.attempt(atMs, cost)
          expect(usage).toBeLessThanOrEqual(rule.limit)
          expect(key.entries().length).toBeLessThanOrEqual(rule.limit)
          expect(key.state.entries?.count).toBe(key.entries().length)
        })
        key.release()
        expect(key.state.entries?.count).toBe(0)
      }),
      runs,
    )
  })

  it('token-bucket: burst, and the limit for each window of any span', () => {
    fc.assert(
      fc.property(scene('token-bucket', false), ({ rule, steps }) => {
        const passed = passedOf(rule, steps)
        const { burst = 0, limit, windowMs } = rule
        for (const [from, first] of passed.entries()) {
          let taken = 0
          for (const { atMs, cost } of passed.slice(from)) {
            taken += cost
            expect(taken * windowMs).toBeLessThanOrEqual(
              burst * windowMs + limit * (atMs - first.atMs),
            )
          }
        }
      }),
      runs,
    )
  })

  it('token-bucket: a strict rule takes at most one bucket of debt', () => {
    fc.assert(
      fc.property(scene('token-bucket', true), ({ rule, steps }) => {
        const key = new OneKey(rule)
        play(steps, (atMs, cost) => {
          expect(key.attempt(atMs, cost).usage).toBeLessThanOrEqual(2 * (rule.burst ?? 0))
        })
      }),
      runs,
    )
  })

  it.each(algorithmNames)('%s: usage is never above the capacity', (algorithm) => {
    fc.assert(
      fc.property(scene(algorithm, false), ({ rule, steps }) => {
        const key = new OneKey(rule)
        play(steps, (atMs, cost) => {
          expect(key.attempt(atMs, cost).usage).toBeLessThanOrEqual(rule.burst ?? rule.limit)
        })
      }),
      runs,
    )
  })
})

describe.each(algorithmNames)('%s', (algorithm) => {
  const anyScene = fc.boolean().chain((strict) => scene(algorithm, strict))

  it('allows exactly at the announced retry time, and not a millisecond before', () => {
    // The tolerance of an exponential tie lets in sooner where the window is long; see its header.
    const slackMs = (windowMs: number) =>
      algorithm === 'exponential' ? Math.ceil(1 + (4 * windowMs) / 1e9) : 0
    // A reading that is behind counts as no time passed: the wait is longer by it.
    const lag = fc.constantFrom(0, 0, 0.25, 0.5, 1, 2)
    fc.assert(
      fc.property(anyScene, lag, ({ rule, steps }, lagShare) => {
        const key = new OneKey(rule)
        const lagMs = Math.floor(rule.windowMs * lagShare)
        play(steps, (atMs, cost) => {
          const clockMs = atMs - (key.time.nowMs > 0 ? lagMs : 0)
          const { allowed, retryAfterMs } = key.attempt(clockMs, cost)
          const soonerMs = retryAfterMs - 1 - slackMs(rule.windowMs)
          const isNever = cost > (rule.burst ?? rule.limit)
          const isOutside = allowed || isNever || retryAfterMs === Infinity
          const later = isOutside ? null : key.fork().peek(clockMs + retryAfterMs, cost)
          const sooner =
            isOutside || soonerMs < 1 ? null : key.fork().peek(clockMs + soonerMs, cost)
          expect({
            isZero: retryAfterMs === 0,
            isWhole: Number.isInteger(retryAfterMs),
            isNever: retryAfterMs === Infinity,
            isAllowedThen: later?.allowed ?? true,
            isAllowedSooner: sooner?.allowed ?? false,
          }).toEqual({
            isZero: allowed,
            isWhole: !isNever,
            isNever,
            isAllowedThen: true,
            isAllowedSooner: false,
          })
        })
      }),
      costlyRuns,
    )
  })

  it('is empty at the announced reset time, and not a millisecond before', () => {
    const isEmpty = (usage: number) => (algorithm === 'exponential' ? usage < 1 : usage === 0)
    fc.assert(
      fc.property(anyScene, ({ rule, steps }) => {
        const key = new OneKey(rule)
        play(steps, (atMs, cost) => {
          const { resetMs } = key.attempt(atMs, cost)
          expect(Number.isInteger(resetMs)).toBe(true)
          expect(isEmpty(key.fork().peek(atMs + resetMs).usage)).toBe(true)
          if (resetMs < 1) return
          expect(isEmpty(key.fork().peek(atMs + resetMs - 1).usage)).toBe(false)
        })
      }),
      costlyRuns,
    )
  })

  it('changes nothing for a peek, and never writes beside its row', () => {
    fc.assert(
      fc.property(anyScene, ({ rule, steps }) => {
        const key = new OneKey(rule)
        play(steps, (atMs, cost) => {
          const before = key.snapshot()
          const asked = key.peek(atMs, cost)
          expect(key.snapshot()).toEqual(before)
          expect(key.attempt(atMs, cost).allowed).toBe(asked.allowed)
          expect(key.isInBounds).toBe(true)
        })
      }),
      runs,
    )
  })

  it('restores the usage by a refund where nothing came between', () => {
    fc.assert(
      fc.property(scene(algorithm, false), ({ rule, steps }) => {
        const key = new OneKey(rule)
        play(steps, (atMs, cost) => {
          const before = key.peek(atMs, cost)
          const { allowed, taken } = key.attempt(atMs, cost)
          const other = key.fork()
          if (allowed) other.refund({ ...before, taken })
          const after = other.peek(atMs, cost)
          const error = Math.abs(after.usage - before.usage)
          expect({
            isTaken: taken > 0,
            // The average keeps the time of the attempt: right after it the next one weighs more.
            isAllowedAgain: algorithm === 'exponential' ? before.allowed : after.allowed,
            isRestored: error <= (algorithm === 'exponential' ? 1e-9 * rule.limit : 0),
          }).toEqual({ isTaken: allowed, isAllowedAgain: before.allowed, isRestored: true })
        })
      }),
      costlyRuns,
    )
  })

  it('never gives more by a refund than was taken, and never below 0', () => {
    fc.assert(
      fc.property(anyScene, fc.nat(), ({ rule, steps }, pick) => {
        const key = new OneKey(rule)
        const measures: Measure[] = []
        const endMs = play(steps, (atMs, cost) => measures.push(key.attempt(atMs, cost)))
        const measure = measures[pick % measures.length]
        if (measure === undefined) return
        const before = key.peek(endMs).usage
        key.refund(measure)
        const after = key.peek(endMs).usage
        expect(after).toBeGreaterThanOrEqual(0)
        expect(after).toBeLessThanOrEqual(before)
        expect(before - after).toBeLessThanOrEqual(measure.taken * (1 + 1e-9) + 1e-12)
        const again = key.attempt(endMs)
        expect(again.remaining).toBeGreaterThanOrEqual(0)
      }),
      runs,
    )
  })

  it('never takes usage below 0 by an adjustment, and takes effect at once', () => {
    fc.assert(
      fc.property(anyScene, fc.integer({ min: -20, max: 20 }), ({ rule, steps }, delta) => {
        const key = new OneKey(rule)
        const endMs = play(steps, (atMs, cost) => key.attempt(atMs, cost))
        const before = key.peek(endMs)
        key.adjust(endMs, delta)
        const after = key.peek(endMs)
        expect(after.usage).toBeGreaterThanOrEqual(0)
        expect(key.isInBounds).toBe(true)
        const slack = 1e-9 * rule.limit
        const change = after.usage - before.usage
        expect(change).toBeGreaterThanOrEqual(Math.min(delta, 0) - slack)
        expect(change).toBeLessThanOrEqual(Math.max(delta, 0) + slack)
        expect(key.entries().length).toBeLessThanOrEqual(rule.limit)
        expect(key.state.entries?.count ?? 0).toBe(key.entries().length)
      }),
      runs,
    )
  })

  it('is expired only when it answers as a key never seen', () => {
    fc.assert(
      fc.property(
        anyScene,
        fc.double({ min: 0, max: 25, noNaN: true }),
        ({ rule, steps }, windows) => {
          const key = new OneKey(rule)
          const endMs = play(steps, (atMs, cost) => key.attempt(atMs, cost))
          const laterMs = endMs + Math.floor(windows * rule.windowMs)
          if (!key.isExpired(laterMs)) return
          const blank = new OneKey(rule)
          for (const cost of [1, 2, Math.ceil(rule.limit / 2), rule.limit, rule.limit + 1]) {
            const { allowed, usage, usageWith, retryAfterMs } = key.peek(laterMs, cost)
            const asBlank = blank.peek(laterMs, cost)
            expect({ allowed, retryAfterMs }).toEqual({
              allowed: asBlank.allowed,
              retryAfterMs: asBlank.retryAfterMs,
            })
            expect(Math.abs(usageWith - asBlank.usageWith)).toBeLessThan(2 ** -20)
            expect(usage).toBeLessThan(2 ** -20)
          }
        },
      ),
      runs,
    )
  })

  it('expires in bounded time after the last attempt', () => {
    fc.assert(
      fc.property(anyScene, ({ rule, steps }) => {
        const key = new OneKey(rule)
        let usage = 0
        const endMs = play(steps, (atMs, cost) => {
          usage = key.attempt(atMs, cost).usage
        })
        expect(key.isExpired(endMs + expiryMs(rule, usage))).toBe(true)
      }),
      runs,
    )
  })
})

function isSound(measure: Measure, waitMsMax: number): boolean {
  const { remaining, retryAfterMs, usage } = measure
  const isWhole = Number.isInteger(remaining) && Number.isInteger(retryAfterMs)
  const isNumber = !Object.values(measure).some((value) => Number.isNaN(value))
  return isWhole && isNumber && usage >= 0 && retryAfterMs <= waitMsMax
}

function expiryMs(rule: HarnessOptions, usage: number): number {
  const { algorithm, windowMs, limit, minIntervalMs = 0 } = rule
  if (algorithm === 'token-bucket') return Math.ceil((usage * windowMs) / limit)
  if (algorithm === 'exponential') {
    return Math.ceil(windowMs * (Math.log(Math.max(usage, 1)) + 20 * Math.LN2)) + 1
  }
  return algorithm === 'rolling-window' ? Math.max(windowMs, minIntervalMs) : 2 * windowMs
}

describe.each(algorithmNames)('%s, with a clock set to anything', (algorithm) => {
  const step = (windowMs: number) =>
    fc.oneof(
      fc.integer({ min: -8 * windowMs, max: 8 * windowMs }).map((quarters) => quarters / 4),
      fc.constantFrom(-2 * windowMs - 1, -2 * windowMs, -windowMs, windowMs, 60 * windowMs),
      fc.constantFrom(-1e13, -2e12, -1e9, 1e9, 1e12),
    )
  const stops = options(algorithm, false).chain((rule) =>
    fc.record({
      rule: fc.constant({
        ...rule,
        minIntervalMs: Math.min(rule.minIntervalMs ?? 0, rule.windowMs),
      }),
      jumps: fc.array(step(rule.windowMs), { minLength: 1, maxLength: 12 }),
    }),
  )

  it('frees at most one quota a step, answers in whole numbers, locks nobody out', () => {
    fc.assert(
      fc.property(stops, ({ rule, jumps }) => {
        const key = new OneKey(rule)
        const capacity = rule.burst ?? rule.limit
        const unsound: Measure[] = []
        let clockMs = startMs
        for (const jumpMs of [0, ...jumps]) {
          clockMs += jumpMs
          let passed = 0
          for (let count = 0; count < Math.min(capacity, 30) + 2; count++) {
            const measure = key.attempt(clockMs)
            if (measure.allowed) passed++
            if (!isSound(measure, 4 * rule.windowMs)) unsound.push(measure)
          }
          expect(passed).toBeLessThanOrEqual(capacity)
        }
        expect(unsound).toEqual([])
        expect(key.isInBounds).toBe(true)
        expect(key.fork().peek(clockMs + 4 * rule.windowMs).allowed).toBe(true)
      }),
      runs,
    )
  })
})

/*
 * The sliding window in the scenarios that other limiters failed: boundaries, shares of a window, steps of
 * the clock. t is in seconds from a multiple of the window.
 */
import { describe, expect, it } from 'vitest'
import type { RuleOptions } from '../../../src/core/rule.js'
import { benchOf, burst, epochMs, ipRule, passedOf, someone } from '../../support/units/limits.js'

const tenIn = (window: string | number) => benchOf(ipRule({ limit: 10, window }))

describe('sliding-window', () => {
  it('ALG-01: lets half of the limit through when half of a full window still weighs', () => {
    const { limiter, at } = tenIn('60s')
    at(55)
    expect(passedOf(burst(limiter, 10))).toBe(10)
    at(90)
    expect(limiter.peek(someone).verdicts[0]?.usage).toBe(5)
    expect(passedOf(burst(limiter, 10))).toBe(5)
  })

  it('ALG-03: weighs the previous window with its fraction', () => {
    const { limiter, at } = tenIn('10s')
    at(9)
    expect(passedOf(burst(limiter, 10))).toBe(10)
    at(10.5)
    expect(limiter.peek(someone).verdicts[0]?.usage).toBe(9.5)
    expect(limiter.decide(someone).allowed).toBe(false)
    at(11)
    expect(passedOf(burst(limiter, 2))).toBe(1)
  })

  it('ALG-04: lets every second attempt through at a limit of one and one attempt a window', () => {
    const { limiter, at } = benchOf(ipRule({ limit: 1, window: '10s' }))
    const passed = Array.from({ length: 20 }, (_, turn) => {
      at(turn * 10)
      return limiter.decide(someone).allowed
    })
    expect(passed).toEqual(Array.from({ length: 20 }, (_, turn) => turn % 2 === 0))
  })

  const kinds: [string, Partial<RuleOptions>, string | undefined][] = [
    ['global', { key: 'global' }, undefined],
    ['ip', { key: 'ip' }, undefined],
    ['session', { key: 'session' }, undefined],
    ['function', { key: 'global', function: 'parse' }, 'parse'],
  ]
  for (const limit of [5, 1]) {
    it.each(kinds)(
      `ALG-12: a %s rule lets exactly ${limit} of a burst of 8 pass`,
      (_, fields, name) => {
        const { limiter } = benchOf(ipRule({ limit, ...fields }))
        const decisions = burst(limiter, 8, { ip: '1.2.3.4', session: 'a' }, { function: name })
        expect(decisions.map(({ allowed }) => allowed)).toEqual(
          Array.from({ length: 8 }, (__, turn) => turn < limit),
        )
        expect(decisions.slice(0, limit).map(({ remaining }) => remaining)).toEqual(
          Array.from({ length: limit }, (__, turn) => limit - 1 - turn),
        )
      },
    )
  }

  it('ALG-18: turns the windows for a peek before the first attempt after a boundary', () => {
    const { limiter, at } = tenIn('60s')
    at(59)
    burst(limiter, 10)
    at(60)
    expect(limiter.peek(someone).verdicts[0]?.usage).toBe(10)
    expect(passedOf(burst(limiter, 10))).toBe(0)
  })

  it('HDR-04: never promises what would be declined', () => {
    const { limiter, at } = benchOf(ipRule({ limit: 100, window: '100s' }))
    at(99)
    burst(limiter, 50)
    at(110)
    expect(burst(limiter, 10).at(-1)?.remaining).toBe(45)
    expect(passedOf(burst(limiter, 50))).toBe(45)
  })

  it('counts a window further back than the previous one for nothing', () => {
    const { limiter, at } = tenIn('60s')
    at(59)
    burst(limiter, 10)
    at(120)
    expect(limiter.peek(someone).verdicts[0]?.usage).toBe(0)
    at(179.999)
    expect(passedOf(burst(limiter, 11))).toBe(10)
  })

  it('says when nothing is used any more', () => {
    const { limiter, at } = tenIn('60s')
    at(30)
    expect(limiter.decide(someone).resetMs).toBe(90_000)
    expect(limiter.peek({ ip: '9.9.9.9' }).resetMs).toBe(0)
    at(90)
    expect(limiter.peek(someone).resetMs).toBe(30_000)
    at(119.9995)
    expect(limiter.peek(someone).resetMs).toBe(1)
    at(120)
    expect(limiter.peek(someone).resetMs).toBe(0)
  })

  it('keeps a strict client out for as long as it keeps asking', () => {
    const lenient = benchOf(ipRule({ limit: 2, window: '10s' }))
    const strict = benchOf(ipRule({ limit: 2, window: '10s', strict: true }))
    const passes = ({ limiter, at }: typeof strict) =>
      Array.from({ length: 60 }, (_, second) => {
        at(second)
        return limiter.decide(someone).allowed
      }).filter(Boolean).length
    expect(passes(strict)).toBe(2)
    expect(passes(lenient)).toBeGreaterThan(6)
  })

  it('strict: usage goes beyond the limit, remaining stays at 0, and the wait grows', () => {
    const { limiter } = benchOf(ipRule({ limit: 2, window: '10s', strict: true }))
    const decisions = burst(limiter, 8)
    expect(decisions.at(-1)).toMatchObject({ allowed: false, remaining: 0 })
    expect(decisions.at(-1)?.verdicts[0]?.usage).toBe(8)
    // 8 · (20 − d) / 10 + 1 ≤ 2 from d = 18.75 s.
    expect(decisions.at(-1)?.retryAfterMs).toBe(18_750)
  })
})

describe('a clock that steps', () => {
  it('CLK-01: back by 11 s declines nobody and keeps what was used', () => {
    const { limiter, at } = tenIn('60s')
    at(30)
    expect(passedOf(burst(limiter, 3))).toBe(3)
    at(19)
    const decision = limiter.decide(someone)
    expect(decision.allowed).toBe(true)
    expect(decision.remaining).toBe(6)
    expect(decision.verdicts[0]?.usage).toBe(4)
  })

  it('CLK-03: to and fro frees no more than one window', () => {
    const { limiter, at } = tenIn('60s')
    let passed = 0
    for (let turn = 0; turn < 10; turn++) {
      at(turn % 2 === 0 ? 600 : 660.001)
      passed += passedOf(burst(limiter, 10))
    }
    expect(passed).toBeLessThanOrEqual(20)
    expect(passed).toBeGreaterThanOrEqual(10)
  })

  it.each([10, 59, 60, 61, 119, 120])('back by %i s counts as no time passed', (seconds) => {
    const { limiter, at } = tenIn('60s')
    at(650)
    burst(limiter, 10)
    at(650 - seconds)
    const decision = limiter.decide(someone)
    expect(decision.allowed).toBe(false)
    // Until the clock is where it was, and then as if it had never gone back.
    at(650)
    expect(decision.retryAfterMs).toBe(limiter.peek(someone).retryAfterMs + seconds * 1000)
  })

  it('back by more than two windows starts the key afresh', () => {
    const { limiter, at } = tenIn('60s')
    at(650)
    burst(limiter, 10)
    at(650 - 120.001)
    expect(passedOf(burst(limiter, 11))).toBe(10)
  })

  it('to before the epoch throws nothing and yields numbers', () => {
    const { limiter, clock } = tenIn('60s')
    for (const timeMs of [epochMs, 0, -1, -90_000, -epochMs, 90_000, -1e15, 1e15, 0.25]) {
      clock.set(timeMs)
      for (const decision of burst(limiter, 12)) {
        expect(decision.remaining).toBeGreaterThanOrEqual(0)
        expect(Number.isFinite(decision.retryAfterMs + decision.resetMs)).toBe(true)
      }
    }
  })
})

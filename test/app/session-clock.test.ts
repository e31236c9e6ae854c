/*
 * The time by which sessions end, while the wall clock is set.
 */
import { describe, expect, it } from 'vitest'
import { sessionClock } from '../../src/app/session-clock.js'
import { epochMs } from '../support/units/limits.js'

const hourMs = 3_600_000

function bench() {
  const state = { monotonicMs: epochMs, wallMs: epochMs }
  const nowMs = sessionClock({
    monotonicMs: () => state.monotonicMs,
    wallMs: () => state.wallMs,
  })
  return {
    nowMs: () => nowMs() - epochMs,
    pass: (spanMs: number, wallSpanMs = spanMs) => {
      state.monotonicMs += spanMs
      state.wallMs += wallSpanMs
    },
    step: (spanMs: number) => void (state.wallMs += spanMs),
  }
}

describe('the time by which sessions end', () => {
  it("is the wall clock's, which is slewed", () => {
    const { nowMs, pass } = bench()
    for (let second = 0; second < 3_600; second++) {
      pass(1_000, 1_001)
      nowMs()
    }
    expect(nowMs()).toBe(3_600 * 1_001)
  })

  it('passes over a wrong hour that the wall clock tells for a while: nobody is logged out', () => {
    const { nowMs, pass, step } = bench()
    step(3 * hourMs)
    pass(300_000)
    expect(nowMs()).toBe(300_000)
    step(-3 * hourMs)
    pass(1_000)
    expect(nowMs()).toBe(301_000)
  })

  it('believes a step that lasts', () => {
    const { nowMs, pass, step } = bench()
    step(3 * hourMs)
    nowMs()
    pass(599_999)
    expect(nowMs()).toBe(599_999)
    pass(1)
    expect(nowMs()).toBe(600_000 + 3 * hourMs)
    pass(1_000)
    expect(nowMs()).toBe(601_000 + 3 * hourMs)
  })

  it('follows a step back at once, so that a session which begins then has not ended', () => {
    const { nowMs, pass, step } = bench()
    step(-3 * hourMs)
    for (const spanMs of [0, 1_000, 600_000]) {
      const beforeMs = nowMs()
      pass(spanMs)
      expect(nowMs()).toBe(beforeMs + spanMs)
    }
  })

  it('gives a second step its own time to last', () => {
    const { nowMs, pass, step } = bench()
    step(hourMs)
    nowMs()
    step(-hourMs)
    nowMs()
    pass(590_000)
    step(hourMs)
    nowMs()
    pass(20_000)
    expect(nowMs()).toBe(610_000)
  })
})

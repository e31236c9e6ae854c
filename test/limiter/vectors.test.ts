/*
 * The traces of an independent program, exact to the last digit, through the public limiter.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../src/limiter/index.js'
import { manualClock } from '../../src/testing/index.js'

interface Step {
  at: number
  cost: number
  allowed: boolean
  remaining: number
  retryAfterMs: number | null
}

interface Trace {
  algorithm: string
  limit: number
  window: number
  strict: boolean
  steps: Step[]
}

const file = new URL('../vectors/sliding-window.json', import.meta.url)
const traces = JSON.parse(readFileSync(file, 'utf8')) as Trace[]

describe('sliding-window traces', () => {
  it('are all there', () => {
    expect(traces.length).toBe(18)
    expect(traces.filter((trace) => trace.strict).length).toBe(8)
  })

  for (const { algorithm, limit, window, strict, steps } of traces) {
    it(`limit ${limit} in ${window} ms, strict ${strict}: ${steps.length} steps`, () => {
      const clock = manualClock(steps[0]?.at)
      const rules = [{ name: 'ip', key: 'ip' as const, limit, window, strict, algorithm }]
      const limiter = createLimiter({ rules, clock })
      const facts = { ip: '203.0.113.7' }
      for (const [index, step] of steps.entries()) {
        clock.set(step.at)
        const decision = limiter.decide(facts, { cost: step.cost })
        const { allowed, remaining, retryAfterMs } = decision
        expect({ index, allowed, remaining, retryAfterMs }).toEqual({
          index,
          allowed: step.allowed,
          remaining: step.remaining,
          retryAfterMs: step.retryAfterMs ?? Infinity,
        })
      }
    })
  }
})

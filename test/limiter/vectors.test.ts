/*
 * The traces of an independent program, exact to the last digit, through the public limiter. Exponential:
 * usage to one part in 10^9, the wait to within 1 ms and allowed then.
 */
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../src/limiter/index.js'
import { manualClock } from '../../src/testing/index.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import { ipRule, someone } from '../support/units/limits.js'
import { traceCounts, tracesOf, type Trace } from '../support/traces.js'

const limiterOf = ({ algorithm, limit, window, strict, burst, minInterval = 0, steps }: Trace) => {
  const clock = manualClock(steps[0]?.at)
  const special = { burst, minInterval: minInterval === 0 ? undefined : minInterval }
  const rules = [ipRule({ limit, window, strict, algorithm, ...special })]
  return { clock, limiter: createLimiter({ rules, clock }) }
}

describe.each(algorithmNames)('%s traces', (algorithm) => {
  const traces = tracesOf(algorithm)

  it('are all there', () => {
    expect(traces.length).toBe(traceCounts[algorithm])
    expect(traces.filter((trace) => trace.strict).length).toBe(8)
    expect(traces.every((trace) => trace.algorithm === algorithm)).toBe(true)
  })

  it.each(traces)('limit $limit in $window ms, strict $strict', (trace) => {
    const { clock, limiter } = limiterOf(trace)
    for (const [index, step] of trace.steps.entries()) {
      const { cost } = step
      clock.set(step.at)
      const { allowed, remaining, retryAfterMs, verdicts } = limiter.decide(someone, { cost })
      const usage = verdicts[0]?.usage ?? NaN
      const usageError = Math.abs(usage - (step.usage ?? usage)) / Math.max(usage, 2 ** -52)
      const wait = step.retryAfterMs ?? Infinity
      const isNear = algorithm === 'exponential' && Math.abs(retryAfterMs - wait) <= 1
      let isAllowedThen = true
      if (retryAfterMs > 0 && retryAfterMs < Infinity) {
        clock.set(step.at + retryAfterMs)
        isAllowedThen = limiter.peek(someone, { cost }).allowed
      }
      expect({
        index,
        allowed,
        remaining,
        retryAfterMs: isNear ? wait : retryAfterMs,
        isAllowedThen,
        isUsageRight: usageError <= 1e-9,
      }).toEqual({
        index,
        allowed: step.allowed,
        remaining: step.remaining ?? remaining,
        retryAfterMs: wait,
        isAllowedThen: true,
        isUsageRight: true,
      })
    }
  })
})

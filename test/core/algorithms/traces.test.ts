/*
 * The traces of an independent program, exact to the last digit, straight through each algorithm.
 * Exponential: usage to one part in 10^9, the wait to within 1 ms and allowed then.
 */
import { describe, expect, it } from 'vitest'
import { algorithmNames, OneKey } from '../../support/algorithm-harness.js'
import { traceCounts, tracesOf, type Trace } from '../../support/traces.js'

function keyOf(trace: Trace): OneKey {
  return new OneKey({
    algorithm: trace.algorithm,
    limit: trace.limit,
    windowMs: trace.window,
    strict: trace.strict,
    burst: trace.burst ?? trace.limit,
    minIntervalMs: trace.minInterval ?? 0,
  })
}

describe.each(algorithmNames)('%s traces', (algorithm) => {
  const traces = tracesOf(algorithm)

  it('are all there', () => {
    expect(traces.length).toBe(traceCounts[algorithm])
    expect(traces.filter((trace) => trace.strict).length).toBe(8)
  })

  it.each(traces)('limit $limit in $window ms, strict $strict', (trace) => {
    const key = keyOf(trace)
    for (const [index, step] of trace.steps.entries()) {
      const { allowed, remaining, retryAfterMs, usage } = key.attempt(step.at, step.cost)
      const wait = step.retryAfterMs ?? Infinity
      const isNear = algorithm === 'exponential' && Math.abs(retryAfterMs - wait) <= 1
      const isFinite = retryAfterMs < Infinity
      const later = isFinite ? key.fork().peek(step.at + retryAfterMs, step.cost) : null
      const usageError = Math.abs(usage - (step.usage ?? usage)) / Math.max(usage, 2 ** -52)
      expect({
        index,
        allowed,
        remaining,
        retryAfterMs: isNear ? wait : retryAfterMs,
        isAllowedThen: allowed || (later?.allowed ?? null),
        isUsageRight: usageError <= 1e-9,
      }).toEqual({
        index,
        allowed: step.allowed,
        remaining: step.remaining ?? remaining,
        retryAfterMs: wait,
        isAllowedThen: isFinite ? true : null,
        isUsageRight: true,
      })
    }
    expect(key.isInBounds).toBe(true)
  })
})

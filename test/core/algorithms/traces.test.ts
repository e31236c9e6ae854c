/*
 * The traces of an independent program, exact to the last digit, straight through each algorithm.
 * Exponential: usage to one part in 10^9, the wait to within 1 ms and allowed then.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { algorithmNames, OneKey } from '../../support/algorithm-harness.js'

interface Step {
  at: number
  cost: number
  allowed: boolean
  /** Left open where it hangs on the last bit. */
  remaining?: number
  retryAfterMs: number | null
  usage?: number
}

interface Trace {
  algorithm: string
  limit: number
  window: number
  strict: boolean
  burst?: number
  minInterval?: number
  steps: Step[]
}

const traceCounts: Record<string, number> = {
  'sliding-window': 18,
  'fixed-window': 17,
  'rolling-window': 17,
  exponential: 17,
  'token-bucket': 17,
}

function tracesOf(algorithm: string): Trace[] {
  const file = new URL(`../../vectors/${algorithm}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')) as Trace[]
}

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

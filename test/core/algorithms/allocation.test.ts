/*
 * No step of an algorithm allocates, on the allowed path or the declined one. Counted in collections of
 * garbage: two million decisions that each left one double on the heap would cause several. The control
 * leaves one small object each, and must be seen to.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { blankMeasure, type KeyState, type Measure } from '../../../src/core/algorithm.js'
import { RuleTime } from '../../../src/core/rule-time.js'
import type { CompiledRule } from '../../../src/core/rule.js'
import { algorithmNames, ruleOf, stateOf } from '../../support/algorithm-harness.js'
import { collectionsIn } from '../../support/collections.js'

const decisionCount = 2_000_000

interface Bench {
  algorithm: string
  strict: boolean
  path: 'declined' | 'allowed'
  rule: CompiledRule
  state: KeyState
  at: number
  time: RuleTime
  out: Measure
  gapMs: number
  clockMs: number
}

/** At a limit of 60 a second and 1.25 ms between attempts most are declined, at 40.75 ms none. */
function bench(algorithm: string, strict: boolean, path: Bench['path']): Bench {
  const minIntervalMs = algorithm === 'rolling-window' ? 3 : 0
  const rule = ruleOf({ algorithm, limit: 60, windowMs: 1000, strict, minIntervalMs })
  const time = new RuleTime(rule.windowMs)
  const gapMs = path === 'declined' ? 1.25 : 40.75
  const clockMs = 1_760_000_000_000.25
  const out = blankMeasure()
  return { algorithm, strict, path, rule, ...stateOf(rule), time, out, gapMs, clockMs }
}

/** Takes that many decisions, and says how many were declined. */
function decide(one: Bench, count: number): number {
  const { rule, state, at, time, out, gapMs, strict } = one
  let { clockMs } = one
  let declinedCount = 0
  for (let index = 0; index < count; index++) {
    clockMs += gapMs
    time.read(clockMs)
    rule.algorithm.judge(state, at, rule, time, 1, out)
    const { allowed } = out
    if (!allowed) declinedCount++
    rule.algorithm.settle(state, at, rule, time, 1, allowed || strict, !allowed, out)
  }
  one.clockMs = clockMs
  return declinedCount
}

describe('an algorithm allocates nothing', () => {
  const benches = algorithmNames.flatMap((algorithm) =>
    [false, true].flatMap((strict) => [
      bench(algorithm, strict, 'declined'),
      bench(algorithm, strict, 'allowed'),
    ]),
  )

  beforeAll(() => {
    // Until the compiler has seen all of them it puts doubles on the heap, and then no more.
    for (let round = 0; round < 6; round++) for (const one of benches) decide(one, 50_000)
  })

  it('control: one small object a decision is seen', async () => {
    const kept: object[] = []
    const count = await collectionsIn(() => {
      for (let index = 0; index < decisionCount; index++) kept[index & 1023] = { index }
    })
    expect(count).toBeGreaterThanOrEqual(3)
  })

  // Again where the runner itself left garbage in the span: what an algorithm leaves, it leaves each time.
  it.each(benches)('$algorithm, strict $strict, $path', { retry: 2 }, async (one) => {
    decide(one, 300_000)
    await wait(5)
    let declinedCount = 0
    const count = await collectionsIn(() => {
      declinedCount = decide(one, decisionCount)
    })
    const isRightPath =
      one.path === 'declined' ? declinedCount > decisionCount * 0.8 : declinedCount === 0
    expect(isRightPath).toBe(true)
    // One may fall in the span for what the test runner itself leaves.
    expect(count).toBeLessThanOrEqual(1)
  })
})

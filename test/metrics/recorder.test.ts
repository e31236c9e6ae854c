/*
 * The slots that the request path counts into, fed through a limiter as a gate does.
 */
import { describe, expect, it } from 'vitest'
import { compileRules, type RuleOptions } from '../../src/core/rule.js'
import { RuleLimiter } from '../../src/limiter/limiter.js'
import { Recorder } from '../../src/metrics/recorder.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { manualClock } from '../../src/testing/index.js'
import { epochMs, ipRule, someone, observerOf } from '../support/units/limits.js'

function bench(...options: RuleOptions[]) {
  const clock = manualClock(epochMs)
  const rules = compileRules(options)
  const recorder = new Recorder(rules.length)
  const limiter = new RuleLimiter(
    options,
    rules,
    new MemoryStore(rules, clock),
    observerOf(recorder.judged.bind(recorder)),
  )
  const decide = (cost = 1) => void limiter.decide(someone, { cost })
  const utilization = (index = 0) =>
    recorder.utilization(limiter.rules[index] as (typeof rules)[0], clock.monotonicMs())
  const counts = (rule: number, mode = 0) =>
    [0, 1, 2].map((of) => recorder.decisions(rule, mode, of))
  return { clock, recorder, limiter, decide, utilization, counts }
}

describe('the recorder', () => {
  it('counts each attempt once for each rule, by its own verdict', () => {
    const { decide, counts } = bench(
      ipRule({ limit: 5 }),
      ipRule({ name: 'wide', limit: 100 }),
      ipRule({ name: 'shadow', limit: 2, mode: 'shadow' }),
    )
    for (let turn = 0; turn < 8; turn++) decide()
    expect(counts(0)).toEqual([4, 1, 3])
    expect(counts(1)).toEqual([8, 0, 0])
    expect(counts(2, 1)).toEqual([1, 1, 6])
    expect(counts(2, 0)).toEqual([0, 0, 0])
  })

  it('counts attempts and not their cost, and neither peeks nor a cost of 0', () => {
    const { decide, counts, limiter } = bench(ipRule({ limit: 100 }))
    decide(7)
    decide(0)
    void limiter.peek(someone)
    expect(counts(0)).toEqual([1, 0, 0])
  })

  it('does not count for a rule that is disabled', () => {
    const { decide, counts } = bench(ipRule({ mode: 'disabled' }))
    decide()
    expect([...counts(0, 0), ...counts(0, 1)]).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('shows the highest usage of any key in the current and the last window', () => {
    const { decide, utilization, clock } = bench(ipRule({ limit: 10 }))
    expect(utilization()).toBe(0)
    decide(8)
    expect(utilization()).toBe(0.8)
    clock.advance(60_000)
    expect(utilization()).toBe(0.8)
    clock.advance(60_000)
    expect(utilization()).toBe(0)
  })

  it('shows 1 at a limit of 0 once something was attempted', () => {
    const { decide, utilization } = bench(ipRule({ limit: 0 }))
    expect(utilization()).toBe(0)
    decide()
    expect(utilization()).toBe(1)
  })
})

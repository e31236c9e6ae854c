/*
 * Random sets of rules for property tests: every algorithm, key, mode and optional field, with limits and
 * windows from the least to `most`. Names are unique and up to 64 characters long.
 */
import type { AlgorithmName } from '../../../src/core/algorithm.js'
import * as fc from 'fast-check'
import type { RuleOptions } from '../../../src/core/rule.js'

export interface Most {
  readonly limit: number
  readonly windowMs: number
  readonly rules: number
}

/** Sets of 1 to `most.rules` rules; those with a function have the name `item`. */
export function ruleSets(most: Most): fc.Arbitrary<RuleOptions[]> {
  const rules = fc.array(ruleFields(most), { minLength: 1, maxLength: most.rules })
  return rules.map((list) =>
    list.map((fields, index) => ({ ...fields, name: `${fields.name}-${index}`.slice(-64) })),
  )
}

function ruleFields({ limit, windowMs }: Most): fc.Arbitrary<RuleOptions> {
  const limits = (most: number) => fc.oneof(fc.integer({ min: 0, max: 3 }), fc.nat(most))
  const spans = fc.oneof(
    fc.integer({ min: 1, max: Math.floor(windowMs / 1000) }).map((seconds) => seconds * 1000),
    fc.integer({ min: 1, max: windowMs }),
  )
  const common = {
    name: fc.constantFrom('ip', 'a', `a${'-'.repeat(30)}z`, 'r'.repeat(61)),
    key: fc.constantFrom('global' as const, 'ip' as const, 'session' as const),
    window: spans,
    strict: fc.boolean(),
    mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'shadow' as const),
    expose: fc.option(fc.boolean(), { nil: undefined }),
    absent: fc.constantFrom('address' as const, 'skip' as const),
    function: fc.constantFrom(undefined, undefined, 'item'),
    candidates: fc.constantFrom(undefined, [{ limit: 2 }, { limit: 1, window: 700 }]),
  }
  const algorithm = (name: AlgorithmName) => fc.constant(name)
  return fc.oneof(
    fc.record({ ...common, limit: limits(limit), algorithm: algorithm('sliding-window') }),
    fc.record({ ...common, limit: limits(limit), algorithm: algorithm('fixed-window') }),
    fc.record({
      ...common,
      limit: limits(Math.min(limit, 10_000)),
      algorithm: algorithm('rolling-window'),
      minInterval: fc.option(spans, { nil: undefined }),
    }),
    fc.record({
      ...common,
      limit: limits(limit),
      algorithm: algorithm('exponential'),
      maxAge: fc.option(spans, { nil: undefined }),
    }),
    fc.record({
      ...common,
      limit: limits(limit),
      algorithm: algorithm('token-bucket'),
      burst: fc.option(fc.integer({ min: 1, max: limit }), { nil: undefined }),
    }),
  )
}

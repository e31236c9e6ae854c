/*
 * What a rule may be in TypeScript: right shapes compile, wrong ones do not. The compiler is the test; what
 * runs here only makes sure that the right ones are rules.
 */
import { expect, it } from 'vitest'
import { compileRule, type RuleOptions } from '../../src/core/rule.js'

const base = { name: 'a', limit: 5, window: '1m' } satisfies RuleOptions

const right: RuleOptions[] = [
  { ...base, key: 'header:x-api-key' },
  { ...base, key: ({ ip }) => ip },
  { ...base, key: ({ session }) => session?.length ?? null },
  { ...base, key: ['ip', 'session', 'header:a', ({ path }) => path] },
  { ...base, key: ['ip', 'session'] as const },
  { ...base, match: { methods: ['POST'] } },
  { ...base, match: { paths: ['/a'] as const } },
  { ...base, limit: ({ headers }) => (headers?.['x-plan'] === 'pro' ? 9 : 1) },
]

const wrong: RuleOptions[] = [
  // @ts-expect-error no such key
  { ...base, key: 'user' },
  // @ts-expect-error global means nothing beside another key
  { ...base, key: ['global', 'ip'] },
  // @ts-expect-error one key is no list
  { ...base, key: ['ip'] },
  // @ts-expect-error too many
  { ...base, key: ['ip', 'session', 'header:a', 'header:b', 'header:c'] },
  // @ts-expect-error a key is no object
  { ...base, key: () => ({}) },
  // @ts-expect-error a decision is made at once
  { ...base, key: async () => 'a' },
  // @ts-expect-error a limit is a number
  { ...base, limit: () => '5' },
  // @ts-expect-error a decision is made at once
  { ...base, limit: async () => 5 },
  // @ts-expect-error a list
  { ...base, match: { methods: 'POST' } },
  // @ts-expect-error no such field
  { ...base, match: { path: ['/a'] } },
  // @ts-expect-error a candidate has a number
  { ...base, candidates: [{ limit: () => 5 }] },
]

it('a rule that compiles as TypeScript is one, and one that does not is refused too', () => {
  for (const rule of right) expect(compileRule(rule, 0).name).toBe('a')
  const refused = wrong.filter((rule) => {
    try {
      compileRule(rule, 0)
      return false
    } catch {
      return true
    }
  })
  // What a function will give is known when it is called.
  expect(refused.length).toBe(wrong.length - 2)
})

/*
 * The schema that is published: it takes what a gate really answers, and nothing that lacks a field, has one
 * more, or has one of another type.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { answers, type AnswerName } from '../../src/admin/schema.js'
import { administered, sending } from '../support/admin.js'
import { statuses } from '../support/server.js'

const published = JSON.parse(
  readFileSync(new URL('../../docs/admin.schema.json', import.meta.url), 'utf8'),
) as z.core.JSONSchema.JSONSchema & { $defs: object }

/** Made from the file, not from what it was written from. */
const takes = (name: AnswerName, value: unknown) =>
  z.fromJSONSchema({ ...published, $ref: `#/$defs/${name}` }).safeParse(value).success

async function realAnswers(): Promise<Record<AnswerName, unknown>> {
  const { ask, admin, read } = await administered({
    rules: [
      { name: 'ip', key: 'ip', limit: 2, window: '1m', candidates: [{ limit: 1 }] },
      { name: 'report', limit: 9, window: '1h', function: 'report' },
    ],
  })
  await statuses(4, () => ask())
  const changedRule = await read('/rules/ip', sending('PATCH', { limit: 3 }))
  return {
    statistics: await read('/stats'),
    history: await read('/stats/history?window=day&rule=ip'),
    keys: await read('/keys?rule=ip'),
    explanation: await read('/explain', sending('POST', { address: '127.0.0.1' })),
    changedRule,
    audit: await read('/audit'),
    problem: JSON.parse((await admin('/nothing')).text),
  }
}

/** The value with something done to each of its objects in turn. */
function* spoilt(value: unknown): Generator {
  if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) {
      for (const bad of spoilt(each)) yield value.with(index, bad)
    }
  } else if (typeof value === 'object' && value !== null) {
    yield { ...value, more: 1 }
    for (const [name, each] of Object.entries(value)) {
      yield { ...value, [name]: typeof each === 'boolean' ? 'true' : true }
      for (const bad of spoilt(each)) yield { ...value, [name]: bad }
    }
  }
}

describe('the published schema', () => {
  it('has a definition for each answer', () => {
    expect(Object.keys(published.$defs)).toEqual(expect.arrayContaining(Object.keys(answers)))
  })

  it('takes every real answer, and none that was tampered with', async () => {
    const real = await realAnswers()
    for (const [name, value] of Object.entries(real) as [AnswerName, unknown][]) {
      expect([name, takes(name, value)]).toEqual([name, true])
      // What an entry of the audit holds beside its fields is open.
      const bad = [...spoilt(name === 'audit' ? { entries: [] } : value)]
      expect(bad.length).toBeGreaterThan(1)
      expect(bad.filter((each) => answers[name].safeParse(each).success)).toEqual([])
      // Reading the file anew for each takes its time.
      const some = bad.filter((_, index) => index % 10 === 0)
      expect(some.filter((each) => takes(name, each))).toEqual([])
    }
  })
})

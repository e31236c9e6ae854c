/*
 * The reported faults of rate limit headers (HDR), over real HTTP in every dialect, with the clock set by
 * hand. Draft 8 has more of its own in middleware.test.ts.
 */
import { describe, expect, it } from 'vitest'
import type { RuleOptions } from '../../../src/core/rule.js'
import { dialectNames, type DialectName } from '../../../src/express/headers/index.js'
import { manualClock } from '../../../src/testing/index.js'
import { guarded, startMs, statuses, type Answer } from '../../support/server.js'
import { rateLimitFields } from '../../support/structured-fields.js'

const rule = (fields: Partial<RuleOptions>): RuleOptions => ({
  name: 'ip',
  key: 'ip',
  limit: 3,
  window: '60s',
  algorithm: 'rolling-window',
  ...fields,
})

/** The field that says when, in each dialect; what `off` must not have. */
const resetFields = {
  'draft-8': 'ratelimit',
  'draft-6': 'ratelimit-reset',
  legacy: 'x-ratelimit-reset',
  off: 'ratelimit',
} as const

/**
 * Remaining units, and milliseconds until more is let through, as a client of the dialect reads them; null
 * where it is not told.
 */
function told(dialect: DialectName, { headers }: Answer, nowMs: number) {
  const read = rateLimitFields(headers)
  const number = (name: string) => (read[name]?.[0]?.value as number | undefined) ?? null
  const reset = number(resetFields[dialect])
  switch (dialect) {
    case 'draft-8': {
      const { r = null, t = null } = read['ratelimit']?.[0]?.parameters ?? {}
      return { remaining: r, waitMs: t === null ? null : t * 1000 }
    }
    case 'draft-6':
      return {
        remaining: number('ratelimit-remaining'),
        waitMs: reset === null ? null : reset * 1000,
      }
    case 'legacy':
      return {
        remaining: number('x-ratelimit-remaining'),
        waitMs: reset === null ? null : reset * 1000 - nowMs,
      }
    case 'off':
      return { remaining: null, waitMs: Object.keys(read).length === 0 ? null : 0 }
  }
}

describe.each(dialectNames)('in %s', (headers) => {
  it.each([
    [1_900, '2'],
    [900, '1'],
    [1, '1'],
  ])('HDR-01: %d ms left are a wait of %s s, and that is enough', async (leftMs, seconds) => {
    const { ask, clock } = await guarded({ rules: [rule({ limit: 1, window: '7s' })], headers })
    await ask()
    clock.advance(7_000 - leftMs)
    const declined = await ask()
    expect([declined.status, declined.headers.get('retry-after')]).toEqual([429, seconds])
    clock.advance(leftMs - 1)
    expect((await ask()).status).toBe(429)
    clock.advance(Number(seconds) * 1000 - leftMs + 1)
    expect((await ask()).status).toBe(200)
  })

  it('HDR-03: a lowered limit waits for all entries that are too many, and the reset agrees', async () => {
    const { ask, clock, gate } = await guarded({ rules: [rule({})], headers })
    for (const hitMs of [0, 10_000, 20_000]) {
      clock.set(startMs + hitMs)
      expect((await ask()).status).toBe(200)
    }
    gate.limiter.configure('ip', { limit: 1 })
    clock.set(startMs + 25_400)
    const answer = await ask()
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '55'])
    // The third entry leaves at 80 s sharp: a moment is rounded up as a moment, a wait as a wait.
    const waitMs = { 'draft-8': 55_000, 'draft-6': 55_000, legacy: 54_600, off: null }[headers]
    const remaining = headers === 'off' ? null : 0
    expect(told(headers, answer, clock.wallMs())).toEqual({ remaining, waitMs })
  })

  it('HDR-04: remaining weighs the window before, is whole and never negative', async () => {
    const weighed = rule({ limit: 100, window: '100s', algorithm: 'sliding-window' })
    const { ask, clock } = await guarded({ rules: [weighed], headers })
    clock.set(startMs + 50_000)
    await statuses(50, () => ask())
    clock.set(startMs + 110_000)
    await statuses(9, () => ask())
    const { remaining: atTenth } = told(headers, await ask(), clock.wallMs())
    expect(atTenth).toBe(headers === 'off' ? null : 45)
    for (let request = 0; request < 50; request++) {
      clock.advance(31)
      const { remaining } = told(headers, await ask(), clock.wallMs())
      expect(remaining === null || remaining >= 0).toBe(true)
    }
  })

  it('HDR-06: a reset is seconds to wait, or the seconds since the epoch of a moment', async () => {
    const clock = manualClock(1_700_000_000_250 - 22_600)
    const { ask } = await guarded({ rules: [rule({})], headers, clock })
    await statuses(2, () => ask())
    clock.set(1_700_000_000_250)
    // Allowed, and so whole again when this very request has left the window, in 60 s.
    const allowed = await ask()
    expect([allowed.status, allowed.headers.get(resetFields[headers])]).toEqual([
      200,
      { 'draft-8': '"ip";r=0;t=60', 'draft-6': '60', legacy: '1700000061', off: null }[headers],
    ])
    // Declined until the oldest has left, in 37.4 s.
    const declined = await ask()
    expect([declined.status, declined.headers.get('retry-after')]).toEqual([429, '38'])
    expect(declined.headers.get(resetFields[headers])).toBe(
      { 'draft-8': '"ip";r=0;t=38', 'draft-6': '38', legacy: '1700000038', off: null }[headers],
    )
  })

  it('HDR-08: 8 ms are one whole second', async () => {
    const { ask, clock } = await guarded({ rules: [rule({ limit: 1, window: '1s' })], headers })
    await ask()
    clock.advance(992)
    const declined = await ask()
    expect([declined.status, declined.headers.get('retry-after')]).toEqual([429, '1'])
    expect(JSON.parse(declined.text).retryAfterMs).toBe(8)
    const waitMs = { 'draft-8': 1_000, 'draft-6': 1_000, legacy: 8, off: null }[headers]
    expect(told(headers, declined, clock.wallMs()).waitMs).toBe(waitMs)
  })

  it('CFG-04: a limit of 0 tells of no time to come back', async () => {
    const { ask, clock } = await guarded({ rules: [rule({ limit: 0 })], headers })
    const declined = await ask()
    expect([declined.status, declined.headers.get('retry-after')]).toEqual([429, null])
    expect(JSON.parse(declined.text).retryAfterMs).toBe(null)
    const remaining = headers === 'off' ? null : 0
    expect(told(headers, declined, clock.wallMs())).toEqual({ remaining, waitMs: null })
  })
})

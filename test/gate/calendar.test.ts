/*
 * A gate in the calendar of a time zone: which of the shown windows an attempt is counted in, and that these
 * hold still where the local clock does not.
 */
import { expect, it, onTestFinished } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import { manualClock } from '../../src/testing/index.js'

async function countedIn(timeZone: string, times: readonly string[]) {
  const rules = [
    { name: 'work', key: 'global', limit: 100, window: '1m', function: 'work' },
  ] as const
  const clock = manualClock(Date.parse(times[0] ?? ''))
  const gate = createGate({ rules, clock, timeZone, weekStartsOn: 'sunday' })
  onTestFinished(() => gate.close())
  const work = gate.guard('work', () => Promise.resolve())
  for (const time of times) {
    clock.set(Date.parse(time))
    await work()
  }
  const stats = await gate.stats()
  expect(stats).toMatchObject({ timeZone, weekStartsOn: 'sunday' })
  const [rule] = stats.rules
  if (rule === undefined) throw new Error('no rule')
  expect(rule.totals.within).toBe(times.length)
  const shown = Object.entries(rule.windows).map(([kind, { current, previous }]) => [
    kind,
    [previous, current].map(({ start, within }) => `${start.slice(0, 16)} ${within}`),
  ])
  return Object.fromEntries(shown) as Record<string, string[]>
}

it('DAT-03: attempts in both hours of one name are counted apart, and together in their day', async () => {
  const hits = ['2025-10-26T00:30Z', '2025-10-26T01:30Z', '2025-10-26T01:30Z']
  expect(await countedIn('Europe/Berlin', hits)).toEqual({
    minute: ['2025-10-26T01:29 0', '2025-10-26T01:30 2'],
    hour: ['2025-10-26T00:00 1', '2025-10-26T01:00 2'],
    day: ['2025-10-24T22:00 0', '2025-10-25T22:00 3'],
    week: ['2025-10-18T22:00 0', '2025-10-25T22:00 3'],
  })
})

it('DAT-01: the first instant after a day of 23 hours is the next one', async () => {
  const hits = ['2025-03-30T21:59:59.999Z', '2025-03-30T22:00:00.000Z']
  expect(await countedIn('Europe/Berlin', hits)).toMatchObject({
    day: ['2025-03-29T23:00 1', '2025-03-30T22:00 1'],
    week: ['2025-03-22T23:00 0', '2025-03-29T23:00 2'],
  })
})

it('DAT-11: an attempt in the evening of Los Angeles is today', async () => {
  const hits = ['2026-08-26T05:19Z']
  expect(await countedIn('America/Los_Angeles', hits)).toMatchObject({
    day: ['2026-08-24T07:00 0', '2026-08-25T07:00 1'],
  })
})

it('hours that a shift makes short are counted like others', async () => {
  const hits = ['2025-10-04T15:29Z', '2025-10-04T15:30Z', '2025-10-04T16:00Z']
  expect(await countedIn('Australia/Lord_Howe', hits)).toMatchObject({
    hour: ['2025-10-04T15:30 1', '2025-10-04T16:00 1'],
    day: ['2025-10-03T13:30 0', '2025-10-04T13:30 3'],
  })
})

/*
 * Tallies: each count is in four windows, nothing is lost nor counted twice whatever the archive does, and
 * all figures of one view are of one instant.
 */
import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { windowKinds, type WindowKind } from '../../src/core/windows.js'
import type { Clock } from '../../src/core/clock.js'
import { createCalendar } from '../../src/tally/calendar.js'
import { MemoryArchive } from '../../src/tally/memory-archive.js'
import { Tally, type TallyView } from '../../src/tally/tally.js'
import {
  allowed,
  declined,
  exempt,
  hold,
  mondayMs,
  slots,
  tallyBench,
} from '../support/units/tallies.js'

const minuteMs = 60_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** Allowed requests in the current and the previous window of each kind. */
function figures(view: TallyView): Record<WindowKind, [number, number]> {
  const entries = windowKinds.map((kind) => {
    const { current, previous } = view.windows[kind]
    return [kind, [current.counts[allowed], previous.counts[allowed]]]
  })
  return Object.fromEntries(entries) as Record<WindowKind, [number, number]>
}

const requestsOf = (counts: Float64Array): number[] => [...counts.subarray(0, 3)]

describe('a tally', () => {
  it('DAT-14: one count adds one to each of the four windows, and to the totals', async () => {
    const { tally, count } = tallyBench()
    count(allowed)
    count(slots.ofVerdict(1, 2))
    const one = { minute: [1, 0], hour: [1, 0], day: [1, 0], week: [1, 0] }
    expect(figures(tally.view())).toEqual(one)
    await tally.flush()
    const view = tally.view()
    expect(figures(view)).toEqual(one)
    expect([...view.totals]).toEqual([...view.windows.week.current.counts])
    expect([...view.totals]).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 1])
  })

  it.each([
    ['minute', minuteMs, { minute: [3, 2], hour: [5, 0], day: [5, 0], week: [5, 0] }],
    ['hour', hourMs, { minute: [3, 2], hour: [3, 2], day: [5, 0], week: [5, 0] }],
    ['day', dayMs, { minute: [3, 2], hour: [3, 2], day: [3, 2], week: [5, 0] }],
    ['week', 7 * dayMs, { minute: [3, 2], hour: [3, 2], day: [3, 2], week: [3, 2] }],
  ])('counts on both sides of the end of a %s', async (_, lengthMs, expected) => {
    for (const flushes of [false, true]) {
      const { tally, clock, count } = tallyBench(mondayMs + lengthMs - 1)
      count(allowed, 2)
      if (flushes) await tally.flush()
      clock.advance(1)
      count(allowed, 3)
      expect(figures(tally.view())).toEqual(expected)
      if (flushes) await tally.flush()
      expect(figures(tally.view())).toEqual(expected)
    }
  })

  it('moves on without a count: the current window becomes the previous, then is gone', async () => {
    const { tally, clock, count } = tallyBench()
    count(allowed)
    await tally.flush()
    clock.advance(minuteMs)
    expect(figures(tally.view()).minute).toEqual([0, 1])
    clock.advance(minuteMs)
    expect(figures(tally.view()).minute).toEqual([0, 0])
    expect(figures(tally.view()).hour).toEqual([1, 0])
    expect(tally.view().totals[allowed]).toBe(1)
  })

  it('DAT-14: a view is of one instant though the clock moves while it is made', () => {
    const midnight = mondayMs + dayMs
    let nowMs = midnight - 0.001
    const clock: Clock = { monotonicMs: () => 0, wallMs: () => nowMs }
    const archive = new MemoryArchive(slots, nowMs)
    const tally = new Tally({ slots, calendar: createCalendar(), archive, clock })
    tally.reach(0)
    tally.add(allowed)
    let reads = 0
    const moving: Clock = {
      monotonicMs: () => 0,
      wallMs: () => (reads++ === 0 ? midnight - 0.001 : midnight + 0.001),
    }
    const seen = new Tally({ slots, calendar: createCalendar(), archive, clock: moving }).view()
    const spans = windowKinds.map((kind) => seen.windows[kind].current)
    for (const { startMs, endMs } of spans) {
      expect(startMs <= seen.atMs && seen.atMs < endMs).toBe(true)
    }
    nowMs = midnight
    const { windows, atMs } = tally.view()
    for (const kind of windowKinds) {
      expect(windows[kind].previous.endMs).toBe(windows[kind].current.startMs)
      expect(windows[kind].current.startMs).toBeLessThanOrEqual(atMs)
    }
  })

  it('counts nothing for ever in a minute that has ended', () => {
    const { tally, clock, count } = tallyBench()
    for (let minute = 0; minute < 5; minute++) {
      count(allowed, minute + 1)
      clock.advance(minuteMs)
    }
    expect(figures(tally.view())).toEqual({
      minute: [0, 5],
      hour: [15, 0],
      day: [15, 0],
      week: [15, 0],
    })
  })
})

describe('a wall clock that goes back', () => {
  it('counts in the windows that the clock shows, and loses nothing', async () => {
    for (const flushes of [false, true]) {
      const { tally, clock, count } = tallyBench(mondayMs + 10 * hourMs)
      count(allowed, 2)
      if (flushes) await tally.flush()
      clock.set(mondayMs + 9 * hourMs + 59 * minuteMs)
      count(allowed, 3)
      expect(figures(tally.view())).toMatchObject({ minute: [3, 0], hour: [3, 0], day: [5, 0] })
      expect(tally.view().totals[allowed]).toBe(5)
      await tally.flush()
      clock.set(mondayMs + 10 * hourMs)
      await tally.flush()
      expect(figures(tally.view())).toMatchObject({ hour: [2, 3], day: [5, 0], week: [5, 0] })
      expect(tally.view().totals[allowed]).toBe(5)
    }
  })

  it('by more than a week still adds up', async () => {
    const { tally, clock, count } = tallyBench(mondayMs)
    count(allowed, 2)
    await tally.flush()
    clock.set(mondayMs - 30 * dayMs)
    count(declined, 3)
    await tally.flush()
    expect(requestsOf(tally.view().totals)).toEqual([2, 3, 0])
  })
})

describe('a flush', () => {
  it('that fails loses and doubles nothing, however often', async () => {
    const { tally, archive, count } = tallyBench()
    archive.failure = new Error('disk full')
    for (let turn = 1; turn <= 5; turn++) {
      count(allowed)
      await tally.flush()
      expect(figures(tally.view()).minute).toEqual([turn, 0])
      expect(tally.pendingRequests()).toBe(turn)
    }
    expect(tally.health()).toMatchObject({ okCount: 0, failedCount: 5, lastFlushAtMs: null })
    expect(tally.health().failure?.message).toBe('disk full')
    archive.failure = null
    await tally.flush()
    expect(figures(tally.view()).week).toEqual([5, 0])
    expect(tally.pendingRequests()).toBe(0)
    expect(tally.health()).toMatchObject({ okCount: 1, failure: null, lastFlushAtMs: mondayMs })
    expect((await archive.stored()).totals[allowed]).toBe(5)
  })

  it('that fails over the end of windows keeps each count in its own', async () => {
    const { tally, archive, clock, count } = tallyBench(mondayMs + dayMs - 1)
    archive.failure = new Error('locked')
    count(allowed, 2)
    await tally.flush()
    clock.advance(1)
    count(allowed, 3)
    await tally.flush()
    archive.failure = null
    await tally.flush()
    expect(figures(tally.view())).toEqual({
      minute: [3, 2],
      hour: [3, 2],
      day: [3, 2],
      week: [5, 0],
    })
  })

  it('shows and keeps what is counted while it runs', async () => {
    for (const fails of [false, true]) {
      const { tally, archive, clock, count } = tallyBench()
      const letGo = hold(archive)
      archive.failure = fails ? new Error('locked') : null
      count(allowed, 2)
      const flushed = tally.flush()
      await setImmediate()
      expect(figures(tally.view()).minute).toEqual([2, 0])
      count(allowed, 3)
      expect(figures(tally.view()).minute).toEqual([5, 0])
      expect(tally.pendingRequests()).toBe(5)
      clock.advance(minuteMs)
      count(allowed, 4)
      letGo()
      await flushed
      expect(tally.pendingRequests()).toBe(fails ? 9 : 7)
      expect(figures(tally.view())).toMatchObject({ minute: [4, 5], hour: [9, 0] })
      archive.failure = null
      await tally.flush()
      expect(figures(tally.view())).toMatchObject({ minute: [4, 5], hour: [9, 0] })
      expect((await archive.stored()).totals[allowed]).toBe(9)
    }
  })

  it('called during a flush waits for it, then takes what came meanwhile', async () => {
    const { tally, archive, count } = tallyBench()
    const letGo = hold(archive)
    count(allowed)
    const first = tally.flush()
    count(allowed)
    const second = tally.flush()
    const third = tally.flush()
    await setImmediate()
    expect(archive.addCount).toBe(1)
    letGo()
    await Promise.all([first, second, third])
    expect(archive.addCount).toBe(3)
    expect(tally.pendingRequests()).toBe(0)
    expect((await archive.stored()).totals[allowed]).toBe(2)
  })

  it('never rejects and never hangs, even where the archive throws at once', async () => {
    const { tally, archive, count } = tallyBench()
    const add = archive.add.bind(archive)
    archive.add = () => {
      throw new Error('at once')
    }
    count(allowed)
    await tally.flush()
    await Promise.race([
      tally.flush(),
      setImmediate()
        .then(() => setImmediate())
        .then(() => Promise.reject(new Error('hangs'))),
    ])
    expect(tally.health().failedCount).toBe(2)
    archive.add = add
    await tally.flush()
    expect(tally.pendingRequests()).toBe(0)
  })

  it('tells how long it took and how it ended', async () => {
    const told: [number, string | undefined][] = []
    const { tally, archive } = tallyBench(mondayMs, undefined, (seconds, failure) =>
      told.push([seconds, failure?.message]),
    )
    await tally.flush()
    archive.failure = new Error('locked')
    await tally.flush()
    expect(told).toEqual([
      [0, undefined],
      [0, 'locked'],
    ])
  })

  it('that keeps failing drops the oldest minutes beyond its bound, and counts them', async () => {
    const { tally, archive, clock, count } = tallyBench()
    const minuteCount = 5_400
    for (let minute = 0; minute < minuteCount; minute++) {
      count(allowed)
      clock.advance(minuteMs)
    }
    // Back, so that none of them has outlived its retention.
    clock.advance(-2 * dayMs)
    const letGo = hold(archive)
    archive.failure = new Error('locked')
    const flushed = tally.flush()
    await setImmediate()
    // Counted while the flush fails: that is the newest of all, and stays.
    clock.advance(2 * dayMs)
    count(declined)
    expect(tally.pendingRequests()).toBe(minuteCount + 1)
    clock.advance(-2 * dayMs)
    letGo()
    await flushed
    archive.failure = null
    archive.held = null
    await tally.flush()
    const [minutes, hours, days, weeks] = await Promise.all(
      windowKinds.map((kind) => tally.history(kind, 0, Infinity)),
    )
    const kept = minutes?.length ?? 0
    expect(kept + (hours?.length ?? 0) + (days?.length ?? 0) + (weeks?.length ?? 0)).toBe(5_200)
    expect(tally.lostRequests).toBe(minuteCount + 1 - kept)
    expect(minutes?.[0]?.startMs).toBe(mondayMs + tally.lostRequests * minuteMs)
    expect(requestsOf(minutes?.at(-1)?.counts ?? slots.blank())).toEqual([0, 1, 0])
    for (const windows of [hours, days, weeks]) {
      const sum = windows?.reduce((total, { counts }) => total + slots.requestsIn(counts), 0)
      expect(sum).toBe(minuteCount + 1)
    }
    expect(requestsOf(tally.view().totals)).toEqual([minuteCount, 1, 0])
  })

  it('that keeps failing holds no more minutes than are kept at all', async () => {
    const { tally, archive, clock, count } = tallyBench()
    archive.failure = new Error('locked')
    count(allowed)
    await tally.flush()
    clock.advance(3 * dayMs)
    count(allowed)
    await tally.flush()
    archive.failure = null
    const sent: string[] = []
    const add = archive.add.bind(archive)
    archive.add = (deltas, wanted) => {
      sent.push(...deltas.map(({ window }) => window))
      return add(deltas, wanted)
    }
    await tally.flush()
    expect(sent.toSorted()).toEqual(['day', 'day', 'hour', 'hour', 'minute', 'week'])
    expect(tally.view().totals[allowed]).toBe(2)
  })
})

describe('totals', () => {
  it('are the sum of all counts, in every view, whatever the archive and the clock do', async () => {
    const command = fc.oneof(
      fc.record({
        do: fc.constant('count' as const),
        slot: fc.constantFrom(allowed, declined, exempt),
      }),
      fc.record({
        do: fc.constant('advance' as const),
        ms: fc.integer({ min: -hourMs, max: dayMs }),
      }),
      fc.record({ do: fc.constant('fail' as const), on: fc.boolean() }),
      fc.record({ do: fc.constant('flush' as const) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 60 }), async (commands) => {
        const { tally, archive, clock } = tallyBench()
        const model = [0, 0, 0]
        for (const step of commands) {
          if (step.do === 'count') {
            tally.reach(clock.monotonicMs())
            tally.add(step.slot)
            model[step.slot] = (model[step.slot] ?? 0) + 1
          } else if (step.do === 'advance') clock.advance(step.ms)
          else if (step.do === 'fail') archive.failure = step.on ? new Error('locked') : null
          else await tally.flush()
          const view = tally.view()
          expect(requestsOf(view.totals)).toEqual(model)
          const sum = model.reduce((total, count) => total + count, 0)
          const stored = slots.requestsIn((await archive.stored()).totals)
          expect(tally.pendingRequests() + stored).toBe(sum)
        }
        archive.failure = null
        await tally.flush()
        expect(requestsOf((await archive.stored()).totals)).toEqual(model)
      }),
    )
  })
})

describe('tallies in memory', () => {
  it('keep the windows that are shown, and the totals for ever', async () => {
    const archive = new MemoryArchive(slots, mondayMs)
    const { tally, clock, count } = tallyBench(mondayMs, archive)
    for (let hour = 0; hour < 200; hour++) {
      count(allowed)
      await tally.flush()
      clock.advance(hourMs)
    }
    const { totals } = await archive.add([], [])
    expect(totals[allowed]).toBe(200)
    const minutes = await tally.history('minute', 0, Infinity)
    expect(minutes[0]?.startMs).toBe(mondayMs + 152 * hourMs)
    expect(await tally.history('hour', 0, Infinity)).toHaveLength(200)
    expect([archive.path, archive.sizeBytes, archive.sinceMs]).toEqual([null, 0, mondayMs])
    expect(archive.movedAside).toBe(null)
  })

  it('hand out copies', async () => {
    const { tally, archive, count } = tallyBench()
    count(allowed)
    await tally.flush()
    const { totals, windows } = await archive.stored([{ window: 'minute', startMs: mondayMs }])
    for (const counts of [totals, ...windows]) counts.fill(9)
    for (const { counts } of await archive.history('minute', 0, Infinity)) counts.fill(9)
    for (const { counts } of await tally.history('minute', 0, Infinity)) counts.fill(9)
    tally.view().totals.fill(9)
    await tally.flush()
    expect(figures(tally.view()).minute).toEqual([1, 0])
    expect(tally.view().totals[allowed]).toBe(1)
  })
})

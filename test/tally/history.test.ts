/*
 * Past windows: what is stored and what waits to be, each once, in order, whatever the archive does.
 */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { StoredWindow } from '../../src/tally/archive.js'
import { allowed, declined, hold, mondayMs, slots, tallyBench } from '../support/units/tallies.js'

const minuteMs = 60_000
const dayMs = 86_400_000

/** Requests in each window of a history, by its start after Monday. */
const pointsOf = (windows: readonly StoredWindow[]) =>
  windows.map(({ startMs, counts }) => [startMs - mondayMs, slots.requestsIn(counts)])

describe('a history', () => {
  /** One request in the first minute, two in the second, none in the third, and so on up to the eighth. */
  const eightMinutes = async (stop = 8) => {
    const bench = tallyBench()
    for (let minute = 0; minute < stop; minute++) {
      if (minute % 3 !== 2) bench.count(allowed, minute + 1)
      await bench.tally.flush()
      bench.clock.advance(minuteMs)
    }
    return bench
  }
  const all: [number, number][] = [
    [0, 1],
    [1, 2],
    [3, 4],
    [4, 5],
    [6, 7],
    [7, 8],
  ].map(([minute = 0, requests = 0]) => [minute * minuteMs, requests])

  it('has the windows in which something was counted, in order', async () => {
    const { tally } = await eightMinutes()
    expect(pointsOf(await tally.history('minute', 0, Infinity))).toEqual(all)
    expect(pointsOf(await tally.history('hour', 0, Infinity))).toEqual([[0, 27]])
  })

  it.each([
    [0, 8 * minuteMs, all],
    [minuteMs, 4 * minuteMs, all.slice(1, 3)],
    [minuteMs + 1, 4 * minuteMs + 1, all.slice(2, 4)],
    [8 * minuteMs, dayMs, []],
    [3 * minuteMs, 3 * minuteMs, []],
  ])('has those that begin from %i ms on and before %i ms', async (fromMs, toMs, expected) => {
    const { tally, archive, count } = await eightMinutes()
    const points = async () =>
      pointsOf(await tally.history('minute', mondayMs + fromMs, mondayMs + toMs))
    expect(await points()).toEqual(expected)
    // Of what waits likewise.
    archive.failure = new Error('locked')
    count(declined)
    const waiting = toMs > 8 * minuteMs && fromMs <= 8 * minuteMs ? [[8 * minuteMs, 1]] : []
    expect(await points()).toEqual([...expected, ...waiting])
  })

  it('has what waits for an archive that takes nothing, added to what is stored', async () => {
    const { tally, archive, clock, count } = await eightMinutes()
    archive.failure = new Error('disk full')
    count(declined, 5)
    clock.set(mondayMs)
    count(allowed, 10)
    const [[start, first] = [], ...others] = all
    const expected = [[start, (first ?? 0) + 10], ...others, [8 * minuteMs, 5]]
    for (let turn = 0; turn < 2; turn++) {
      expect(pointsOf(await tally.history('minute', 0, Infinity))).toEqual(expected)
      expect(pointsOf(await tally.history('week', 0, Infinity))).toEqual([[0, 42]])
    }
    archive.failure = null
    expect(pointsOf(await tally.history('minute', 0, Infinity))).toEqual(expected)
    expect(tally.pendingRequests()).toBe(0)
  })

  it('asked for while a flush runs counts nothing twice', async () => {
    for (const fails of [false, true]) {
      const { tally, archive, count } = tallyBench()
      const letGo = hold(archive)
      archive.failure = fails ? new Error('locked') : null
      count(allowed, 2)
      const flushed = tally.flush()
      await setImmediate()
      count(allowed, 3)
      const asked = tally.history('minute', 0, Infinity)
      count(allowed, 4)
      letGo()
      await flushed
      expect(pointsOf(await asked)).toEqual([[0, 9]])
      expect(tally.view().totals[allowed]).toBe(9)
    }
  })

  it('has what is counted while it is read', async () => {
    const { tally, archive, count } = tallyBench()
    count(allowed, 2)
    const history = archive.history.bind(archive)
    archive.history = async (...given) => {
      const found = await history(...given)
      count(allowed, 3)
      return found
    }
    expect(pointsOf(await tally.history('minute', 0, Infinity))).toEqual([[0, 5]])
  })

  it('rejects where the archive cannot be read: gaps would be taken for zeros; nothing is lost', async () => {
    const { tally, archive, count } = tallyBench()
    count(allowed, 2)
    await tally.flush()
    const failure = new Error('disk I/O error')
    for (const addFails of [false, true]) {
      archive.readFailure = failure
      archive.failure = addFails ? failure : null
      count(allowed, 3)
      await expect(tally.history('minute', 0, Infinity)).rejects.toThrow('disk I/O error')
      expect(tally.pendingRequests()).toBe(addFails ? 3 : 0)
    }
    archive.failure = null
    archive.readFailure = null
    expect(pointsOf(await tally.history('minute', 0, Infinity))).toEqual([[0, 8]])
  })

  it('that failed holds up no flush and no other history', async () => {
    const { tally, archive, count } = tallyBench()
    archive.readFailure = new Error('disk I/O error')
    const failing = tally.history('minute', 0, Infinity)
    count(allowed)
    const flushed = tally.flush()
    await expect(failing).rejects.toThrow('disk')
    await flushed
    archive.readFailure = null
    expect(pointsOf(await tally.history('minute', 0, Infinity))).toEqual([[0, 1]])
  })
})

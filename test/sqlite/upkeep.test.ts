/*
 * What rows need while nobody asks for them, sessions for example.
 */
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startUpkeep } from '../../src/sqlite/upkeep.js'
import { sessionBench } from '../support/units/sessions.js'

function bench(wrap?: Parameters<typeof sessionBench>[0]) {
  const { sessions, stored } = sessionBench(wrap)
  const failures: unknown[] = []
  const start = () => {
    const timer = startUpkeep(sessions, (error) => failures.push(error))
    onTestFinished(() => clearInterval(timer))
    return timer
  }
  return { sessions, start, stored, failures }
}

describe('the upkeep', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval'] }))
  afterEach(() => void vi.useRealTimers())

  it('SES-07: deletes what has expired within a minute, and nothing that lives', async () => {
    const { sessions, start, stored } = bench()
    start()
    for (let count = 0; count < 1_000; count++) {
      await sessions.set(`short-${count}`, '{}', Date.now() + 1_000)
    }
    await sessions.set('long', '{}', Date.now() + 3_600_000)
    await sessions.flush()
    expect(stored()).toHaveLength(1_001)
    await vi.advanceTimersByTimeAsync(60_000)
    await vi.waitFor(() => expect(stored()).toHaveLength(1))
    expect(await sessions.get('long')).toBe('{}')
  })

  it('writes what waits each second', async () => {
    const { sessions, start, stored } = bench()
    start()
    await sessions.set('a', '{}', Date.now() + 1_500)
    sessions.extend('a', '{"n":1}', Date.now() + 90_000)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await sessions.get('a')).toBe('{"n":1}')
    expect(stored().map(({ data }) => data)).toEqual(['{"n":1}'])
  })

  it('goes on after a sweep that failed, and tells of it', async () => {
    const state = { failures: 2 }
    const { sessions, start, stored, failures } = bench((rows) => ({
      ...rows,
      sweep: (nowMs) =>
        state.failures-- > 0 ? Promise.reject(new Error('disk I/O error')) : rows.sweep(nowMs),
    }))
    start()
    await sessions.set('a', '{}', Date.now() + 1_000)
    await vi.advanceTimersByTimeAsync(61_000)
    await vi.waitFor(() => expect(stored()).toEqual([]))
    expect(failures).toEqual([new Error('disk I/O error'), new Error('disk I/O error')])
  })
})

describe('the timer of the upkeep', () => {
  it('SES-07: does not keep the process alive', () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const { start } = bench()
    const timer = start()
    expect([timers(), timer.hasRef()]).toEqual([before, false])
    timer.ref()
    expect(timers()).toBe(before + 1)
  })
})

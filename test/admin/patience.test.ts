/*
 * Waiting for a database that cannot be read: not for ever, and not longer than it takes.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Refusal } from '../../src/admin/answers.js'
import { patiently } from '../../src/admin/patience.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** What became of a read, once so much time has passed. */
async function after<T>(timeMs: number, read: () => Promise<T>): Promise<unknown> {
  let outcome: unknown = 'waiting'
  void patiently(read).then(
    (value) => (outcome = value),
    (error: unknown) => (outcome = error),
  )
  await vi.advanceTimersByTimeAsync(timeMs)
  return outcome
}

describe('a read', () => {
  it('that fails is tried again until it does not', async () => {
    const read = vi.fn<() => Promise<string>>()
    read.mockRejectedValueOnce(new Error('database is locked')).mockResolvedValue('rows')
    expect(await after(199, read)).toBe('waiting')
    await vi.advanceTimersByTimeAsync(1)
    expect(read).toHaveBeenCalledTimes(2)
    expect(await after(0, read)).toBe('rows')
  })

  it.each([
    ['that always fails', () => Promise.reject(new Error('disk I/O error'))],
    ['that never ends', () => new Promise<string>(() => {})],
  ])('%s is given up after five seconds, and a time to come back is said', async (_, read) => {
    expect(await after(4_999, read)).toBe('waiting')
    const refusal = await after(5_000, read)
    expect(refusal).toBeInstanceOf(Refusal)
    expect(refusal).toMatchObject({ status: 503, headers: { 'Retry-After': '5' } })
  })

  it('that was given up is not tried for ever', async () => {
    const read = vi.fn<() => Promise<string>>().mockRejectedValue(new Error('disk I/O error'))
    await after(6_000, read)
    const { length } = read.mock.calls
    await vi.advanceTimersByTimeAsync(60_000)
    expect(read.mock.calls.length).toBe(length)
  })
})

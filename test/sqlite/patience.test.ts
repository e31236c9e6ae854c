/*
 * Waiting for answers, but not for ever.
 */
import { describe, expect, it, vi } from 'vitest'
import { Patience } from '../../src/sqlite/patience.js'
import { within } from '../../src/sqlite/within.js'
import { held } from '../support/units/session-rows.js'

const never = new Promise<string>(() => {})

describe('within', () => {
  it('gives what comes in time, fails with what fails, and is late with the rest', async () => {
    expect(await within(Promise.resolve('here'), 5)).toBe('here')
    await expect(within(Promise.reject(new Error('no')), 5)).rejects.toThrow('no')
    expect(await within(never, 5)).toBe('late')
  })

  it('leaves no timer behind', async () => {
    vi.useFakeTimers()
    try {
      await within(Promise.resolve(1), 1_000)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('patience', () => {
  it('is over once an answer was late, until that has come', async () => {
    const patience = new Patience(5)
    const { until, letGo } = held()
    const first = until.then(() => 'first')
    expect(await patience.inTime(first)).toBe('late')
    expect([patience.isOver, await patience.inTime(Promise.resolve('next'))]).toEqual([
      true,
      'late',
    ])
    letGo()
    await first
    expect([patience.isOver, await patience.inTime(Promise.resolve('next'))]).toEqual([
      false,
      'next',
    ])
  })

  it('is over until all late answers have come', async () => {
    const patience = new Patience(5)
    const { until, letGo } = held()
    const both = [patience.inTime(until), patience.inTime(never)]
    expect(await Promise.all(both)).toEqual(['late', 'late'])
    letGo()
    await until
    expect(patience.isOver).toBe(true)
  })
})

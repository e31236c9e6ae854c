/*
 * Sessions whose rows others write to as well, and rows that are late, or another file's all of a sudden.
 */
import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { bufferBench, held } from '../support/units/session-rows.js'

describe('sessions of a file that another process writes to', () => {
  it('are as they are in the rows: changed, ended and begun there', async () => {
    const one = bufferBench()
    const other = bufferBench(one.rows)
    one.state.isShared = true
    other.state.isShared = true
    await one.buffer.set('a', '1', 2_000)
    expect(await other.buffer.get('a')).toBe('1')
    await other.buffer.update('a', '2', 2_000)
    expect(await one.buffer.get('a')).toBe('2')
    await one.buffer.delete('a')
    expect(await other.buffer.get('a')).toBe(null)
  })

  it('are not brought back by a change that waited while another process ended them', async () => {
    const { buffer, rows, state } = bufferBench()
    for (const id of ['a', 'b']) await buffer.set(id, '1', 2_000)
    await buffer.flush()
    buffer.extend('a', '2', 3_000)
    rows.isFailing = true
    await buffer.update('b', '2', 3_000)
    rows.kept.clear()
    state.isShared = true
    rows.isFailing = false
    await buffer.flush()
    expect([await buffer.get('a'), await buffer.get('b'), rows.kept.size]).toEqual([null, null, 0])
  })

  it('stay ended once nobody else writes any more, whether they were read meanwhile or not', async () => {
    const { buffer, rows, state } = bufferBench()
    for (const id of ['read', 'unread', 'alive']) await buffer.set(id, '1', 2_000)
    await buffer.flush()
    state.isShared = true
    rows.kept.delete('read')
    rows.kept.delete('unread')
    expect(await buffer.get('read')).toBe(null)
    state.isShared = false
    expect(await Promise.all(['read', 'unread', 'alive'].map((id) => buffer.get(id)))).toEqual([
      null,
      null,
      '1',
    ])
  })

  it('stay ended once they were found to be, also where the rows are late after that', async () => {
    const { buffer, rows, state } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    state.isShared = true
    rows.kept.clear()
    expect(await buffer.get('a')).toBe(null)
    const { until, letGo } = held()
    rows.beforeReads = until
    expect(await buffer.get('a')).toBe(null)
    letGo()
  })

  it('stay ended where no request came while others wrote', async () => {
    const { buffer, rows, state } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    rows.kept.clear()
    state.isShared = true
    await buffer.flush()
    state.isShared = false
    expect(await buffer.get('a')).toBe(null)
  })

  it('are in the rows before the answer, where these take no longer than 50 ms', async () => {
    const { buffer, rows, state } = bufferBench()
    state.isShared = true
    await buffer.set('a', '1', 2_000)
    expect(rows.dataOf('a')).toBe('1')
    await buffer.update('a', '2', 2_000)
    expect(rows.dataOf('a')).toBe('2')
    await buffer.delete('a')
    expect(rows.dataOf('a')).toBe(undefined)
  })
})

describe('rows that do not answer', () => {
  it.each([false, true])(
    'leave the word to the copy within 50 ms, and only the first waits',
    async (fails) => {
      const { buffer, rows, state } = bufferBench()
      for (const id of ['a', 'b']) await buffer.set(id, '1', 2_000)
      await buffer.flush()
      state.isShared = true
      const { until, letGo } = held()
      rows.beforeReads = until
      const startedMs = performance.now()
      expect(await buffer.get('a')).toBe('1')
      expect(performance.now() - startedMs).toBeGreaterThan(45)
      // What has not been read yet is no session as far as is known.
      const turns = Array.from({ length: 1_000 }, () => buffer.get('b'))
      const first = await Promise.race([...turns, setImmediate('late')])
      expect(first).toBe('1')
      expect([await buffer.get('unknown'), rows.readCount]).toEqual([null, 1])
      rows.cannotRead = fails
      letGo()
      await setImmediate()
      rows.cannotRead = false
      rows.kept.set('a', { data: '2', expiresMs: 2_000 })
      expect(await buffer.get('a')).toBe('2')
    },
  )

  it('keep no write waiting once one was late', async () => {
    const { buffer, rows, state } = bufferBench()
    state.isShared = true
    const { until, letGo } = held()
    rows.beforeWrites = until
    await buffer.set('a', '1', 2_000)
    const rest = ['b', 'c', 'd'].map((id) => buffer.set(id, '1', 2_000))
    expect(
      await Promise.race([Promise.all(rest).then(() => 'in time'), setImmediate('late')]),
    ).toBe('in time')
    expect(rows.kept.size).toBe(0)
    letGo()
    await buffer.flush()
    expect(rows.kept.size).toBe(4)
  })
})

describe('rows whose file was replaced', () => {
  it('get the sessions that are in use, but not those that have ended or expired', async () => {
    const { buffer, rows, state } = bufferBench()
    for (const id of ['a', 'ended']) await buffer.set(id, '1', 3_000)
    await buffer.set('expired', '1', 2_000)
    await buffer.delete('ended')
    await buffer.flush()
    rows.kept.clear()
    state.replacedCount = 1
    state.nowMs = 2_000
    await buffer.flush()
    expect([...rows.kept]).toEqual([['a', { data: '1', expiresMs: 3_000 }]])
    rows.kept.clear()
    await buffer.flush()
    expect(rows.kept.size).toBe(0)
  })

  it('get them with the first read that finds none, where they are shared', async () => {
    const { buffer, rows, state } = bufferBench()
    await buffer.set('a', '1', 3_000)
    await buffer.flush()
    state.isShared = true
    rows.kept.clear()
    state.replacedCount = 1
    expect(await buffer.get('a')).toBe('1')
    await buffer.flush()
    expect(rows.dataOf('a')).toBe('1')
  })

  it('get the latest word of a session that was changed just then', async () => {
    const { buffer, rows, state } = bufferBench()
    await buffer.set('a', '1', 3_000)
    await buffer.flush()
    rows.kept.clear()
    await buffer.update('a', '2', 4_000)
    await setImmediate()
    state.replacedCount = 1
    await buffer.flush()
    expect([...rows.kept]).toEqual([['a', { data: '2', expiresMs: 4_000 }]])
  })
})

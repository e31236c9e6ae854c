/*
 * Sessions as requests have them, in one process: read from the copy, written behind it, and kept while the
 * database takes no writes.
 */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { bufferBench, held } from '../support/units/session-rows.js'

describe('the session buffer', () => {
  it('writes at once, and nobody waits for it', async () => {
    const { buffer, rows } = bufferBench()
    const { until, letGo } = held()
    rows.beforeWrites = until
    const done = buffer.set('a', '1', 2_000).then(() => buffer.update('a', '2', 2_000))
    expect(await Promise.race([done, setImmediate('late')])).toBe(undefined)
    expect([await buffer.get('a'), rows.dataOf('a')]).toEqual(['2', undefined])
    letGo()
    await setImmediate()
    expect(rows.dataOf('a')).toBe('2')
  })

  it('reads a session from the rows once, from its copy from then on', async () => {
    const { buffer, rows } = bufferBench()
    rows.kept.set('a', { data: '1', expiresMs: 2_000 })
    for (let turn = 0; turn < 3; turn++) expect(await buffer.get('a')).toBe('1')
    expect(rows.readCount).toBe(1)
    await buffer.set('b', '2', 2_000)
    await buffer.flush()
    expect([await buffer.get('b'), rows.readCount]).toEqual(['2', 1])
  })

  it('keeps no copy of a session that there is none of', async () => {
    const { buffer, rows } = bufferBench()
    expect(await buffer.get('a')).toBe(null)
    rows.kept.set('a', { data: '1', expiresMs: 2_000 })
    expect(await buffer.get('a')).toBe('1')
  })

  it('SEC-07: reads a copy until it expires, and no longer for having been read', async () => {
    const { buffer, state } = bufferBench()
    await buffer.set('a', '1', 2_000)
    state.nowMs = 1_999
    expect(await buffer.get('a')).toBe('1')
    state.nowMs = 2_000
    expect(await buffer.get('a')).toBe(null)
  })

  it('writes an extension with the next flush, once, the latest word of it', async () => {
    const { buffer, rows } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    for (const data of ['2', '3', '4']) buffer.extend('a', data, 3_000)
    expect([rows.dataOf('a'), await buffer.get('a'), rows.writeCount]).toEqual(['1', '4', 1])
    await buffer.flush()
    expect([rows.dataOf('a'), await buffer.get('a'), rows.writeCount]).toEqual(['4', '4', 2])
    await buffer.flush()
    expect(rows.writeCount).toBe(2)
  })

  it('extends no session after its end, and one that was extended in time after that', async () => {
    const { buffer, rows, state } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    state.nowMs = 1_999
    buffer.extend('a', '2', 2_500)
    state.nowMs = 2_499
    buffer.extend('a', '3', 3_000)
    expect(await buffer.get('a')).toBe('3')
    state.nowMs = 3_000
    buffer.extend('a', '4', 9_000)
    await buffer.update('a', '5', 9_000)
    expect(await buffer.get('a')).toBe(null)
    await buffer.flush()
    // Judged by when it was first extended.
    expect(rows.changedMs).toEqual([1_999])
  })

  it('writes changes of one session in order, also where a write takes its time', async () => {
    const { buffer, rows } = bufferBench()
    const { until, letGo } = held()
    rows.beforeWrites = until
    const first = buffer.set('a', '1', 2_000)
    await setImmediate()
    // The first has begun; the others would be done at once, and it would have the last word.
    rows.beforeWrites = Promise.resolve()
    const second = buffer.set('a', '2', 2_000)
    const third = buffer.delete('a')
    await setImmediate()
    expect(await buffer.get('a')).toBe(null)
    letGo()
    await Promise.all([first, second, third, buffer.flush()])
    expect([await buffer.get('a'), rows.dataOf('a')]).toEqual([null, undefined])
    await buffer.set('a', '3', 2_000)
    await buffer.flush()
    expect(rows.dataOf('a')).toBe('3')
  })

  it('counts the rows, and tells the last count where there is none to be had', async () => {
    const { buffer, rows, told } = bufferBench()
    for (const id of ['a', 'b']) await buffer.set(id, id, 2_000)
    await buffer.flush()
    expect(await buffer.count()).toBe(2)
    rows.kept.clear()
    rows.cannotRead = true
    expect([await buffer.count(), told]).toEqual([2, ['failing']])
  })
})

describe('a session that has ended', () => {
  const changes = ['update', 'extend', 'update', 'extend'] as const

  it.each([false, true])('stays ended whatever changes follow, failing: %s', async (isFailing) => {
    const { buffer, rows } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    buffer.extend('a', '2', 3_000)
    rows.isFailing = isFailing
    await buffer.delete('a')
    for (const change of changes) {
      await buffer[change]('a', '3', 3_000)
      expect(await buffer.get('a')).toBe(null)
      await buffer.flush()
      expect(await buffer.get('a')).toBe(null)
    }
    expect(rows.dataOf('a')).toBe(isFailing ? '1' : undefined)
    rows.isFailing = false
    await buffer.flush()
    expect([await buffer.get('a'), rows.dataOf('a')]).toEqual([null, undefined])
  })

  it('stays ended where a read of it was still under way', async () => {
    const { buffer, rows } = bufferBench()
    rows.kept.set('a', { data: '1', expiresMs: 2_000 })
    const { until, letGo } = held()
    rows.beforeReads = until
    const reading = buffer.get('a')
    await buffer.delete('a')
    letGo()
    expect(await reading).toBe(null)
    await buffer.flush()
    expect([await buffer.get('a'), rows.dataOf('a')]).toEqual([null, undefined])
  })

  it('stays ended where a change of it is being written', async () => {
    const { buffer, rows } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    const { until, letGo } = held()
    rows.beforeWrites = until
    await buffer.update('a', '2', 2_000)
    await setImmediate()
    await buffer.delete('a')
    letGo()
    await buffer.flush()
    expect([await buffer.get('a'), rows.dataOf('a')]).toEqual([null, undefined])
  })
})

describe('while the database takes no writes', () => {
  it('the latest word of a session is read, until it expires', async () => {
    const { buffer, rows, state } = bufferBench()
    await buffer.set('a', '1', 2_000)
    await buffer.flush()
    rows.isFailing = true
    await buffer.set('a', '2', 2_000)
    await buffer.update('a', '3', 2_000)
    expect(await buffer.get('a')).toBe('3')
    state.nowMs = 2_000
    expect(await buffer.get('a')).toBe(null)
  })

  it('writing is tried again at a flush, not with every request, and told once', async () => {
    const { buffer, rows, told } = bufferBench()
    rows.isFailing = true
    for (const id of ['a', 'b', 'c']) await buffer.set(id, id, 2_000)
    await buffer.flush()
    rows.isFailing = false
    await buffer.set('d', 'd', 2_000)
    await setImmediate()
    expect([rows.kept.size, told]).toEqual([0, ['failing']])
    await buffer.flush()
    expect([...rows.kept.keys()].toSorted()).toEqual(['a', 'b', 'c', 'd'])
    expect(told).toEqual(['failing', 'well'])
  })

  it('10,000 sessions wait; the one that has waited longest goes, and with room all are written', async () => {
    const { buffer, rows } = bufferBench()
    rows.isFailing = true
    for (let index = 0; index <= 10_000; index++) await buffer.set(`s${index}`, 'x', 2_000)
    rows.isFailing = false
    await buffer.flush()
    expect([rows.kept.size, rows.dataOf('s0'), rows.dataOf('s1')]).toEqual([10_000, undefined, 'x'])
  })

  it('extensions that there is no room for are passed over, and what waits is kept', async () => {
    const { buffer, rows } = bufferBench()
    rows.isFailing = true
    await buffer.set('new', '1', 2_000)
    for (let index = 0; index < 10_000; index++) buffer.extend(`s${index}`, 'x', 2_000)
    rows.isFailing = false
    await buffer.flush()
    expect([rows.dataOf('new'), rows.writeCount]).toEqual(['1', 10_000])
  })

  it('a session that is new and was changed while it waited is made', async () => {
    const { buffer, rows } = bufferBench()
    rows.isFailing = true
    await buffer.set('a', '1', 2_000)
    await buffer.update('a', '2', 2_000)
    await setImmediate()
    rows.isFailing = false
    await buffer.flush()
    expect(rows.dataOf('a')).toBe('2')
  })

  it('a flush tries for itself what was being written when it came, and failed then', async () => {
    const { buffer, rows, told } = bufferBench()
    const { until, letGo } = held()
    rows.beforeWrites = until.then(() => Promise.reject(new Error('database is locked')))
    await buffer.set('a', '1', 2_000)
    await setImmediate()
    rows.beforeWrites = Promise.resolve()
    const flushed = buffer.flush()
    letGo()
    await flushed
    expect([rows.dataOf('a'), told]).toEqual(['1', ['failing', 'well']])
  })

  it('all is well again after a failed read once a read succeeds', async () => {
    const { buffer, rows, told } = bufferBench()
    rows.cannotRead = true
    expect(await buffer.get('a')).toBe(null)
    await buffer.flush()
    expect(told).toEqual(['failing'])
    rows.cannotRead = false
    await buffer.flush()
    expect(told).toEqual(['failing', 'well'])
  })
})

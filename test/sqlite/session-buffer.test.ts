/*
 * The copy of sessions that wait for a database: what is read, what is written, what is bounded.
 */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { SessionBuffer } from '../../src/sqlite/session-buffer.js'
import type { SessionRows } from '../../src/sqlite/sessions.js'

/** Rows in memory, failing where told to: no database fails on command. */
function rowsThat() {
  const kept = new Map<string, string>()
  const state = {
    isFailing: false,
    cannotRead: false,
    writes: 0,
    changedMs: [] as number[],
    before: Promise.resolve(),
  }
  const check = async () => {
    await state.before
    if (state.isFailing) throw new Error('database is locked')
  }
  const rows: SessionRows = {
    async get(id) {
      if (state.cannotRead) throw new Error('disk I/O error')
      return kept.get(id) ?? null
    },
    async set(id, data) {
      await check()
      state.writes++
      kept.set(id, data)
    },
    async update(id, data, _expiresMs, changedMs) {
      await check()
      state.changedMs.push(changedMs)
      state.writes++
      if (kept.has(id)) kept.set(id, data)
    },
    async delete(id) {
      await check()
      kept.delete(id)
    },
    count: async () => kept.size,
    sweep: async () => 0,
  }
  const failures: unknown[] = []
  let nowMs = 1_000
  const buffer = new SessionBuffer({
    rows,
    wallMs: () => nowMs,
    onFailure: (error) => failures.push(error === null ? 'well' : 'failing'),
  })
  return { buffer, kept, state, failures, setNow: (timeMs: number) => (nowMs = timeMs) }
}

describe('the session buffer', () => {
  it('writes through while the database takes writes', async () => {
    const { buffer, kept } = rowsThat()
    await buffer.set('a', '1', 2_000)
    expect(kept.get('a')).toBe('1')
  })

  it('reads what waits, the latest word of it, until it expires', async () => {
    const { buffer, state, setNow } = rowsThat()
    await buffer.set('a', '1', 2_000)
    state.isFailing = true
    await buffer.set('a', '2', 2_000)
    await buffer.set('a', '3', 2_000)
    expect(await buffer.get('a')).toBe('3')
    setNow(2_000)
    expect(await buffer.get('a')).toBe(null)
  })

  it('keeps a session deleted while the database does not', async () => {
    const { buffer, state, kept } = rowsThat()
    await buffer.set('a', '1', 2_000)
    state.isFailing = true
    await buffer.delete('a')
    expect([await buffer.get('a'), kept.get('a')]).toEqual([null, '1'])
    state.isFailing = false
    await buffer.flush()
    expect(kept.has('a')).toBe(false)
  })

  it('tries again at a flush, not with every request, and tells once', async () => {
    const { buffer, state, kept, failures } = rowsThat()
    state.isFailing = true
    for (const id of ['a', 'b', 'c']) await buffer.set(id, id, 2_000)
    await buffer.flush()
    state.isFailing = false
    await buffer.set('d', 'd', 2_000)
    expect([kept.size, failures]).toEqual([0, ['failing']])
    await buffer.flush()
    expect([[...kept.keys()].toSorted(), failures]).toEqual([
      ['a', 'b', 'c', 'd'],
      ['failing', 'well'],
    ])
  })

  it('is bounded: the one that has waited longest goes', async () => {
    const { buffer, state } = rowsThat()
    state.isFailing = true
    for (let index = 0; index <= 10_000; index++) await buffer.set(`s${index}`, 'x', 2_000)
    expect(await buffer.get('s0')).toBe(null)
    expect(await buffer.get('s1')).toBe('x')
  })

  it('writes an extension with the next flush, once, the latest word of it', async () => {
    const { buffer, kept, state } = rowsThat()
    await buffer.set('a', '1', 2_000)
    for (const data of ['2', '3', '4']) buffer.extend('a', data, 3_000)
    expect([kept.get('a'), await buffer.get('a'), state.writes]).toEqual(['1', '4', 1])
    await buffer.flush()
    expect([kept.get('a'), await buffer.get('a'), state.writes]).toEqual(['4', '4', 2])
  })

  it('brings no session back that was deleted while its extension waited, nor by one that comes later', async () => {
    const { buffer, kept, state } = rowsThat()
    await buffer.set('a', '1', 2_000)
    buffer.extend('a', '2', 3_000)
    state.isFailing = true
    await buffer.delete('a')
    buffer.extend('a', '3', 3_000)
    await buffer.update('a', '4', 3_000)
    state.isFailing = false
    await buffer.flush()
    expect([await buffer.get('a'), kept.has('a')]).toEqual([null, false])
  })

  it('brings no session back that another process deleted while its change waited', async () => {
    const { buffer, kept, state } = rowsThat()
    await buffer.set('a', '1', 2_000)
    await buffer.set('b', '1', 2_000)
    buffer.extend('a', '2', 3_000)
    state.isFailing = true
    await buffer.update('b', '2', 3_000)
    kept.clear()
    state.isFailing = false
    await buffer.flush()
    expect([await buffer.get('a'), await buffer.get('b'), kept.size]).toEqual([null, null, 0])
  })

  it('makes a session that is new and was changed while it waited', async () => {
    const { buffer, kept, state } = rowsThat()
    state.isFailing = true
    await buffer.set('a', '1', 2_000)
    await buffer.update('a', '2', 2_000)
    state.isFailing = false
    await buffer.flush()
    expect(kept.get('a')).toBe('2')
  })

  it('extends no session after its end, and one that was extended in time after that', async () => {
    const { buffer, state, setNow } = rowsThat()
    await buffer.set('a', '1', 2_000)
    setNow(1_999)
    buffer.extend('a', '2', 2_500)
    setNow(2_499)
    buffer.extend('a', '3', 3_000)
    expect(await buffer.get('a')).toBe('3')
    setNow(3_000)
    buffer.extend('a', '4', 9_000)
    expect(await buffer.get('a')).toBe(null)
    await buffer.flush()
    // Judged by when it was first extended.
    expect(state.changedMs).toEqual([1_999])
  })

  it('passes over extensions that it has no room for, and keeps what waits', async () => {
    const { buffer, kept, state } = rowsThat()
    state.isFailing = true
    await buffer.set('new', '1', 2_000)
    for (let index = 0; index < 10_000; index++) buffer.extend(`s${index}`, 'x', 2_000)
    state.isFailing = false
    await buffer.flush()
    expect([kept.get('new'), state.writes]).toEqual(['1', 10_000])
  })

  it('writes changes of one session in order, also where a write takes its time', async () => {
    const { buffer, kept, state } = rowsThat()
    let go = () => {}
    state.before = new Promise<void>((resolve) => (go = resolve))
    const first = buffer.set('a', '1', 2_000)
    await setImmediate()
    // The first has begun; the others would be done at once, and it would have the last word.
    state.before = Promise.resolve()
    const second = buffer.set('a', '2', 2_000)
    const third = buffer.delete('a')
    await setImmediate()
    expect(await buffer.get('a')).toBe(null)
    go()
    await Promise.all([first, second, third, buffer.flush()])
    expect([await buffer.get('a'), kept.has('a')]).toEqual([null, false])
    await buffer.set('a', '3', 2_000)
    expect(kept.get('a')).toBe('3')
  })

  it('is well again after a failed read once a read succeeds', async () => {
    const { buffer, state, failures } = rowsThat()
    state.cannotRead = true
    expect(await buffer.get('a')).toBe(null)
    await buffer.flush()
    expect(failures).toEqual(['failing'])
    state.cannotRead = false
    await buffer.flush()
    expect(failures).toEqual(['failing', 'well'])
  })
})

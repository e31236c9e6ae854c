/*
 * The copy of sessions that wait for a database: what is read, what is written, what is bounded.
 */
import { describe, expect, it } from 'vitest'
import { SessionBuffer } from '../../src/sqlite/session-buffer.js'
import type { SessionRows } from '../../src/sqlite/sessions.js'

/** Rows in memory, failing where told to: no database fails on command. */
function rowsThat() {
  const kept = new Map<string, string>()
  const state = { isFailing: false, writes: 0 }
  const check = async () => {
    if (state.isFailing) throw new Error('database is locked')
  }
  const rows: SessionRows = {
    get: async (id) => kept.get(id) ?? null,
    async set(id, data) {
      await check()
      state.writes++
      kept.set(id, data)
    },
    update: async () => check(),
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
})

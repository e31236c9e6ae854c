/*
 * Changes on their way to the database and back: in whatever order answers come, the newest change of a
 * field is the one that is known, and what could not be written is not forgotten.
 */
import { describe, expect, it } from 'vitest'
import { ChangeKeeper, type ChangeRows } from '../../src/admin/change-keeper.js'
import type { AuditRow, Override, StoredOverrides } from '../../src/sqlite/rule-changes.js'
import { collectingLogger } from '../support/units/log.js'

const stored = (overrides: Override[], revision = 1, databaseId = 'one'): StoredOverrides => ({
  databaseId,
  revision,
  overrides,
})

const change = (value: number, atMs: number): Override => ({
  rule: 'ip',
  field: 'limit',
  value,
  replaced: 3,
  atMs,
})

const entry = (id: string, atMs = 1): AuditRow => ({
  id,
  atMs,
  rule: 'ip',
  action: 'change',
  before: null,
  after: null,
})

/** A keeper whose database answers what a test says, when it says so. */
function bench(atStart: Override[] = []) {
  const calls: { method: string; args: unknown[] }[] = []
  const answers: (() => Promise<StoredOverrides | null>)[] = []
  const answer = (method: string) =>
    function called(...args: unknown[]): Promise<never> {
      calls.push({ method, args })
      return (answers.shift() ?? (async () => null))() as Promise<never>
    }
  const rows: ChangeRows = {
    since: answer('since'),
    write: answer('write'),
    audit: async () => [entry('stored', 5)],
  }
  const { logger, lines } = collectingLogger()
  let changedCount = 0
  const kept = { rows, stored: stored(atStart) }
  const keeper = new ChangeKeeper({
    kept,
    logger,
    isOurs: ({ replaced }) => replaced === 3,
    onChange: () => void changedCount++,
  })
  const values = () => keeper.overrides.map(({ value }) => value)
  return { keeper, calls, answers, lines, values, changedCount: () => changedCount }
}

const refuse = () => Promise.reject(new Error('database is locked'))

describe('changes that are kept', () => {
  it('are not undone by an answer that was on its way when they were made', async () => {
    const { keeper, answers, values } = bench()
    let tell: (state: StoredOverrides) => void = () => {}
    answers.push(() => new Promise((resolve) => (tell = resolve)))
    const asking = keeper.save()
    await Promise.resolve()
    keeper.add([change(50, 10)], entry('a'))
    tell(stored([change(40, 9)], 2))
    await asking
    expect(values()).toEqual([50])
    expect(keeper.isWaiting).toBe(true)
  })

  it('give way to a newer one of another process, waiting or not', async () => {
    const { keeper, calls, answers, values, changedCount } = bench()
    answers.push(
      refuse,
      async () => stored([change(60, 11)], 2),
      async () => null,
    )
    keeper.add([change(50, 10)], entry('a'))
    await keeper.save()
    expect([values(), keeper.isWaiting]).toEqual([[50], true])
    await keeper.save()
    expect([values(), keeper.isWaiting, changedCount()]).toEqual([[60], false, 1])
    await keeper.save()
    expect(calls.map(({ method }) => method)).toEqual(['write', 'write', 'since'])
    expect(calls[2]?.args).toEqual(['one', 2])
  })

  it('of the same millisecond end as the database has them', async () => {
    const { keeper, answers, values } = bench()
    answers.push(
      async () => stored([change(50, 10)], 2),
      async () => stored([change(60, 10)], 3),
    )
    keeper.add([change(50, 10)], entry('a'))
    await keeper.save()
    await keeper.save()
    expect(values()).toEqual([60])
  })

  it('of this configuration stay in force when another process begins with a new one', async () => {
    const { keeper, answers, values } = bench([change(50, 10)])
    const withdrawn = { ...change(0, 11), value: null, replaced: 7 }
    answers.push(
      async () => stored([withdrawn], 2),
      async () => stored([change(60, 12)], 3),
    )
    await keeper.save()
    expect(values()).toEqual([50])
    await keeper.save()
    expect(values()).toEqual([60])
  })

  it('have a time after all that are known, though the clock was set back', () => {
    const { keeper } = bench([change(50, 1_000)])
    expect(keeper.timeOf(500.5)).toBe(1_001)
    expect(keeper.timeOf(500)).toBe(1_002)
    expect(keeper.timeOf(2_000.5)).toBe(2_000)
  })

  it('that came while others were written are written next', async () => {
    const { keeper, calls, answers } = bench()
    answers.push(async () => {
      keeper.add([change(60, 11)], entry('b'))
      return stored([change(50, 10)], 2)
    })
    keeper.add([change(50, 10)], entry('a'))
    await keeper.save()
    expect(keeper.isWaiting).toBe(true)
    await keeper.save()
    expect(calls.map(({ args }) => args)).toEqual([
      [[change(50, 10)], [entry('a')]],
      [[change(60, 11)], [entry('b')]],
    ])
  })

  it('are asked for once, however many ask while the database is slow', async () => {
    const { keeper, calls, answers } = bench()
    let tell: (state: null) => void = () => {}
    answers.push(() => new Promise((resolve) => (tell = resolve)))
    const all = Array.from({ length: 100 }, () => keeper.save())
    await Promise.resolve()
    all.push(...Array.from({ length: 100 }, () => keeper.save()))
    tell(null)
    await Promise.all(all)
    expect(calls).toHaveLength(2)
  })

  it('go into a file that was begun anew, all that are in force', async () => {
    const { keeper, calls, answers, values } = bench([change(50, 10)])
    answers.push(async () => stored([], 0, 'two'))
    await keeper.save()
    expect([values(), keeper.isWaiting]).toEqual([[50], true])
    await keeper.save()
    expect(calls[1]).toEqual({ method: 'write', args: [[change(50, 10)], []] })
  })
})

describe('the audit', () => {
  it('has what the database has, and what it has not yet', async () => {
    const { keeper, answers } = bench()
    answers.push(refuse)
    keeper.add([], entry('stored', 5))
    keeper.add([], entry('mine', 6))
    await keeper.save()
    expect((await keeper.audit()).map(({ id }) => id)).toEqual(['mine', 'stored'])
  })

  it('says once that it cannot be written, and once that it can', async () => {
    const { keeper, answers, lines } = bench()
    answers.push(refuse, refuse, async () => stored([], 2))
    keeper.add([], entry('a'))
    for (let turn = 0; turn < 3; turn++) await keeper.save()
    expect(lines.map(({ level }) => level)).toEqual(['error', 'info'])
  })
})

/*
 * Changes of rules as rows: the newest of each field, whoever writes it and whenever; a number that says
 * whether there is something new; each entry of the audit once.
 */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import {
  auditCountMax,
  RuleChangeRows,
  type AuditRow,
  type Override,
} from '../../src/sqlite/rule-changes.js'
import { temporaryFolder } from '../support/processes.js'

function databaseAt(path = join(temporaryFolder(), 'x.db')) {
  const database = openDatabase(path, 0)
  onTestFinished(() => database.close())
  return database
}

const rowsAt = (path?: string) => new RuleChangeRows(databaseAt(path))

const change = (value: number | null, atMs: number, rule = 'ip'): Override => ({
  rule,
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
  before: { limit: 3 },
  after: null,
})

describe('changes', () => {
  it('are read back as they were written', () => {
    const path = join(temporaryFolder(), 'x.db')
    const mode = {
      ...change(null, 8),
      field: 'mode',
      value: 'shadow',
      replaced: 'enforce',
    } as const
    const limit = change(2 ** 32 - 1, 7)
    const written = rowsAt(path).write([limit, mode], [entry('a')])
    expect(written.overrides).toEqual([limit, mode])
    expect(rowsAt(path).read()).toEqual(written)
    expect(rowsAt(path).audit()).toEqual([entry('a')])
  })

  it('give way to a newer one of the same field, and not to an older one', () => {
    const rows = rowsAt()
    rows.write([change(5, 10), change(7, 10, 'global')], [])
    expect(rows.write([change(4, 9)], []).overrides).toContainEqual(change(5, 10))
    expect(rows.write([change(null, 11)], []).overrides).toContainEqual(change(null, 11))
    expect(rows.write([change(6, 10)], []).overrides).toEqual([
      change(7, 10, 'global'),
      change(null, 11),
    ])
  })

  it('tell that there is something new, and that the file is another', () => {
    const rows = rowsAt()
    const { databaseId, revision } = rows.read()
    expect([revision, rows.since(databaseId, revision)]).toEqual([0, null])
    const written = rows.write([change(5, 10)], [])
    expect(rows.since(databaseId, revision)).toEqual(written)
    expect(rows.since(databaseId, written.revision)).toBeNull()
    expect(rows.since('another', written.revision)).toEqual(written)
  })

  it('are written all or not at all', () => {
    const rows = rowsAt()
    const before = rows.read()
    const bad = { ...entry('a'), rule: null as unknown as string }
    expect(() => rows.write([change(5, 10)], [bad])).toThrow('NOT NULL')
    expect([rows.read(), rows.audit()]).toEqual([before, []])
  })
})

describe('the audit', () => {
  it('has an entry once, however often it is written, the newest first', () => {
    const rows = rowsAt()
    rows.write([], [entry('a', 5), entry('b', 5), entry('c', 4)])
    rows.write([], [entry('a', 5), entry('d', 6)])
    expect(rows.audit().map(({ id }) => id)).toEqual(['d', 'b', 'a', 'c'])
  })

  it('is bounded', () => {
    const database = databaseAt()
    const rows = new RuleChangeRows(database)
    const entries = Array.from({ length: auditCountMax + 5 }, (_, at) => entry(String(at), at))
    rows.write([], entries)
    rows.write([], [entry('last', 9_999)])
    const ids = rows.audit().map(({ id }) => id)
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([auditCountMax, 'last', '6'])
    const count = database.connection.prepare('SELECT count(*) FROM rule_audit').pluck().get()
    expect(count).toBe(auditCountMax)
  })
})

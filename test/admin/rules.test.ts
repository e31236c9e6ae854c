/*
 * Rules that are changed while they run: in force at once, kept over restarts unless the configuration has
 * changed since, shared by the processes on one file, and none of it without an entry in the audit.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AuditEntry } from '../../src/admin/change-routes.js'
import type { Changed } from '../../src/admin/live-changes.js'
import type { RuleStatistics } from '../../src/admin/rule-statistics.js'
import type { RuleOptions } from '../../src/core/rule.js'
import type { GateOptions } from '../../src/gate/options.js'
import { administered, sending, type Administered } from '../support/admin.js'
import { parseExposition, valueOf } from '../support/exposition.js'
import { temporaryFolder, until } from '../support/processes.js'
import { countOf, statuses } from '../support/server.js'
import { collectingLogger } from '../support/units/log.js'

const ip: RuleOptions = { name: 'ip', key: 'ip', limit: 3, window: '1m' }
const rules: RuleOptions[] = [ip, { name: 'global', limit: 100, window: '1h' }]

type ChangedRule = RuleStatistics & Changed

const patch = (asked: Administered, changes: object, rule = 'ip') =>
  asked.read<ChangedRule>(`/rules/${rule}`, sending('PATCH', changes))

const audit = async (asked: Administered) => {
  const { entries } = await asked.read<{ entries: AuditEntry[] }>('/audit')
  return entries.map(({ rule, action, before, after }) => ({ rule, action, before, after }))
}

const passed = async (asked: Administered, count: number) =>
  countOf(await statuses(count, () => asked.ask()), 200)

const limitOf = ({ gate }: Administered, rule = 'ip') => gate.limiter.rule(rule).limit

const newFile = () => join(temporaryFolder(), 'x.db')

describe('a changed rule', () => {
  it('is in force with the answer, its keys keep their usage', async () => {
    const asked = await administered({ rules })
    expect(await passed(asked, 5)).toBe(3)
    const answer = await patch(asked, { limit: 5 })
    expect(answer).toMatchObject({ name: 'ip', limit: 5, windowMs: 60_000, trackedKeys: 1 })
    expect([answer.restarted, answer.totals.over]).toEqual([false, 2])
    expect(await passed(asked, 5)).toBe(2)
  })

  it('begins afresh with another window, and says so', async () => {
    const asked = await administered({ rules })
    expect(await passed(asked, 5)).toBe(3)
    const answer = await patch(asked, { window: '2m' })
    expect(answer).toMatchObject({
      windowMs: 120_000,
      restarted: true,
      trackedKeys: 0,
      topKeys: [],
    })
    expect(await passed(asked, 5)).toBe(3)
  })

  it('can be put in shadow, switched off and on', async () => {
    const asked = await administered({ rules })
    await patch(asked, { mode: 'shadow' })
    expect(await passed(asked, 5)).toBe(5)
    await patch(asked, { mode: 'disabled' })
    expect(await passed(asked, 5)).toBe(5)
    await patch(asked, { mode: 'enforce' })
    expect(await passed(asked, 5)).toBe(0)
  })

  it('is counted by rule, one for each change that changes something', async () => {
    const asked = await administered({ rules })
    const counted = async () => {
      const series = parseExposition((await asked.ask('/metrics')).text)
      const name = 'tallygate_configuration_changes_total'
      return ['ip', 'global'].map((rule) => valueOf(series, name, { rule }))
    }
    expect(await counted()).toEqual([0, 0])
    await patch(asked, { limit: 7, mode: 'shadow' })
    await patch(asked, { limit: 7, window: '60s' })
    await patch(asked, { limit: 8 })
    expect(await counted()).toEqual([2, 0])
  })

  it('leaves an entry for each change, the newest first, with what was before and after', async () => {
    const asked = await administered({ rules })
    await patch(asked, { limit: 7, mode: 'shadow', window: 60_000 })
    await patch(asked, { window: 90_000 })
    await patch(asked, { limit: 7 })
    await patch(asked, { mode: 'disabled' }, 'global')
    const change = (rule: string, before: object, after: object) => ({
      rule,
      action: 'change',
      before,
      after,
    })
    expect(await audit(asked)).toEqual([
      change('global', { mode: 'enforce' }, { mode: 'disabled' }),
      change('ip', { window: '1m' }, { window: '90s' }),
      change('ip', { limit: 3, mode: 'enforce' }, { limit: 7, mode: 'shadow' }),
    ])
  })

  it('of candidates takes those along that follow its window', async () => {
    const candidates = [{ limit: 2 }, { limit: 2, window: '5m' }]
    const asked = await administered({ rules: [{ ...ip, candidates }] })
    const answer = await patch(asked, { window: '2m' })
    expect(answer.candidates.map(({ windowMs }) => windowMs)).toEqual([120_000, 300_000])
    const [status, detail] = await asked.refusal('/rules/ip', sending('PATCH', { window: '5m' }))
    expect([status, detail]).toEqual([400, expect.stringContaining('candidates must differ')])
  })
})

describe('a change that cannot be', () => {
  it.each([
    [
      { limit: -1 },
      "Cannot change rule 'ip': limit must be a whole number from 0 to 4294967295: received -1",
    ],
    [{ limit: '7' }, 'received "7"'],
    [{ limit: null }, 'received null'],
    [{ window: '1y' }, "Cannot change rule 'ip': window must be a span such as 500ms"],
    [{ mode: 'off' }, 'received "off", did you mean disabled?'],
    [{ limit: 9, mode: 'of' }, 'mode must be enforce, shadow or disabled'],
    [{ limt: 9 }, 'unknown field "limt", did you mean limit? (known: limit, window, mode)'],
    [{ algorithm: 'token-bucket' }, 'algorithm stays as configured: only limit, window and mode'],
    [{ name: 'pi' }, 'name stays as configured'],
    ['{"__proto__": {"limit": 9}}', 'unknown field "__proto__"'],
    [{}, 'the body must have one of limit, window, mode: received none of them'],
    [[], 'the body must be a JSON object with any of limit, window, mode: received []'],
    ['null', 'the body must be JSON'],
  ])('%j is refused with what would be right, and nothing is changed', async (body, detail) => {
    const asked = await administered({ rules })
    const [status, said] = await asked.refusal('/rules/ip', sending('PATCH', body))
    expect([status, said]).toEqual([400, expect.stringContaining(detail)])
    expect([limitOf(asked), asked.gate.limiter.rule('ip').mode]).toEqual([3, 'enforce'])
    expect(await audit(asked)).toEqual([])
  })

  it('is refused by type and by name', async () => {
    const asked = await administered({ rules })
    const text = { method: 'PATCH', body: '{"limit":9}', headers: { 'content-type': 'text/plain' } }
    expect((await asked.refusal('/rules/ip', text))[0]).toBe(415)
    expect(await asked.refusal('/rules/ipp', sending('PATCH', { limit: 9 }))).toEqual([
      404,
      'no rule is called "ipp", did you mean ip? (known: ip, global)',
    ])
    expect(limitOf(asked)).toBe(3)
  })

  it('is refused for a limit that is a function, the rest of such a rule is not', async () => {
    const plan = { name: 'plan', key: 'ip' as const, limit: () => 4, window: '1m' }
    const asked = await administered({ rules: [plan] })
    const [status, detail] = await asked.refusal('/rules/plan', sending('PATCH', { limit: 9 }))
    expect([status, detail]).toEqual([409, expect.stringContaining('is a function in code')])
    expect(await patch(asked, { mode: 'shadow' }, 'plan')).toMatchObject({ mode: 'shadow' })
  })
})

describe('over a restart', () => {
  const changedThenClosed = async (database: string, changes: object, options = { rules }) => {
    const asked = await administered({ ...options, database })
    const { persisted } = await patch(asked, changes)
    expect(persisted).toBe(true)
    await asked.gate.close()
  }
  const start = (database: string, given: RuleOptions[] = rules, more: Partial<GateOptions> = {}) =>
    administered({ rules: given, database, ...more } as Parameters<typeof administered>[0])

  it('a change stays in force, and counts as none', async () => {
    const database = newFile()
    await changedThenClosed(database, { limit: 5, window: '2m', mode: 'shadow' })
    const again = await start(database)
    const { limit, windowMs, mode } = again.gate.limiter.rule('ip')
    expect([limit, windowMs, mode]).toEqual([5, 120_000, 'shadow'])
    const series = parseExposition((await again.ask('/metrics')).text)
    expect(valueOf(series, 'tallygate_configuration_changes_total', { rule: 'ip' })).toBe(0)
    expect(await audit(again)).toHaveLength(1)
  })

  it('a field that the configuration has changed since is the configuration’s, and audited', async () => {
    const database = newFile()
    await changedThenClosed(database, { limit: 5, mode: 'shadow' })
    const { logger, lines } = collectingLogger()
    const again = await start(database, [{ ...ip, limit: 4, window: '60s' }], { logger })
    const { limit, mode } = again.gate.limiter.rule('ip')
    expect([limit, mode]).toEqual([4, 'shadow'])
    expect((await audit(again))[0]).toEqual({
      rule: 'ip',
      action: 'file-wins',
      before: { limit: 5 },
      after: { limit: 4 },
    })
    expect(lines.filter(({ message }) => message.includes('the configuration wins'))).toHaveLength(
      1,
    )
    await again.gate.close()
    // Back to what it was before: the change is not.
    const third = await start(database)
    expect([limitOf(third), (await audit(third)).length]).toEqual([3, 2])
  })

  it('a change that became impossible gives way too', async () => {
    const database = newFile()
    await changedThenClosed(database, { limit: 50_000 })
    const { logger } = collectingLogger()
    const again = await start(database, [{ ...ip, algorithm: 'rolling-window' }], { logger })
    expect(limitOf(again)).toBe(3)
    expect((await audit(again))[0]).toMatchObject({
      action: 'file-wins',
      before: { limit: 50_000 },
    })
  })

  it('a change that was taken back is none', async () => {
    const database = newFile()
    await changedThenClosed(database, { limit: 5 })
    await changedThenClosed(database, { limit: 3 })
    const again = await start(database, [{ ...ip, limit: 4 }])
    expect(limitOf(again)).toBe(4)
    expect((await audit(again)).map(({ action }) => action)).toEqual(['change', 'change'])
  })

  it('the change of a rule that is not there waits for it', async () => {
    const database = newFile()
    await changedThenClosed(database, { limit: 5 })
    const without = await start(database, [{ name: 'global', limit: 9, window: '1m' }])
    await without.gate.close()
    expect(limitOf(await start(database))).toBe(5)
  })

  it('without a database nothing stays, and the answer says so', async () => {
    const asked = await administered({ rules })
    expect((await patch(asked, { limit: 5 })).persisted).toBe(false)
    expect(limitOf(await administered({ rules }))).toBe(3)
  })

  it('the last thousand entries are kept', async () => {
    const database = newFile()
    await changedThenClosed(database, { limit: 5 })
    const connection = new Sqlite(database)
    const row = connection.prepare('INSERT INTO rule_audit VALUES (?, ?, ?, ?, ?, ?)')
    connection.transaction(() => {
      for (let index = 0; index < 1_100; index++) {
        row.run(`x${index}`, index, 'ip', 'change', '{}', '{}')
      }
    })()
    connection.close()
    const again = await start(database)
    await patch(again, { limit: 6 })
    expect(await audit(again)).toHaveLength(1_000)
    expect((await audit(again))[0]?.after).toEqual({ limit: 6 })
    const rows = new Sqlite(database, { readonly: true })
    expect(rows.prepare('SELECT count(*) AS count FROM rule_audit').get()).toEqual({ count: 1_000 })
    rows.close()
  })
})

describe('several processes on one file', () => {
  it('see a change within two seconds, and the newest wins', async () => {
    const database = newFile()
    const one = await administered({ rules, database })
    const other = await administered({ rules, database })
    const startedMs = performance.now()
    await patch(one, { limit: 50 })
    await until(async () => limitOf(other) === 50, 'the change', 2_000)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
    const series = parseExposition((await other.ask('/metrics')).text)
    expect(valueOf(series, 'tallygate_configuration_changes_total', { rule: 'ip' })).toBe(1)
    await patch(other, { limit: 60 })
    await until(async () => limitOf(one) === 60, 'the answer', 2_000)
    await patch(one, { limit: 3 })
    await until(async () => limitOf(other) === 3, 'the withdrawal', 2_000)
    expect(await audit(one)).toEqual(await audit(other))
    expect(await audit(one)).toHaveLength(3)
  })

  it('with another configuration keep their own', async () => {
    const database = newFile()
    const one = await administered({ rules, database })
    const other = await administered({ rules: [{ ...ip, limit: 4 }], database })
    await patch(one, { limit: 50, mode: 'shadow' })
    await until(async () => other.gate.limiter.rule('ip').mode === 'shadow', 'the mode', 2_000)
    expect([limitOf(one), limitOf(other)]).toEqual([50, 4])
    expect((await audit(other)).map(({ action }) => action)).toEqual(['change'])
  })
})

describe('a configuration that is rolled out process by process', () => {
  it('leaves those with the old one as they are', async () => {
    const database = newFile()
    const logger = collectingLogger().logger
    const other = { ...ip, name: 'ip2' }
    const before = await administered({ rules: [ip, other], database })
    await patch(before, { limit: 50 })
    const after = await administered({ rules: [{ ...ip, limit: 60 }, other], database, logger })
    expect((await audit(after))[0]).toMatchObject({ action: 'file-wins', after: { limit: 60 } })
    await patch(after, { limit: 7 }, 'ip2')
    await until(async () => limitOf(before, 'ip2') === 7, 'the next change', 2_000)
    expect([limitOf(before), limitOf(after)]).toEqual([50, 60])
  })
})

describe('a database that does not take the change', () => {
  it('delays nothing: it is in force, said to wait, and written when it can be', async () => {
    const database = newFile()
    const { logger, lines } = collectingLogger()
    const asked = await administered({ rules, database, logger })
    const other = new Sqlite(database)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    const startedMs = performance.now()
    const answer = await patch(asked, { limit: 5 })
    expect(performance.now() - startedMs).toBeLessThan(1_500)
    expect([answer.limit, answer.persisted, limitOf(asked)]).toEqual([5, false, 5])
    expect(await audit(asked)).toHaveLength(1)
    expect((await patch(asked, { limit: 6 })).persisted).toBe(false)
    other.exec('COMMIT')
    const rows = other.prepare('SELECT field, value, replaced FROM rule_overrides')
    await until(async () => rows.all().length > 0, 'the row', 5_000)
    expect(rows.all()).toEqual([{ field: 'limit', value: 6, replaced: 3 }])
    await until(async () => (await patch(asked, { limit: 6 })).persisted, 'it to be saved', 2_000)
    expect(await audit(asked)).toHaveLength(2)
    const said = lines.filter(({ message }) => message.startsWith('changes of rules'))
    expect(said.map(({ level }) => level)).toEqual(['error', 'info'])
  })

  it('a newer change of another process is not undone by one that waited', async () => {
    const database = newFile()
    const one = await administered({ rules, database })
    const other = await administered({ rules, database })
    const lock = new Sqlite(database)
    onTestFinished(() => void lock.close())
    lock.exec('BEGIN IMMEDIATE')
    expect((await patch(one, { limit: 50 })).persisted).toBe(false)
    other.clock.advance(10_000)
    expect((await patch(other, { limit: 60 })).persisted).toBe(false)
    lock.exec('COMMIT')
    await until(async () => limitOf(one) === 60 && limitOf(other) === 60, 'the newest', 5_000)
    await until(async () => (await patch(one, { limit: 60 })).persisted, 'it to be saved', 3_000)
    const rows = lock.prepare('SELECT value FROM rule_overrides')
    expect(rows.all()).toEqual([{ value: 60 }])
  })

  it('a file that is removed gets what is in force when it is begun anew', async () => {
    const database = newFile()
    const asked = await administered({ rules, database, logger: collectingLogger().logger })
    await patch(asked, { limit: 5 })
    for (const name of [database, `${database}-wal`, `${database}-shm`])
      rmSync(name, { force: true })
    const kept = async () => {
      const connection = new Sqlite(database, { readonly: true })
      try {
        return connection.prepare('SELECT rule, value FROM rule_overrides').all()
      } finally {
        connection.close()
      }
    }
    await until(async () => (await kept()).length > 0, 'the new file', 5_000)
    expect(await kept()).toEqual([{ rule: 'ip', value: 5 }])
    expect([limitOf(asked), (await audit(asked)).length]).toEqual([5, 1])
    expect(asked.gate.degraded()).toEqual(['database-replaced'])
  })

  it('is written at the end, where it could not be before', async () => {
    const database = newFile()
    const asked = await administered({ rules, database, logger: collectingLogger().logger })
    const lock = new Sqlite(database)
    lock.exec('BEGIN IMMEDIATE')
    await patch(asked, { limit: 5 })
    setTimeout(() => lock.exec('COMMIT'), 300)
    await asked.gate.close()
    expect(lock.prepare('SELECT value FROM rule_overrides').all()).toEqual([{ value: 5 }])
    lock.close()
  })
})

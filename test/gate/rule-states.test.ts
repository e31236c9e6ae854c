/*
 * Rule state that outlives its process, with the database's own thread and a clock set by hand: what is
 * counted is there after a restart, whoever ended how; what no longer fits is not; and one of several saves.
 */
import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { KeyHasher } from '../../src/core/hash.js'
import { KeyMaker } from '../../src/core/key.js'
import { compileRules, type CompiledRule, type RuleOptions } from '../../src/core/rule.js'
import { createGate } from '../../src/gate/gate.js'
import { RuleStates } from '../../src/gate/rule-states.js'
import { SavedRule } from '../../src/gate/saved-rule.js'
import { RuleLimiter, type RuleChanges } from '../../src/limiter/limiter.js'
import { startThread } from '../../src/sqlite/start-thread.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import { WordBuffer } from '../../src/stores/memory/word-buffer.js'
import { manualClock, type ManualClock } from '../../src/testing/index.js'
import { damage } from '../support/files.js'
import { temporaryFolder } from '../support/processes.js'
import { epochMs, ipRule } from '../support/units/limits.js'
import { collectingLogger } from '../support/units/log.js'

const daily = (fields: Partial<RuleOptions> = {}) => ipRule({ limit: 3, window: '1d', ...fields })
const newPath = () => join(temporaryFolder(), 'x.db')
const factsOf = (key: number) => ({ keys: { ip: `key ${key}` } })

/**
 * What a gate makes of its rules and its database, without all else.
 *
 * @param changes of the rule, made while it ran before, and made again at the start.
 */
function begin(
  path: string,
  options: RuleOptions | RuleOptions[],
  clock: ManualClock,
  changes: RuleChanges = {},
) {
  const { logger, lines } = collectingLogger()
  const list = [options].flat()
  const rules = compileRules(list)
  const store = new MemoryStore(rules, clock)
  const states = new RuleStates({ store, clock, logger })
  const wallMs = () => clock.wallMs()
  const { thread, hashSeed } = startThread(path, [], wallMs, (database, seed) =>
    states.restore(database, seed, rules),
  )
  const keys = new KeyMaker(new KeyHasher(Buffer.from(hashSeed, 'base64')))
  const limiter = new RuleLimiter(list, rules, store, null, keys)
  limiter.configure(list[0]?.name ?? '', changes)
  states.start(thread, () => limiter.rules)
  onTestFinished(() => thread.close())
  const use = (key: number, times: number) => {
    for (let time = 0; time < times; time++) void limiter.decide(factsOf(key))
  }
  return {
    limiter,
    states,
    thread,
    use,
    left: (key: number) => (limiter.peek(factsOf(key)) as { remaining: number }).remaining,
    said: (text: string) => lines.filter(({ message }) => message.includes(text)),
    /** Lets so much time pass, and what is due then be done: by the second look nothing more comes. */
    async wait(ms = 5_000) {
      clock.advance(ms)
      await states.tick()
      await states.tick()
    },
    async end() {
      await states.close()
      await thread.close()
    },
  }
}

function sql(path: string, text: string): unknown[] {
  const connection = new Sqlite(path)
  const statement = connection.prepare(text)
  const rows = statement.reader ? statement.all() : [statement.run()]
  connection.close()
  return rows
}

const chunkCount = (path: string) => sql(path, 'SELECT id FROM rule_chunks').length

describe('what a key has used', () => {
  it('is there after the process has ended', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 3)
    first.use(2, 1)
    await first.end()
    const second = begin(path, daily(), clock)
    expect([1, 2, 3].map(second.left)).toEqual([0, 2, 3])
    expect(second.said('rule state was restored')[0]?.fields).toEqual({ rule: 'ip', keys: 2 })
    clock.advance(3_600_000)
    second.use(2, 2)
    await second.end()
    clock.advance(2 * 86_400_000)
    expect(begin(path, daily(), clock).left(1)).toBe(3)
  })

  it('is there after the process was killed some seconds later', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 3)
    await first.wait()
    first.use(2, 3)
    const second = begin(path, daily(), clock)
    expect([1, 2].map(second.left)).toEqual([0, 3])
    await first.wait()
    expect(begin(path, daily(), clock).left(2)).toBe(0)
  })

  it('survives any number of restarts, and leaves no more than it needs', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    for (let turn = 0; turn < 4; turn++) {
      const gate = begin(path, daily({ limit: 100 }), clock)
      for (let key = 0; key < 2_000; key++) gate.use(key, 1)
      await gate.wait()
      for (let key = 0; key < 2_000; key += 7) gate.use(key, 1)
      await gate.end()
    }
    const gate = begin(path, daily({ limit: 100 }), clock)
    expect([0, 1, 7, 1_999].map(gate.left)).toEqual([92, 96, 92, 96])
    expect(chunkCount(path)).toBeLessThan(6)
  })

  it.each<Partial<RuleOptions> & { limit?: number }>([
    { limit: 5 },
    { near: 0.1 },
    { strict: true },
    { maxKeys: 50 },
    { expose: false },
  ])('is kept where the rule has another %o', async (fields) => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 2)
    await first.end()
    const second = begin(path, daily(fields), clock)
    expect(second.left(1)).toBe((fields.limit ?? 3) - 2)
  })

  it.each<Partial<RuleOptions>>([
    { window: '2d' },
    { algorithm: 'fixed-window' },
    { key: 'session' },
    { absent: 'address' },
    { ipv6Prefix: 56 },
    { name: 'other' },
    { persist: false },
  ])('starts afresh where the rule has another %o', async (fields) => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 2)
    await first.end()
    const second = begin(path, daily(fields), clock)
    const facts = { keys: { ip: 'key 1', other: 'key 1' } }
    expect(second.limiter.peek(facts)).toMatchObject({ remaining: 3 })
    await second.end()
  })

  it('is kept by default where the window is an hour or longer, and of candidates never', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const rules = [
      ipRule({ name: 'minute', window: '59m' }),
      ipRule({ name: 'hour', window: '1h', candidates: [{ limit: 1 }] }),
      ipRule({ name: 'short', window: '1m', persist: true }),
      ipRule({ name: 'long', window: '1d', persist: false }),
    ]
    const first = begin(path, rules, clock)
    void first.limiter.decide({ ip: '203.0.113.7' })
    await first.end()
    expect(sql(path, 'SELECT DISTINCT rule FROM rule_chunks ORDER BY 1')).toEqual([
      { rule: 'hour' },
      { rule: 'short' },
    ])
    const { limiter } = begin(path, rules, clock)
    const verdicts = limiter.peek({ ip: '203.0.113.7' }) as { verdicts: { usage: number }[] }
    expect(verdicts.verdicts.map(({ usage }) => usage)).toEqual([0, 1, 1, 0])
  })
})

describe('a rule that is changed while it runs', () => {
  it('is taken up again as it had become, at once', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    for (const file of [daily(), daily({ window: '1m' })]) {
      const first = begin(path, file, clock, { window: '2d' })
      const used = 3 - first.left(1)
      first.use(1, 1)
      await first.end()
      const second = begin(path, file, clock, { window: '2d' })
      expect(second.left(1)).toBe(2 - used)
      second.use(1, 1)
      await second.wait()
      expect(begin(path, file, clock, { window: '2d' }).left(1)).toBe(1 - used)
      clock.advance(5 * 86_400_000)
    }
  })

  it('and starts afresh has nothing of before after a restart', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 3)
    await first.wait()
    first.limiter.configure('ip', { window: '2d' })
    first.limiter.configure('ip', { window: '1d' })
    expect(first.left(1)).toBe(3)
    first.use(2, 1)
    await first.end()
    const second = begin(path, daily(), clock)
    expect([1, 2].map(second.left)).toEqual([3, 2])
  })

  it('is saved as what it has become', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 1)
    await first.wait()
    first.limiter.configure('ip', { algorithm: 'rolling-window', window: '2d' })
    first.use(1, 2)
    await first.wait()
    const second = begin(path, daily({ algorithm: 'rolling-window', window: '2d' }), clock)
    expect(second.left(1)).toBe(1)
    first.limiter.configure('ip', { window: '1m' })
    first.use(1, 1)
    await first.end()
    expect(first.said('cannot be saved')).toEqual([])
  })
})

describe('a round of saving', () => {
  it('waits until no more changes come, but no more than five seconds', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const gate = begin(path, daily({ limit: 100 }), clock)
    const lastId = () => Number(sql(path, 'SELECT max(id) AS id FROM rule_chunks').map(idOf))
    const idOf = (row: unknown) => (row as { id: number | null }).id ?? 0
    const ids: number[] = []
    for (const isUsed of [1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]) {
      gate.use(1, isUsed)
      clock.advance(1_000)
      await gate.states.tick()
      ids.push(lastId())
    }
    expect(ids).toEqual([0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3])
    clock.advance(10_000)
    await gate.states.tick()
    // What was replaced is gone.
    expect(chunkCount(path)).toBe(1)
  })

  it('comes to its end although keys are moved about faster than they are saved', () => {
    const rules = compileRules([daily()])
    const store = new MemoryStore(rules, manualClock(epochMs))
    const [rule] = rules as [CompiledRule]
    const limiter = new RuleLimiter([daily()], rules, store, null)
    for (let key = 0; key < 5_000; key++) void limiter.decide(factsOf(key))
    const saved = new SavedRule(rule, store.chunksOf(rule), false)
    const nothing = { isKept: false, isOwn: false, rowCount: 0, refusal: null }
    saved.begin({ ...nothing, generation: 1 })
    saved.restart(epochMs)
    const buffer = new WordBuffer()
    let pieces = 0
    for (let piece = saved.write(buffer); piece !== null; piece = saved.write(buffer)) {
      saved.saved(piece, 1)
      saved.putBack(piece)
      expect(++pieces).toBeLessThan(50)
    }
    expect(saved.deletable).toEqual([])
    saved.restart(epochMs)
    expect(saved.write(buffer)).not.toBeNull()
  })
})

describe('two processes with one file', () => {
  it('say which of them saves, and the other does once that has ended', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 3)
    await first.wait()
    const second = begin(path, daily(), clock)
    expect(first.said('the state of these rules is saved')).toHaveLength(1)
    expect(second.said('this one does not persist it')).toMatchObject([
      { level: 'warn', fields: { rules: ['ip'], heldBy: { pid: process.pid } } },
    ])
    // It begins with what the other has saved by then.
    expect(second.left(1)).toBe(0)
    second.use(2, 1)
    first.use(2, 2)
    first.use(3, 2)
    for (let turn = 0; turn < 3; turn++) {
      await second.wait()
      await first.wait(0)
    }
    expect(second.said('persist')).toHaveLength(1)
    await first.end()
    await second.wait()
    expect(second.said('the state of these rules is saved')).toHaveLength(1)
    // Of each key the count that is higher.
    expect([1, 2, 3].map(second.left)).toEqual([0, 1, 1])
    await second.end()
    expect([1, 2, 3].map(begin(path, daily(), clock).left)).toEqual([0, 1, 1])
  })

  it('of which the one that saves hangs: the other takes over, and that one says so', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 3)
    await first.wait()
    const second = begin(path, daily(), clock)
    clock.advance(20_000)
    await second.wait()
    second.use(2, 3)
    await second.wait()
    first.use(3, 3)
    for (let turn = 0; turn < 3; turn++) {
      await first.wait()
      await second.wait(0)
    }
    expect(first.said('this one does not persist it')).toHaveLength(1)
    await first.end()
    await second.wait()
    expect([1, 2, 3].map(begin(path, daily(), clock).left)).toEqual([0, 0, 3])
  })

  it('one of which ends while it takes over leave everything as it was', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const rule = daily({ limit: 10 })
    const first = begin(path, rule, clock)
    const second = begin(path, rule, clock)
    for (let key = 0; key < 5_000; key++) first.use(key, 1)
    await first.end()
    clock.advance(5_000)
    const taking = second.states.tick()
    await second.states.close()
    await taking
    const third = begin(path, rule, clock)
    expect(third.said('rule state was restored')[0]?.fields).toEqual({ rule: 'ip', keys: 5_000 })
  })
})

describe('a database that', () => {
  it('is locked is tried again, and what was counted meanwhile is saved', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const gate = begin(path, daily(), clock)
    gate.use(1, 1)
    await gate.wait()
    const other = new Sqlite(path)
    other.exec('BEGIN IMMEDIATE')
    gate.use(1, 1)
    for (let turn = 0; turn < 3; turn++) await gate.wait()
    expect(gate.said('rule state cannot be saved')).toMatchObject([{ level: 'error' }])
    other.exec('COMMIT')
    other.close()
    await gate.wait()
    expect(gate.said('rule state is saved again')).toHaveLength(1)
    expect(begin(path, daily(), clock).left(1)).toBe(1)
  })

  it('is locked at the start is read once it is not', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    first.use(1, 3)
    await first.end()
    const { logger } = collectingLogger()
    const rules = compileRules([daily()])
    const store = new MemoryStore(rules, clock)
    const states = new RuleStates({ store, clock, logger })
    const other = new Sqlite(path)
    const { thread } = startThread(
      path,
      [],
      () => 0,
      (database, seed) => {
        other.exec('BEGIN IMMEDIATE')
        expect(() => states.restore(database, seed, rules)).not.toThrow()
        other.close()
      },
    )
    states.start(thread, () => rules)
    await states.tick()
    expect(store.keyCounts(rules[0] as CompiledRule).tracked).toBe(1)
    await states.close()
    await thread.close()
  })

  it('is not sure to have it gets all of it again, and gives back nothing that was let go', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const gate = begin(path, daily(), clock)
    gate.use(1, 3)
    gate.use(2, 3)
    await gate.wait()
    void gate.limiter.reset('ip', factsOf(1))
    sql(path, 'UPDATE rule_states SET generation = generation + 1')
    await gate.wait()
    await gate.wait()
    await gate.end()
    const second = begin(path, daily(), clock)
    expect([1, 2].map(second.left)).toEqual([3, 0])
  })

  it('vanishes gets all of it again, under the seed that the process has', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const gate = begin(path, daily(), clock)
    gate.use(1, 3)
    await gate.wait()
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true })
    gate.use(2, 2)
    await gate.wait()
    await gate.wait()
    expect(existsSync(path)).toBe(true)
    await gate.end()
    const second = begin(path, daily(), clock)
    expect([1, 2].map(second.left)).toEqual([0, 1])
  })

  it('another process has begun anew with another seed takes nothing, and the log says so', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const gate = begin(path, daily(), clock)
    gate.use(1, 3)
    await gate.wait()
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true })
    await begin(path, daily(), clock).end()
    await gate.wait()
    await gate.wait()
    expect(gate.said('not persisted until the restart')).toHaveLength(1)
    expect(begin(path, daily(), clock).left(1)).toBe(3)
  })

  it('has damaged chunks is read without them, with one warning', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const first = begin(path, daily(), clock)
    for (let key = 0; key < 2_000; key++) first.use(key, 3)
    await first.end()
    sql(path, 'UPDATE rule_chunks SET data = randomblob(length(data)) WHERE chunk IN (0, 2)')
    const { said, limiter } = begin(path, daily(), clock)
    const damaged = said('rule state was damaged')
    expect(damaged).toMatchObject([{ level: 'warn', fields: { rule: 'ip', chunks: 2 } }])
    const { tracked } = limiter.keyCounts(limiter.rule('ip'))
    expect(tracked).toBeGreaterThan(500)
    expect(tracked).toBeLessThan(1_500)
  })
})

describe('a file that is damaged where rule state lies', () => {
  it('is moved aside at the start; what was read before counts, by the same hashes', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const rules = [daily({ name: 'ip' }), daily({ name: 'other', limit: 100 })]
    const first = begin(path, rules, clock)
    void first.limiter.decide({ ip: '203.0.113.7' }, { cost: 2 })
    await first.wait()
    for (let key = 0; key < 20_000; key++) void first.limiter.decide({ keys: { other: `${key}` } })
    await first.end()
    const seed = sql(path, "SELECT value FROM meta WHERE key = 'hash_seed'")
    const { size } = statSync(path)
    damage(path, 4_096 * Math.floor((0.7 * size) / 4_096))
    const second = begin(path, rules, clock)
    expect(second.thread.changes.movedAside).toContain('.damaged-')
    expect(sql(path, "SELECT value FROM meta WHERE key = 'hash_seed'")).toEqual(seed)
    const remaining = () => second.limiter.peek({ ip: '203.0.113.7' }) as { remaining: number }
    expect(remaining()).toMatchObject({ rule: 'ip', remaining: 1 })
    await second.end()
    const third = begin(path, rules, clock)
    expect(third.limiter.peek({ ip: '203.0.113.7' })).toMatchObject({ remaining: 1 })
  })
})

describe('a gate', () => {
  it('hashes a key the same after a restart', () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const keyOf = (hashSeed: string) => {
      const key = new KeyMaker(new KeyHasher(Buffer.from(hashSeed, 'base64'))).of(3, 'somebody')
      return [key.low, key.high]
    }
    const keys = [1, 2].map(() => {
      const gate = createGate({
        rules: [daily()],
        database: path,
        clock,
        logger: collectingLogger().logger,
      })
      onTestFinished(() => gate.close())
      return keyOf(gate.database?.hashSeed ?? '')
    })
    expect(keys[0]).toEqual(keys[1])
  })

  it('says once that persist takes a database', async () => {
    const { logger, lines } = collectingLogger()
    const named = (name: string, fields: Partial<RuleOptions>) => ipRule({ name, ...fields })
    const rules = [named('a', { persist: true }), named('b', { window: '1d' }), named('c', {})]
    await createGate({ rules, logger }).close()
    expect(lines).toMatchObject([{ level: 'warn', fields: { rules: ['a'] } }])
  })

  it('saves by itself, and when it is closed', async () => {
    const [path, clock] = [newPath(), manualClock(epochMs)]
    const begun = () =>
      createGate({ rules: [daily()], database: path, clock, logger: collectingLogger().logger })
    const first = begun()
    void first.limiter.decide(factsOf(1), { cost: 2 })
    await first.close()
    const second = begun()
    expect(second.limiter.peek(factsOf(1))).toMatchObject({ remaining: 1 })
    await second.close()
    await second.close()
  })
})

/*
 * Rule state in SQLite: one process at a time writes a rule's, whoever that is; what is read is what was
 * written, the newest first; and what is of another rule, another seed, or damaged is passed over.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase, type OpenDatabase } from '../../src/sqlite/database.js'
import { hashSeedOf } from '../../src/sqlite/hash-seed.js'
import { DatabaseKeeper } from '../../src/sqlite/keeper.js'
import { leaseMs, newHolder, type LeaseHolder } from '../../src/sqlite/lease.js'
import {
  deletedCountMax,
  RuleStateRows,
  type ChunkPiece,
  type RuleHead,
} from '../../src/sqlite/rule-states.js'
import { temporaryFolder } from '../support/processes.js'
import { distUrl } from '../support/units/dist.js'
import { makeFirstVersion } from '../support/units/first-version.js'

const nowMs = 1_760_000_000_000
const head: RuleHead = {
  rule: 'ip',
  key: 'ip',
  absent: 'skip',
  ipv6Prefix: 64,
  windowMs: 86_400_000,
  algorithm: 'sliding-window',
}

function opened(path = join(temporaryFolder(), 'x.db')) {
  const database = openDatabase(path, nowMs)
  onTestFinished(() => database.close())
  return { database, path, rows: new RuleStateRows(database, hashSeedOf(database)) }
}

const when = (atMs = nowMs, more: { isAfresh?: boolean; isFirst?: boolean } = {}) => ({
  isAfresh: false,
  isFirst: false,
  nowMs: atMs,
  ...more,
})

/** Chunks of one word each, by their numbers. */
function pieceOf(chunks: readonly number[], words: readonly number[]): ChunkPiece {
  return {
    chunks,
    ends: chunks.map((_, index) => index + 1),
    rowCounts: chunks.map(() => 10),
    words: new Uint32Array(new SharedArrayBuffer(4 * words.length)).map((_, at) => words[at] ?? 0),
  }
}

const readAll = (rows: RuleStateRows, atOnce = 100) => {
  const words: number[][] = []
  let damagedCount = 0
  for (let fromId: number | undefined, isFirst = true; isFirst || fromId !== undefined;) {
    const piece = rows.read('ip', atOnce, fromId)
    words.push(...piece.chunks.map((chunk) => [...chunk]))
    damagedCount += piece.damagedCount
    fromId = piece.nextId
    isFirst = false
  }
  return { words, damagedCount }
}

function held(rows: RuleStateRows, holder: LeaseHolder, of = head, more: object = {}) {
  const acquired = rows.acquire(holder, of, { ...when(), ...more })
  if (acquired.generation === null) throw new Error('it was refused')
  return { holder: holder.id, rule: of.rule, generation: acquired.generation }
}

describe('the lease on a rule', () => {
  const elsewhere = (fields: Partial<LeaseHolder> = {}): LeaseHolder => ({
    ...newHolder(),
    host: 'elsewhere',
    pid: 77,
    ...fields,
  })

  it('is had by one, who is named to all others', () => {
    const { rows } = opened()
    const [one, other] = [elsewhere(), newHolder()]
    expect(rows.acquire(one, head, when())).toMatchObject({ generation: 1, refusal: null })
    expect(rows.acquire(other, head, when())).toMatchObject({
      generation: null,
      refusal: { heldBy: { host: 'elsewhere', pid: 77 } },
    })
    expect(rows.acquire(one, head, when())).toMatchObject({ generation: 2 })
    expect(rows.acquire(other, { ...head, rule: 'global' }, when()).generation).toBe(1)
  })

  it('runs out unless it is renewed, by any saving too', () => {
    const { rows } = opened()
    const [one, other] = [elsewhere(), newHolder()]
    const by = held(rows, one)
    expect(rows.renew(one.id, nowMs + leaseMs - 1)).toEqual(['ip'])
    expect(rows.acquire(other, head, when(nowMs + leaseMs)).generation).toBeNull()
    rows.save(by, pieceOf([0], [1]), [], nowMs + 2 * leaseMs - 2)
    expect(rows.acquire(other, head, when(nowMs + 3 * leaseMs - 3)).generation).toBeNull()
    expect(rows.acquire(other, head, when(nowMs + 3 * leaseMs - 2)).generation).toBe(2)
    expect(rows.renew(one.id, nowMs + 3 * leaseMs)).toEqual([])
  })

  it('can be had at once when it was given back', () => {
    const { rows } = opened()
    const one = elsewhere()
    held(rows, one)
    rows.release(one.id)
    expect(rows.acquire(newHolder(), head, when()).generation).toBe(2)
  })

  it('can be had at once when its process is dead, if that was on this host', async () => {
    const { rows } = opened()
    const child = spawn(process.execPath, ['--eval', '0'])
    await once(child, 'exit')
    const pid = child.pid ?? 0
    held(rows, { ...newHolder(), pid })
    expect(rows.acquire(newHolder(), head, when()).generation).toBe(2)
    const other = { ...head, rule: 'other' }
    held(rows, elsewhere({ pid }), other)
    expect(rows.acquire(newHolder(), other, when()).generation).toBeNull()
  })

  it('of one that had the same process number is free to who has only begun', () => {
    const { rows } = opened()
    held(rows, { ...newHolder(), processStartMs: 1 })
    expect(rows.acquire(newHolder(), head, when()).generation).toBeNull()
    expect(rows.acquire(newHolder(), head, when(nowMs, { isFirst: true })).generation).toBe(2)
    // Another in this very process is alive.
    expect(rows.acquire(newHolder(), head, when(nowMs, { isFirst: true })).generation).toBeNull()
  })

  it('does not outlast a clock that was set back', () => {
    const { rows } = opened()
    held(rows, elsewhere())
    expect(rows.acquire(newHolder(), head, when(nowMs - leaseMs)).generation).toBeNull()
    expect(rows.acquire(newHolder(), head, when(nowMs - 86_400_000)).generation).toBe(2)
  })

  it('is had by one of two processes, and by the other once that is killed', async () => {
    const { rows, path } = opened()
    const source = `
      import { openDatabase } from '${distUrl('sqlite/database.js')}'
      import { hashSeedOf } from '${distUrl('sqlite/hash-seed.js')}'
      import { newHolder } from '${distUrl('sqlite/lease.js')}'
      import { RuleStateRows } from '${distUrl('sqlite/rule-states.js')}'
      const database = openDatabase(${JSON.stringify(path)}, 0)
      const rows = new RuleStateRows(database, hashSeedOf(database))
      const when = { isAfresh: false, isFirst: true, nowMs: ${nowMs} }
      console.log(rows.acquire(newHolder(), ${JSON.stringify(head)}, when).generation)
      setInterval(() => undefined, 1_000)`
    const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '--eval', source])
    onTestFinished(() => void child.kill('SIGKILL'))
    const [text] = (await once(child.stdout ?? child, 'data')) as [Buffer]
    expect(text.toString()).toBe('1\n')
    const me = newHolder()
    expect(rows.acquire(me, head, when(nowMs, { isFirst: true }))).toMatchObject({
      generation: null,
      refusal: { heldBy: { pid: child.pid, host: me.host } },
    })
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(rows.acquire(me, head, when()).generation).toBe(2)
  })
})

describe('chunks', () => {
  it('are read as they were saved, the newest first, in pieces of any size', () => {
    const { rows } = opened()
    const by = held(rows, newHolder())
    expect(rows.save(by, pieceOf([0, 1, 2], [10, 11, 12]), [], nowMs)).toBe(1)
    expect(rows.save(by, pieceOf([1], [21]), [], nowMs)).toBe(4)
    for (const atOnce of [1, 2, 3, 4, 5]) {
      expect(readAll(rows, atOnce)).toEqual({ words: [[21], [12], [11], [10]], damagedCount: 0 })
    }
  })

  it('are saved by who holds the rule alone, under its latest generation', () => {
    const { rows } = opened()
    const [one, other] = [newHolder(), newHolder()]
    const by = held(rows, one)
    const byOther = { ...by, holder: other.id }
    expect(rows.save(byOther, pieceOf([0], [1]), [], nowMs)).toBeNull()
    expect(rows.tidy(byOther, [], true)).toBe('lost')
    const again = held(rows, one)
    expect(rows.save(by, pieceOf([0], [1]), [], nowMs)).toBeNull()
    expect(rows.save(again, pieceOf([0], [1]), [], nowMs)).toBe(1)
    rows.release(one.id)
    expect(rows.save(again, pieceOf([0], [1]), [], nowMs)).toBeNull()
    expect(rows.tidy(again, [1], true)).toBe('lost')
    expect(readAll(rows).words).toEqual([[1]])
  })

  it('go when they are said to be of no use, and with them some of earlier generations', () => {
    const { rows } = opened()
    const holder = newHolder()
    const count = 2 * deletedCountMax + 1
    const numbers = Array.from({ length: count }, (_, n) => n)
    rows.save(held(rows, holder), pieceOf(numbers, numbers), [], nowMs)
    const by = held(rows, holder)
    const firstId = rows.save(by, pieceOf([0, 1], [7, 8]), [], nowMs) ?? 0
    expect(readAll(rows).words).toHaveLength(count + 2)
    expect(rows.tidy(by, [firstId], true)).toBe('more')
    expect(rows.tidy(by, [], false)).toBe('done')
    expect(rows.tidy(by, [], true)).toBe('more')
    expect(readAll(rows).words).toHaveLength(2)
    expect(rows.tidy(by, [], true)).toBe('done')
    expect(readAll(rows).words).toEqual([[8]])
  })

  it('go with what is saved, or stay where that is refused', () => {
    const { rows } = opened()
    const by = held(rows, newHolder())
    const firstId = rows.save(by, pieceOf([0, 1], [1, 2]), [], nowMs) ?? 0
    const byOther = { ...by, holder: 'another' }
    expect(rows.save(byOther, pieceOf([0], [3]), [firstId], nowMs)).toBeNull()
    expect(readAll(rows).words).toEqual([[2], [1]])
    expect(rows.save(by, pieceOf([0], [3]), [firstId], nowMs)).toBe(firstId + 2)
    expect(readAll(rows).words).toEqual([[3], [2]])
  })

  it('are kept by a new generation until it is saved as a whole, and counted once', () => {
    const { rows } = opened()
    const holder = newHolder()
    rows.save(held(rows, holder), pieceOf([0, 1, 2, 0], [1, 2, 3, 4]), [], nowMs)
    const acquired = rows.acquire(holder, head, when())
    expect(acquired).toMatchObject({ isKept: true, isOwn: true, rowCount: 30, generation: 2 })
    const by = { holder: holder.id, rule: 'ip', generation: 2 }
    rows.save(by, pieceOf([0], [9]), [], nowMs)
    expect(rows.acquire(holder, head, when())).toMatchObject({ isKept: true, rowCount: 30 })
    expect(readAll(rows).words).toEqual([[9], [4], [3], [2], [1]])
  })

  it.each<Partial<RuleHead>>([
    { key: 'session' },
    { absent: 'address' },
    { ipv6Prefix: 56 },
    { windowMs: 3_600_000 },
    { algorithm: 'fixed-window' },
  ])('of a rule that had another %o are not read, and deleted', (fields) => {
    const { rows } = opened()
    const holder = newHolder()
    rows.save(held(rows, holder), pieceOf([0], [1]), [], nowMs)
    const other = { ...head, ...fields }
    expect(rows.acquire(newHolder(), other, when())).toMatchObject({ isKept: false, rowCount: 0 })
    expect(readAll(rows).words).toHaveLength(1)
    const by = held(rows, holder, other)
    expect(readAll(rows).words).toEqual([])
    // Neither when the rule is again as it was.
    expect(rows.acquire(holder, head, when())).toMatchObject({ isKept: false, generation: 3 })
    expect(rows.tidy({ ...by, generation: 3 }, [], true)).toBe('done')
  })

  it('of a rule that has started afresh are not read', () => {
    const { rows } = opened()
    const holder = newHolder()
    rows.save(held(rows, holder), pieceOf([0], [1]), [], nowMs)
    const by = held(rows, holder, head, { isAfresh: true })
    expect(readAll(rows).words).toEqual([])
    rows.save(by, pieceOf([0], [2]), [], nowMs)
    expect(rows.acquire(holder, head, when())).toMatchObject({ isKept: true, rowCount: 10 })
    expect(readAll(rows).words).toEqual([[2]])
  })

  it.each([
    ['one bit of them', "data = x'01000001'"],
    ['their length', 'data = substr(data, 1, 3)'],
    ['all of them', 'data = zeroblob(4)'],
    ['what they are', "data = 'text'"],
    ['their checksum', 'checksum = checksum + 1'],
  ])('are passed over where damage has changed %s', (_, change) => {
    const { rows, database } = opened()
    rows.save(held(rows, newHolder()), pieceOf([0, 1, 2], [1, 2, 3]), [], nowMs)
    database.connection.exec(`UPDATE rule_chunks SET ${change} WHERE chunk = 1`)
    expect(readAll(rows, 1)).toEqual({ words: [[3], [1]], damagedCount: 1 })
  })

  it('of a rule that nobody has had for a month and two of its windows are deleted', () => {
    const { rows, database } = opened()
    const numbers = Array.from({ length: deletedCountMax + 1 }, (_, n) => n)
    const by = held(rows, newHolder())
    rows.save(by, pieceOf(numbers, numbers), [], nowMs)
    held(rows, newHolder(), { ...head, rule: 'year', windowMs: 365 * 86_400_000 })
    const laterMs = nowMs + leaseMs + 32 * 86_400_000
    expect(rows.prune(laterMs)).toBe(false)
    expect(rows.prune(laterMs + 1)).toBe(true)
    expect(rows.prune(laterMs + 1)).toBe(true)
    expect(rows.prune(laterMs + 1)).toBe(false)
    const left = database.connection.prepare('SELECT rule FROM rule_states').pluck().all()
    expect(left).toEqual(['year'])
    expect(readAll(rows).words).toEqual([])
  })
})

const metaSeed = ({ connection }: OpenDatabase): unknown =>
  connection.prepare("SELECT value FROM meta WHERE key = 'hash_seed'").pluck().get()

describe('the seed of hashes', () => {
  it('stays with the file, and is another in another file', () => {
    const { database, path } = opened()
    const seed = hashSeedOf(database)
    expect(Buffer.from(seed, 'base64')).toHaveLength(544)
    expect(hashSeedOf(opened(path).database)).toBe(seed)
    expect(hashSeedOf(opened().database)).not.toBe(seed)
  })

  it('is added to a file that had none', () => {
    const path = join(temporaryFolder(), 'x.db')
    makeFirstVersion(path)
    const seed = metaSeed(opened(path).database)
    expect(seed).toHaveLength(728)
    expect(metaSeed(opened(path).database)).toBe(seed)
  })

  it('that is not the process’s own makes the file’s states another’s', () => {
    const { database, rows, path } = opened()
    const holder = newHolder()
    const by = held(rows, holder)
    rows.save(by, pieceOf([0], [1]), [], nowMs)
    for (const seed of ['AAAA', '', hashSeedOf(opened().database)]) {
      const foreign = new RuleStateRows(opened(path).database, seed)
      expect(foreign.acquire(holder, head, when())).toEqual({
        isKept: false,
        isOwn: false,
        rowCount: 0,
        generation: null,
        refusal: { heldBy: null },
      })
      expect(foreign.renew(holder.id, nowMs)).toEqual([])
      expect(foreign.save(by, pieceOf([0], [2]), [], nowMs)).toBeNull()
      expect(foreign.tidy(by, [], true)).toBe('lost')
    }
    database.connection.exec("UPDATE meta SET value = 'short' WHERE key = 'hash_seed'")
    expect(hashSeedOf(database)).not.toBe(hashSeedOf(database))
    expect(readAll(rows).words).toEqual([[1]])
  })

  it('of the process is what a file has that is begun under it', () => {
    const path = join(temporaryFolder(), 'x.db')
    const hashSeed = Buffer.alloc(544, 'mine').toString('base64')
    const changes = { replacedCount: 0, movedAside: null, id: '' }
    const keeper = new DatabaseKeeper(path, { ruleNames: ['ip'], hashSeed }, changes)
    onTestFinished(() => keeper.close())
    const acquire = () =>
      keeper.call('ruleStates', 'acquire', [newHolder(), head, when()], nowMs).generation
    expect(acquire()).toBe(1)
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name)
    expect(acquire()).toBe(1)
    expect(metaSeed(opened(path).database)).toBe(hashSeed)
  })
})

/*
 * The database in a thread of its own: what is asked is answered, in order, or rejected; also where the
 * thread dies, really dies. What keeps a process alive is seen in processes.
 */
import { mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { DatabaseFault, ThreadDied } from '../../src/sqlite/database-thread.js'
import type { Batch } from '../../src/sqlite/tally-rows.js'
import { damage } from '../support/files.js'
import { temporaryFolder } from '../support/processes.js'
import { distUrl, runModule } from '../support/units/dist.js'
import { requestsIn, writerOf } from '../support/units/keepers.js'
import { deltaOf, mondayMs } from '../support/units/tallies.js'
import { idle, threadAt } from '../support/units/threads.js'

/** Every thread that was started, to be terminated in earnest. */
const started = vi.hoisted((): Worker[] => [])
vi.mock('node:worker_threads', async (original) => {
  const threads = await original<typeof import('node:worker_threads')>()
  class Noted extends threads.Worker {
    constructor(...given: ConstructorParameters<typeof threads.Worker>) {
      super(...given)
      started.push(this)
    }
  }
  return { ...threads, Worker: Noted }
})
beforeEach(() => void started.splice(0))

const bench = () => {
  const path = join(temporaryFolder(), 'x.db')
  return { path, ...threadAt(path) }
}

const kill = async () => {
  await started.at(-1)?.terminate()
}

/** Holds the write lock, so that whoever asks for it waits. */
function lock(path: string): () => void {
  const other = new Sqlite(path)
  onTestFinished(() => void other.close())
  other.exec('BEGIN IMMEDIATE')
  return () => void other.exec('COMMIT')
}

describe('the thread of a database', () => {
  it('answers in the order in which it was asked', async () => {
    const { thread } = bench()
    const answered: number[] = []
    const asked = Array.from({ length: 200 }, async (_, index) => {
      const call =
        index % 2 === 0
          ? thread.ask('sessions', 'set', 'a', `${index}`, mondayMs + 1)
          : thread.ask('sessions', 'get', 'a', mondayMs)
      const answer = await call
      answered.push(index)
      return answer
    })
    expect(thread.waitingCount).toBe(200)
    expect(await Promise.all(asked)).toEqual(
      Array.from({ length: 200 }, (_, index) =>
        index % 2 === 0 ? undefined : { data: `${index - 1}`, expiresMs: mondayMs + 1 },
      ),
    )
    expect(answered).toEqual(Array.from({ length: 200 }, (_, index) => index))
    expect(thread.waitingCount).toBe(0)
  })

  it('passes on what SQLite says, with its code, and goes on', async () => {
    const { thread, path } = bench()
    await idle(thread)
    const letGo = lock(path)
    const set = () => thread.ask('sessions', 'set', 'a', '1', mondayMs + 1)
    const fault: unknown = await set().catch((error: unknown) => error)
    expect(fault).toBeInstanceOf(DatabaseFault)
    expect(fault).toMatchObject({
      name: 'DatabaseFault',
      code: 'SQLITE_BUSY',
      message: 'database is locked',
    })
    letGo()
    await set()
    expect(await thread.ask('sessions', 'count', mondayMs)).toBe(1)
  })

  it('passes on the code of what keeps the file from being opened', async () => {
    const { thread, path } = bench()
    await idle(thread)
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending)
    mkdirSync(path)
    const count = () => thread.ask('sessions', 'count', 0)
    await expect(count()).rejects.toMatchObject({ code: 'SQLITE_CANTOPEN' })
    rmdirSync(path)
    expect(await count()).toBe(0)
    expect(thread.changes.replacedCount).toBe(1)
  })

  it('is patient once it is told to be: a lock is waited for, and it goes on being so', async () => {
    const { thread, path } = bench()
    await idle(thread)
    thread.bePatient()
    const letGo = lock(path)
    setTimeout(letGo, 200)
    await thread.ask('sessions', 'set', 'a', '1', mondayMs + 1)
    await kill()
    const letGoAgain = lock(path)
    setTimeout(letGoAgain, 200)
    await thread.ask('sessions', 'set', 'b', '1', mondayMs + 1)
    expect(await thread.ask('sessions', 'count', mondayMs)).toBe(2)
  })

  it('takes what cannot be sent as no call at all', async () => {
    const { thread } = bench()
    const unsendable = (() => 1) as unknown as string
    await expect(thread.ask('sessions', 'set', 'a', unsendable, 1)).rejects.toThrow('cloned')
    expect(thread.waitingCount).toBe(0)
    await idle(thread)
  })

  it('offers the methods of a service as functions', async () => {
    const { thread } = bench()
    const { set, get } = thread.service('sessions', ['set', 'get'])
    await set('a', '1', mondayMs + 1)
    expect(await get('a', mondayMs)).toMatchObject({ data: '1' })
  })
})

describe('closing', () => {
  it('waits for what was asked before, may be asked for twice, and rejects what comes later', async () => {
    const { thread, path } = bench()
    const sets = Array.from({ length: 50 }, (_, index) =>
      thread.ask('sessions', 'set', `s${index}`, '1', mondayMs + 1),
    )
    const closings = [thread.close(), thread.close()]
    const late = thread.ask('sessions', 'count', 0)
    await expect(late).rejects.toThrow(ThreadDied)
    await expect(late).rejects.toThrow('the database is closed')
    await Promise.all([...sets, ...closings])
    await thread.close()
    const connection = new Sqlite(path, { readonly: true })
    expect(connection.prepare('SELECT count(*) FROM sessions').pluck().get()).toBe(50)
    connection.close()
    expect(started).toHaveLength(1)
  })

  it('a thread that has died is at once', async () => {
    const { thread } = bench()
    await idle(thread)
    await kill()
    await thread.close()
    await expect(thread.ask('sessions', 'count', 0)).rejects.toThrow(ThreadDied)
    expect(started).toHaveLength(1)
  })

  it('a thread that dies meanwhile ends all the same', async () => {
    const { thread } = bench()
    await idle(thread)
    const closing = thread.close()
    await kill()
    await closing
    expect(thread.waitingCount).toBe(0)
  })
})

describe('a thread that dies', () => {
  it('rejects what was waiting, and the next call starts another', async () => {
    const { thread, path } = bench()
    await idle(thread)
    const letGo = lock(path)
    thread.bePatient()
    const waiting = [
      thread.ask('sessions', 'set', 'a', '1', mondayMs + 1),
      thread.ask('sessions', 'get', 'a', mondayMs),
    ]
    const outcomes = Promise.allSettled(waiting)
    letGo()
    await kill()
    const reasons = (await outcomes).flatMap((each) =>
      each.status === 'rejected' ? [each.reason as unknown] : [],
    )
    expect(reasons.filter((reason) => !(reason instanceof ThreadDied))).toEqual([])
    expect(thread.waitingCount).toBe(0)
    await thread.ask('sessions', 'set', 'b', '2', mondayMs + 1)
    expect(await thread.ask('sessions', 'get', 'b', mondayMs)).toMatchObject({ data: '2' })
    expect(started).toHaveLength(2)
  })

  it('again and again is started again and again', async () => {
    const { thread } = bench()
    for (let turn = 1; turn <= 3; turn++) {
      await thread.ask('sessions', 'set', `s${turn}`, '1', mondayMs + 1)
      await kill()
      const asked = thread.ask('sessions', 'count', mondayMs).catch(() => null)
      expect([turn, null]).toContain(await asked)
    }
    expect(await thread.ask('sessions', 'count', mondayMs)).toBe(3)
  })

  it('takes with it nothing that is known of the file', async () => {
    const { thread, path } = bench()
    await idle(thread)
    const connection = new Sqlite(path)
    connection.exec(`INSERT INTO meta VALUES ('x', 'y')`)
    connection.pragma('wal_checkpoint(TRUNCATE)')
    connection.close()
    damage(path)
    await idle(thread)
    const { changes } = thread
    expect(changes).toMatchObject({ replacedCount: 1, movedAside: expect.any(String) as unknown })
    await kill()
    expect(thread.changes).toEqual(changes)
    await idle(thread)
    expect(thread.changes).toEqual(changes)
    await kill()
    for (const ending of ['', '-wal', '-shm']) rmSync(path + ending, { force: true })
    await idle(thread)
    expect(thread.changes).toMatchObject({ replacedCount: 2, movedAside: changes.movedAside })
  })
})

describe('several threads on one file', () => {
  it('that find the same damage move it once, and all go on in the new file', async () => {
    for (let turn = 0; turn < 5; turn++) {
      const { path, thread } = bench()
      const threads = [thread, ...Array.from({ length: 3 }, () => threadAt(path).thread)]
      // A crowd of writers on a busy machine: none of this is about locks.
      for (const each of threads) each.bePatient()
      const batches = threads.map((_, index) => writerOf(`writer-${index}`))
      const addAll = () =>
        Promise.all(
          threads.map((each, index) => {
            const batch = batches[index]?.(deltaOf('week', mondayMs)) as Batch
            return each.ask('tallies', 'exchange', batch, [], mondayMs)
          }),
        )
      await addAll()
      const connection = new Sqlite(path)
      connection.exec(`INSERT INTO meta VALUES ('x', 'y')`)
      connection.pragma('wal_checkpoint(TRUNCATE)')
      connection.close()
      damage(path)
      await addAll()
      await addAll()
      expect(requestsIn(path)).toBe(8)
      const changes = threads.map((each) => each.changes)
      expect(new Set(changes.map(({ id }) => id)).size).toBe(1)
      expect(changes.map(({ replacedCount }) => replacedCount)).toEqual([1, 1, 1, 1])
      expect(changes.filter(({ movedAside }) => movedAside !== null)).toHaveLength(1)
      const files = readdirSync(dirname(path)).filter((name) => /damaged-\w+(-\d)?$/.test(name))
      expect(files).toHaveLength(1)
    }
  })
})

describe('a process', () => {
  const start = `
    import { startThread } from '${distUrl('sqlite/start-thread.js')}'
    const [path] = process.argv.slice(-1)
    const { thread } = startThread(path, [], () => 1, () => null)`

  it.each([
    ['ends while its database is idle', '', ''],
    [
      'ends after calls were answered',
      `console.log(await thread.ask('sessions', 'count', 0))`,
      '0\n',
    ],
    [
      'ends not before what it has asked is answered',
      `for (let n = 0; n < 100; n++) void thread.ask('sessions', 'set', 's' + n, '1', 9)
       void thread.ask('sessions', 'count', 0).then(console.log)`,
      '100\n',
    ],
    [
      'ends not before its database is closed',
      `for (let n = 0; n < 100; n++) void thread.ask('sessions', 'set', 's' + n, '1', 9)
       void thread.close().then(() => console.log('closed'))`,
      'closed\n',
    ],
    [
      'ends with what is left of a call that was lost',
      `void thread.ask('sessions', 'set', 'a', '1', 9)
       process.exitCode = 3
       process.exit()`,
      '',
    ],
  ])('%s', async (_, source, stdout) => {
    const path = join(temporaryFolder(), 'x.db')
    const ended = await runModule(`${start}\n${source}`, [path])
    const status = source.includes('exitCode') ? 3 : 0
    expect(ended).toEqual({ status, stdout, stderr: '' })
  })
})

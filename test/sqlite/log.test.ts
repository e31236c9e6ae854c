/*
 * The write-ahead log: bounded while much is written, and small once nobody writes. Sizes, not times.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { DatabaseThread } from '../../src/sqlite/database-thread.js'
import type { DatabaseKeeper } from '../../src/sqlite/keeper.js'
import { temporaryFolder, until } from '../support/processes.js'
import { keeperAt, writerOf } from '../support/units/keepers.js'
import { deltaOf, mondayMs } from '../support/units/tallies.js'
import { threadAt } from '../support/units/threads.js'

const mebibyte = 1_048_576
const logBytes = (path: string) => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

const data = 'x'.repeat(4_096)

/** Writes sessions of 4 KB, and each time what can be tidied is, as the thread does it. */
function writeSessions(keeper: DatabaseKeeper, path: string, count: number): number {
  let largest = 0
  for (let turn = 0; turn < count; turn++) {
    keeper.call('sessions', 'set', [`s${turn % 3_000}`, data, mondayMs], mondayMs)
    keeper.tidy(false)
    largest = Math.max(largest, logBytes(path))
  }
  return largest
}

/** Writes sessions and tallies through a thread, as fast as it takes them; the largest that the log was. */
async function writeAll(thread: DatabaseThread, path: string, writer: string): Promise<number> {
  const batchOf = writerOf(writer)
  let largest = 0
  for (let turn = 0; turn < 100; turn++) {
    const minutes = Array.from({ length: 50 }, (_, minute) =>
      deltaOf('minute', mondayMs + (turn * 50 + minute) * 60_000),
    )
    await Promise.all([
      thread.ask('tallies', 'exchange', batchOf(...minutes), [], mondayMs),
      ...Array.from({ length: 100 }, (_, index) =>
        thread.ask('sessions', 'set', `${writer}-${(turn * 100 + index) % 3_000}`, data, mondayMs),
      ),
    ])
    largest = Math.max(largest, logBytes(path))
  }
  return largest
}

describe('the log', () => {
  it.each([1, 2])(
    'stays bounded while %i write much more than that at once',
    async (writerCount) => {
      const path = join(temporaryFolder(), 'x.db')
      const threads = Array.from({ length: writerCount }, () => threadAt(path).thread)
      // A crowd of writers on a busy machine: none of this is about locks.
      for (const thread of threads) thread.bePatient()
      const largest = await Promise.all(
        threads.map((thread, index) => writeAll(thread, path, `writer-${index}`)),
      )
      expect(Math.max(...largest)).toBeGreaterThan(4 * mebibyte)
      expect(Math.max(...largest)).toBeLessThan(64 * mebibyte)
    },
  )

  it('grows while somebody reads an old state, and is cut once that is over', () => {
    const path = join(temporaryFolder(), 'x.db')
    const keeper = keeperAt(path)
    writeSessions(keeper, path, 100)
    const reader = new Sqlite(path, { readonly: true })
    onTestFinished(() => void reader.close())
    reader.exec('BEGIN; SELECT count(*) FROM sessions')
    const largest = writeSessions(keeper, path, 3_000)
    expect(largest).toBeGreaterThan(12 * mebibyte)
    reader.exec('COMMIT')
    keeper.tidy(true)
    expect(logBytes(path)).toBe(0)
  })

  it('is cut once nobody has written for a while, though somebody asks each moment', async () => {
    const path = join(temporaryFolder(), 'x.db')
    const { thread } = threadAt(path)
    const batchOf = writerOf('one')
    const sets = Array.from({ length: 1_000 }, (_, turn) =>
      thread.ask('sessions', 'set', `s${turn}`, data, mondayMs),
    )
    await Promise.all(sets)
    expect(logBytes(path)).toBeGreaterThan(4 * mebibyte)
    await until(
      async () => {
        // As a gate does whose requests have ceased.
        await thread.ask('tallies', 'exchange', batchOf(), [], mondayMs)
        return logBytes(path) <= mebibyte
      },
      'the log to be cut',
      10_000,
    )
  })
})

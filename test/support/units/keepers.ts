/*
 * Keepers in the test's own thread, batches of one count, and what is in a file by the word of another
 * connection.
 */
import { randomUUID } from 'node:crypto'
import Sqlite from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { openDatabase } from '../../../src/sqlite/database.js'
import { hashSeedOf } from '../../../src/sqlite/hash-seed.js'
import { DatabaseKeeper } from '../../../src/sqlite/keeper.js'
import type { Batch } from '../../../src/sqlite/tally-rows.js'
import type { WindowDelta } from '../../../src/tally/archive.js'
import { deltaOf, mondayMs, slots } from './tallies.js'

export const ruleNames = slots.ruleNames

/** A keeper of the database at a path, which is made where it is missing. */
export function keeperAt(path: string): DatabaseKeeper {
  const database = openDatabase(path, mondayMs)
  const { id } = database
  const options = { ruleNames, hashSeed: hashSeedOf(database) }
  database.close()
  const keeper = new DatabaseKeeper(path, options, { replacedCount: 0, movedAside: null, id })
  onTestFinished(() => keeper.close())
  return keeper
}

/** Batches of a writer, one after the other. */
export function writerOf(writer: string): (...deltas: WindowDelta[]) => Batch {
  let sequence = 0
  return (...deltas) => ({ writer, sequence: ++sequence, deltas })
}

/** Adds requests to a week through a keeper, as a flush does. */
export function adding(keeper: DatabaseKeeper): (count: number, nowMs?: number) => void {
  const batchOf = writerOf(randomUUID())
  return (count, nowMs = mondayMs) =>
    void keeper.call(
      'tallies',
      'exchange',
      [batchOf(deltaOf('week', mondayMs, count)), [], nowMs],
      nowMs,
    )
}

/** All requests that a file has in weeks. */
export function requestsIn(path: string): number {
  const connection = new Sqlite(path, { readonly: true })
  const sum = connection
    .prepare(`SELECT total(count) FROM request_tallies WHERE window = 'week'`)
    .pluck()
    .get() as number
  connection.close()
  return sum
}

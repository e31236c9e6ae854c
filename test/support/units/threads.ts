/*
 * Databases in threads of their own, as a gate has them.
 */
import { onTestFinished } from 'vitest'
import type { DatabaseThread } from '../../../src/sqlite/database-thread.js'
import { startThread } from '../../../src/sqlite/start-thread.js'
import { SqliteTallyArchive } from '../../../src/sqlite/tally-archive.js'
import { TallyRows } from '../../../src/sqlite/tally-rows.js'
import { mondayMs, slots } from './tallies.js'

export interface ThreadBench {
  readonly thread: DatabaseThread
  readonly archive: SqliteTallyArchive
}

export function threadAt(
  path: string,
  ruleNames = slots.ruleNames,
  wallMs = () => mondayMs,
): ThreadBench {
  const { thread, found } = startThread(path, ruleNames, wallMs, (database) =>
    new TallyRows(database, ruleNames).read([]),
  )
  onTestFinished(() => thread.close())
  return { thread, archive: new SqliteTallyArchive(thread, found.facts, wallMs) }
}

/** Resolves once the thread has done all that was asked of it before. */
export async function idle(thread: DatabaseThread): Promise<void> {
  await thread.ask('sessions', 'count', 0)
}

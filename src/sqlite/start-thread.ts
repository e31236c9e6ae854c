/*
 * The way from a path to a database in a thread of its own. The file is opened once on the thread that
 * asks, at once, so that what cannot be used stops the start and says why; what is needed from the start on
 * is read then; and the thread takes over.
 */
import type { OpenDatabase } from './database.js'
import { DatabaseThread } from './database-thread.js'
import { openSound } from './sound-database.js'

export interface StartedThread<Found> {
  readonly thread: DatabaseThread
  /** What was read before the thread took over. */
  readonly found: Found
}

/**
 * @param ruleNames of the rules whose verdicts are tallied, in the order of their slots.
 * @param read whatever is needed at once.
 * @throws TallygateError naming the resolved path and the reason.
 */
export function startThread<Found>(
  path: string,
  ruleNames: readonly string[],
  wallMs: () => number,
  read: (database: OpenDatabase) => Found,
): StartedThread<Found> {
  const { database, prepared, movedAside } = openSound(path, wallMs(), read)
  const { id } = database
  database.close()
  const changes = { replacedCount: 0, movedAside, id }
  const data = { path: database.path, options: { ruleNames }, changes }
  return { thread: new DatabaseThread(data, wallMs), found: prepared }
}

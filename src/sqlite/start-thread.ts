/*
 * The way from a path to a database in a thread of its own. The file is opened once on the thread that
 * asks, at once, so that what cannot be used stops the start and says why; what is needed from the start on
 * is read then; and the thread takes over.
 */
import type { OpenDatabase } from './database.js'
import { DatabaseThread } from './database-thread.js'
import { hashSeedOf } from './hash-seed.js'
import { openSound } from './sound-database.js'

export interface StartedThread<Found> {
  readonly thread: DatabaseThread
  /** What was read before the thread took over. */
  readonly found: Found
  /** The seed that the file's hashes have, in base64. */
  readonly hashSeed: string
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
  read: (database: OpenDatabase, hashSeed: string) => Found,
): StartedThread<Found> {
  let seed: string | undefined
  const prepare = (opened: OpenDatabase) => {
    seed = hashSeedOf(opened)
    return { hashSeed: seed, found: read(opened, seed) }
  }
  // What was read before damage showed counts by the seed of the file that is then moved aside.
  const { database, prepared, movedAside } = openSound(path, wallMs(), prepare, () => seed)
  const { id } = database
  database.close()
  const changes = { replacedCount: 0, movedAside, id }
  const data = { path: database.path, options: { ruleNames, hashSeed: prepared.hashSeed }, changes }
  return { thread: new DatabaseThread(data, wallMs), ...prepared }
}

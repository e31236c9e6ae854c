/*
 * Sessions over a database in the test's own thread: rows that answer with promises, and what tests look
 * into.
 */
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Asked } from '../../../src/sqlite/asked.js'
import { openDatabase } from '../../../src/sqlite/database.js'
import { SessionBuffer } from '../../../src/sqlite/session-buffer.js'
import { SessionRows } from '../../../src/sqlite/sessions.js'
import { temporaryFolder } from '../processes.js'
import { askedOf } from './asked.js'
import { epochMs } from './limits.js'

interface StoredSession {
  id_hash: string
  data: string
  expires_ms: number
}

/** @param wrap puts something between the buffer and its rows. */
export function sessionBench(wrap: (rows: Asked<SessionRows>) => Asked<SessionRows> = (it) => it) {
  const database = openDatabase(join(temporaryFolder(), 'x.db'), epochMs)
  onTestFinished(() => database.close())
  const { connection } = database
  const wallMs = () => Date.now()
  const failures: unknown[] = []
  const state = { isShared: false, replacedCount: 0 }
  const names = ['get', 'set', 'update', 'delete', 'count', 'sweep'] as const
  const sessions = new SessionBuffer({
    rows: wrap(askedOf(new SessionRows(database), names)),
    wallMs,
    isShared: () => state.isShared,
    replacedCount: () => state.replacedCount,
    onFailure: (each) => failures.push(each),
  })
  return {
    connection,
    sessions,
    state,
    failures,
    wallMs,
    stored: () => connection.prepare('SELECT * FROM sessions').all() as StoredSession[],
  }
}

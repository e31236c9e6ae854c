/*
 * Reads SQLite's write-ahead log, as its file format is documented: how many transactions are in it.
 */
import { readFileSync } from 'node:fs'

const headerBytes = 32
const frameHeaderBytes = 24

/** Transactions that were committed since the log of a database was begun. */
export function commitsInLog(path: string): number {
  const log = readFileSync(`${path}-wal`)
  if (log.length < headerBytes) return 0
  const frameBytes = frameHeaderBytes + log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let commits = 0
  for (let at = headerBytes; at + frameBytes <= log.length; at += frameBytes) {
    // Behind frames of this log there may be ones of the log before it.
    if (!log.subarray(at + 8, at + 16).equals(salt)) break
    // The last frame of a transaction has the size of the database after it; any other has 0.
    if (log.readUInt32BE(at + 4) > 0) commits++
  }
  return commits
}

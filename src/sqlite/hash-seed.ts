/*
 * The seed of hashes, one for each database file: kept in it, so that a key's hash is the same after a
 * restart. Whoever has the file has the seed, and can try whether a client is in it.
 */
import { drawHashSeed, hashSeedBytes } from '../core/hash.js'
import type { OpenDatabase } from './database.js'

/** The seed of a file, in base64. Where it is none, one that nobody has: then no hash in the file is known. */
export function hashSeedOf({ connection }: OpenDatabase): string {
  const row = connection.prepare("SELECT value FROM meta WHERE key = 'hash_seed'").get()
  const { value } = (row ?? {}) as { value?: unknown }
  const isSeed = typeof value === 'string' && Buffer.from(value, 'base64').length === hashSeedBytes
  return isSeed ? value : drawHashSeed().toString('base64')
}

/*
 * The state of rules in SQLite, in chunks that mean nothing here: words with a checksum. Each rule has a head
 * that says what its chunks are the state of, and who may write them: one process at a time holds a lease,
 * see `lease`, and what another one sends is refused.
 *
 * A chunk that is saved anew is another row with a higher id, and the one before stays until its keys are
 * sure to be elsewhere too: the writer says when. So one key may be in several; the highest id is right, and
 * chunks are read from there down. They are of a generation: a new one begins with each process, whose chunks
 * are others, with higher ids, and those before are deleted once all of it is there. What is of a generation before
 * `valid_from` is the state of another rule.
 */
import type { OpenDatabase } from './database.js'
import { hashSeedOf } from './hash-seed.js'
import { isFree, leaseMs, type Lease, type LeaseHolder } from './lease.js'

/** What must be the same for a state to be of use. */
export interface RuleHead {
  readonly rule: string
  readonly key: string
  readonly absent: string
  readonly ipv6Prefix: number
  readonly windowMs: number
  readonly algorithm: string
}

/** Who saves what. */
export interface Writer {
  readonly holder: string
  readonly rule: string
  readonly generation: number
}

export type Acquired = {
  /** Whether there may be chunks that are this rule's. */
  readonly isKept: boolean
  /** Whether it was this holder who wrote them. */
  readonly isOwn: boolean
  /** Rows in them, at most. */
  readonly rowCount: number
} & (
  | { readonly generation: number; readonly refusal: null }
  /** Who holds the rule's state; null where the file has another seed, so that its hashes say nothing here. */
  | { readonly generation: null; readonly refusal: { readonly heldBy: HeldBy | null } }
)

export type HeldBy = Pick<LeaseHolder, 'host' | 'pid'>

/** Chunks, one after the other in `words`. */
export interface ChunkPiece {
  readonly chunks: readonly number[]
  /** Where in `words` each ends. */
  readonly ends: readonly number[]
  readonly rowCounts: readonly number[]
  readonly words: Uint32Array
}

/** Chunks as they are stored, the newest first. */
export interface StoredPiece {
  readonly chunks: readonly Uint32Array[]
  /** Such as are not what was once written. */
  readonly damagedCount: number
  /** Where to go on; undefined at the end. */
  readonly nextId: number | undefined
}

interface HeadRow extends Lease {
  key: string
  absent: string
  ipv6Prefix: number
  windowMs: number
  algorithm: string
  generation: number
  validFrom: number
}

interface ChunkRow {
  id: number
  checksum: number
  data: Buffer
}

const nothingKept = { isKept: false, isOwn: false, rowCount: 0 }

type NamedHead = RuleHead &
  LeaseHolder & { leaseUntilMs: number; generation: number; validFrom: number }

/** Freeing the pages of a chunk means reading them. */
export const deletedCountMax = 100
const firstId = Number.MAX_SAFE_INTEGER
/** The state of a rule that nobody has had for longer than this, and two of its windows, is deleted. */
const abandonedMs = 30 * 86_400_000

export class RuleStateRows {
  readonly #database: OpenDatabase
  readonly #statements
  /** Whether hashes in the file are what they are in this process. */
  readonly #isSameSeed: boolean

  constructor(database: OpenDatabase, hashSeed: string) {
    this.#database = database
    this.#isSameSeed = hashSeedOf(database) === hashSeed
    this.#statements = prepareStatements(database)
  }

  /** What is stored is the state of; null where there is nothing, or nothing that means anything here. */
  headOf(rule: string): RuleHead | null {
    const row = this.#isSameSeed
      ? (this.#statements.head.get(rule) as HeadRow | undefined)
      : undefined
    return row === undefined ? null : { ...row, rule }
  }

  /**
   * Takes a rule's state over, if nobody else has it.
   *
   * @param isAfresh whether what is stored, be it of the same rule, is to count for nothing.
   * @param isFirst whether the process has only begun, see `lease`.
   */
  acquire(
    holder: LeaseHolder,
    head: RuleHead,
    { isAfresh, isFirst, nowMs }: { isAfresh: boolean; isFirst: boolean; nowMs: number },
  ): Acquired {
    if (!this.#isSameSeed) {
      return { ...nothingKept, generation: null, refusal: { heldBy: null } }
    }
    const run = this.#database.connection.transaction((): Acquired => {
      const row = this.#statements.head.get(head.rule) as HeadRow | undefined
      const isKept = row !== undefined && !isAfresh && isSameHead({ ...row, rule: head.rule }, head)
      const rowCount = isKept ? this.#rowCountOf(head.rule, row.validFrom) : 0
      if (row !== undefined && !isFree(row, holder, isFirst, nowMs)) {
        const { host, pid } = row
        const refusal = { heldBy: { host, pid } }
        return { isKept, isOwn: false, rowCount, generation: null, refusal }
      }
      const generation = (row?.generation ?? 0) + 1
      const validFrom = isKept ? row.validFrom : generation
      const leaseUntilMs = Math.floor(nowMs) + leaseMs
      this.#statements.putHead.run({ ...head, ...holder, leaseUntilMs, generation, validFrom })
      const isOwn = row?.holder === holder.id
      return { isKept, isOwn, rowCount, generation, refusal: null }
    })
    return run.immediate()
  }

  /** Keeps all leases of a holder from running out; answers the rules that it holds. */
  renew(holder: string, nowMs: number): string[] {
    if (!this.#isSameSeed) return []
    const renewed = this.#statements.renew.all(Math.floor(nowMs) + leaseMs, holder)
    return (renewed as { rule: string }[]).map(({ rule }) => rule)
  }

  /**
   * Saves chunks of a generation, and deletes some that are of no use any more; all or nothing.
   *
   * @returns the id of the first, those of the others follow; null where the rule's state is no longer this
   * holder's.
   */
  save(
    by: Writer,
    { chunks, ends, rowCounts, words }: ChunkPiece,
    deletable: readonly number[],
    nowMs: number,
  ): number | null {
    const run = this.#database.connection.transaction(() => {
      if (!this.#holds(by)) return null
      this.#statements.renew.all(Math.floor(nowMs) + leaseMs, by.holder)
      for (const id of deletable) this.#statements.deleteChunk.run(id)
      let from = 0
      let lastId = 0
      for (const [index, chunk] of chunks.entries()) {
        const own = words.slice(from, (from = ends[index] ?? from))
        const sum = checksumOf(own)
        const data = Buffer.from(own.buffer)
        const row = [by.rule, by.generation, chunk, rowCounts[index] ?? 0, sum, data] as const
        lastId = Number(this.#statements.addChunk.run(...row).lastInsertRowid)
      }
      return lastId - chunks.length + 1
    })
    return run.immediate()
  }

  /**
   * Deletes chunks that are of no use any more: these, and some of earlier generations, now that this one is
   * saved as a whole.
   *
   * @returns whether there may be more of earlier generations.
   */
  tidy(by: Writer, ids: readonly number[], hasEarlier: boolean): 'done' | 'more' | 'lost' {
    const run = this.#database.connection.transaction(() => {
      if (!this.#holds(by)) return 'lost'
      for (const id of ids) this.#statements.deleteChunk.run(id)
      if (!hasEarlier) return 'done'
      const { changes } = this.#statements.deleteEarlier.run(by.rule, by.generation)
      return changes < deletedCountMax ? 'done' : 'more'
    })
    return run.immediate()
  }

  /** Some of the chunks that are stored for a rule, the newest first, from an id down. */
  read(rule: string, countMax: number, fromId = firstId): StoredPiece {
    const rows = this.#statements.chunks.all(rule, rule, fromId, countMax) as ChunkRow[]
    const chunks = rows.map(wordsOf)
    const sound = chunks.filter((words) => words !== null)
    return {
      chunks: sound,
      damagedCount: rows.length - sound.length,
      nextId: rows.length < countMax ? undefined : (rows.at(-1)?.id ?? 0) - 1,
    }
  }

  /** Lets others have what a holder held. */
  release(holder: string): void {
    this.#statements.release.run(holder)
  }

  /** Deletes some of what rules have left that nobody has any more; answers whether there may be more. */
  prune(nowMs: number): boolean {
    const abandoned = this.#statements.abandoned.get(nowMs - abandonedMs) as
      { rule: string } | undefined
    if (abandoned === undefined) return false
    const { changes } = this.#statements.deleteEarlier.run(abandoned.rule, Number.MAX_SAFE_INTEGER)
    if (changes < deletedCountMax) this.#statements.deleteHead.run(abandoned.rule)
    return true
  }

  #rowCountOf(rule: string, validFrom: number): number {
    const { count } = this.#statements.rowCount.get(rule, validFrom) as { count: number | null }
    return count ?? 0
  }

  #holds({ holder, rule, generation }: Writer): boolean {
    const row = this.#statements.head.get(rule) as HeadRow | undefined
    return this.#isSameSeed && row?.holder === holder && row.generation === generation
  }
}

export function isSameHead(one: RuleHead, other: RuleHead): boolean {
  return (
    one.rule === other.rule &&
    one.key === other.key &&
    one.absent === other.absent &&
    one.ipv6Prefix === other.ipv6Prefix &&
    one.windowMs === other.windowMs &&
    one.algorithm === other.algorithm
  )
}

/** The words of a chunk; null where they are not what was once written. */
function wordsOf({ checksum, data }: ChunkRow): Uint32Array | null {
  if (!Buffer.isBuffer(data) || data.length % 4 !== 0) return null
  const words = new Uint32Array(data.length / 4)
  data.copy(new Uint8Array(words.buffer))
  return checksumOf(words) === checksum ? words : null
}

/** FNV-1a over words: against damage, not against anybody. */
function checksumOf(words: Uint32Array): number {
  let sum = 0x811c9dc5
  for (let index = 0; index < words.length; index++) {
    sum = Math.imul(sum ^ (words[index] as number), 0x01000193)
  }
  return sum
}

function prepareStatements({ connection }: OpenDatabase) {
  return {
    head: connection.prepare<[string]>(
      `SELECT key, absent, ipv6_prefix AS ipv6Prefix, window_ms AS windowMs, algorithm, generation,
         valid_from AS validFrom, holder, host, pid, process_start_ms AS processStartMs,
         lease_until_ms AS leaseUntilMs
       FROM rule_states WHERE rule = ?`,
    ),
    putHead: connection.prepare<[NamedHead]>(
      `INSERT OR REPLACE INTO rule_states VALUES (@rule, @key, @absent, @ipv6Prefix, @windowMs, @algorithm,
         @generation, @validFrom, @id, @host, @pid, @processStartMs, @leaseUntilMs)`,
    ),
    renew: connection.prepare<[number, string]>(
      'UPDATE rule_states SET lease_until_ms = ? WHERE holder = ? RETURNING rule',
    ),
    release: connection.prepare<[string]>('UPDATE rule_states SET holder = NULL WHERE holder = ?'),
    addChunk: connection.prepare<[string, number, number, number, number, Buffer]>(
      `INSERT INTO rule_chunks (rule, generation, chunk, row_count, checksum, data)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    chunks: connection.prepare<[string, string, number, number]>(
      `SELECT id, checksum, data FROM rule_chunks
       WHERE rule = ? AND generation >= (SELECT valid_from FROM rule_states WHERE rule = ?) AND id <= ?
       ORDER BY id DESC LIMIT ?`,
    ),
    // Of each chunk the last; where a generation is not yet whole, the one before is.
    rowCount: connection.prepare<[string, number]>(
      `SELECT max(total) AS count FROM (
         SELECT sum(row_count) AS total FROM (
           SELECT generation, row_count, max(id) FROM rule_chunks
           WHERE rule = ? AND generation >= ? GROUP BY generation, chunk)
         GROUP BY generation)`,
    ),
    deleteChunk: connection.prepare<[number]>('DELETE FROM rule_chunks WHERE id = ?'),
    // The first by their ids are of the earliest generation.
    deleteEarlier: connection.prepare<[string, number]>(
      `DELETE FROM rule_chunks WHERE id IN (SELECT id FROM (
         SELECT id, generation FROM rule_chunks WHERE rule = ? ORDER BY id LIMIT ${deletedCountMax})
       WHERE generation < ?)`,
    ),
    abandoned: connection.prepare<[number]>(
      'SELECT rule FROM rule_states WHERE lease_until_ms + 2 * window_ms < ? LIMIT 1',
    ),
    deleteHead: connection.prepare<[string]>('DELETE FROM rule_states WHERE rule = ?'),
  }
}

/*
 * A table's rows in chunks, for what saves them. A chunk is a range of buckets, and is written as
 * `chunk-form` says; which are to be written next, `chunk-changes` knows. What a chunk was when it was
 * written does not matter to who reads it.
 */
import type { Algorithm } from '../../core/algorithm.js'
import { noEntry, type EntryPool } from '../../core/entry-pool.js'
import { rollingLimitMax } from '../../core/plans.js'
import type { CompiledRule } from '../../core/rule.js'
import type { RuleTime } from '../../core/rule-time.js'
import { ChunkChanges, type ChangesSeen } from './chunk-changes.js'
import { DoubleWords, entryWords, formOf } from './chunk-form.js'
import { ChunkIntake, type TakenBy } from './chunk-intake.js'
import type { KeyRows } from './key-rows.js'
import { bucketWords, hashWords, rowWordsOf, type Slab } from './slab.js'
import type { WordBuffer } from './word-buffer.js'

/** Words of a chunk, as a power of two: 128 buckets, some 500 keys in 16 KB. */
const chunkBits = 12
/**
 * Where rows have logs a chunk is smaller, down to a single row: so many entries at most if it has several,
 * because each lies somewhere else in memory and takes 50 to 150 ns to write.
 */
const entriesOfChunk = 512
const chunkBitsOfLogs = 8
/** What is written in one turn; of logs it takes longer. */
const turnWords = 16_384
const turnWordsOfLogs = 2_048

export class TableChunks {
  readonly #algorithm: Algorithm
  readonly #rows: KeyRows
  readonly #entries: EntryPool | null
  readonly #bits: number
  readonly #changes: ChunkChanges
  readonly #intake: ChunkIntake
  readonly #double = new DoubleWords()

  constructor(rule: CompiledRule, rows: KeyRows, entries: EntryPool | null, time: RuleTime) {
    this.#algorithm = rule.algorithm
    this.#rows = rows
    this.#entries = entries
    this.#bits = entries === null ? chunkBits : logChunkBits(rule)
    this.#changes = new ChunkChanges(this.#bits, rows.wordCount)
    this.#intake = new ChunkIntake(rule.algorithm, rows, entries, time)
    rows.changes = this.#changes
  }

  /** How many chunks the table has now. */
  get count(): number {
    return this.#changes.countOf(this.#rows.wordCount)
  }

  /** How many words to write in one turn of the thread, in some 50 to 100 µs. */
  get turnWords(): number {
    return this.#entries === null ? turnWords : turnWordsOfLogs
  }

  /** Begins a round of saving what has changed, see `ChunkChanges`. */
  restart(): void {
    this.#changes.restart(this.count)
  }

  /** The chunk to save next; -1 at the end of the round. */
  get next(): number {
    return this.#changes.next(this.count)
  }

  /** Looks whether there are changes to be saved, and whether more have been made since the last look. */
  look(): ChangesSeen {
    return this.#changes.look(this.count)
  }

  /** Whether everything is saved as it is now. */
  get isQuiet(): boolean {
    return this.#changes.isQuiet(this.count)
  }

  /** As if no chunk had ever been saved. */
  markAll(): void {
    this.#changes.markAll(this.#rows.wordCount)
  }

  /** A chunk that was written could not be saved. */
  putBack(chunk: number): void {
    this.#changes.putBack(chunk)
  }

  /** Writes a chunk behind what is in the buffer; it counts as saved from now on. Answers how many rows. */
  write(chunk: number, out: WordBuffer): number {
    const rows = this.#rows
    this.#changes.clear(chunk)
    out.reserve(1)
    out.words[out.length++] = formOf(this.#algorithm)
    const first = chunk * 2 ** this.#bits
    const end = Math.min(first + 2 ** this.#bits, rows.wordCount)
    const rowWords = rowWordsOf(this.#algorithm)
    const rowsWords = rows.rowsPerBucket * rowWords
    let count = 0
    for (let bucket = first - (first % bucketWords); bucket < end; bucket += bucketWords) {
      const rowsEnd = Math.min(end, bucket + rowsWords)
      for (let row = Math.max(first, bucket); row < rowsEnd; row += rowWords) {
        if (!rows.visitAt(row)) continue
        this.#writeRow(rows.slab, rows.at, out)
        count++
      }
    }
    return count
  }

  /** Makes room for about so many rows that are to be taken in. */
  expect(rowCount: number, rule: CompiledRule): void {
    this.#rows.reserve(Math.min(rowCount, rule.maxKeys))
  }

  /**
   * Takes in rows of a written chunk, from a position on (0 at first), so many at most.
   *
   * @returns where to go on, `words.length` at the end; -1 where these are no such rows.
   */
  take(words: Uint32Array, from: number, rowsMax: number, by: TakenBy): number {
    return this.#intake.take(words, from, rowsMax, by)
  }

  #writeRow(slab: Slab, at: number, out: WordBuffer): void {
    const wordCount = rowWordsOf(this.#algorithm)
    out.reserve(wordCount)
    const { words, length } = out
    const row = at - hashWords
    for (let word = 0; word < wordCount; word++) {
      words[length + word] = slab.words[row + word] as number
    }
    out.length += wordCount
    if (this.#entries !== null) this.#writeLog(this.#entries, length + hashWords, out)
  }

  /** Writes the log of a row whose state was written at `stateAt`, and there how long it is. */
  #writeLog(pool: EntryPool, stateAt: number, out: WordBuffer): void {
    let count = 0
    let entry = out.words[stateAt] as number
    for (; entry !== noEntry; entry = pool.nextOf(entry)) {
      out.reserve(entryWords)
      this.#double.write(pool.timeOf(entry), out.words, out.length)
      out.words[out.length + 2] = pool.costOf(entry)
      out.length += entryWords
      count++
    }
    out.words[stateAt] = count
    out.words[stateAt + 1] = 0
  }
}

/** Rows with logs are a power of two of words, so that each chunk has whole ones. */
function logChunkBits({ algorithm, limit, plans }: CompiledRule): number {
  const rowBits = Math.log2(rowWordsOf(algorithm))
  const rows = entriesOfChunk / Math.max(1, plans === null ? limit : rollingLimitMax)
  return Math.min(rowBits + Math.max(0, Math.floor(Math.log2(rows))), chunkBitsOfLogs)
}

/*
 * The state of one rule on its way into the database: which chunks are to be saved next, under which
 * generation, and which of the stored ones are of no use any more.
 *
 * A key may have left a chunk before that is saved anew, and where it went to is saved at the latest in the
 * next round. So what is replaced in a round is of no use after the end of the next; or at once, where nothing
 * has changed since it was saved. It is deleted with what is saved then, so that a round is one commit where
 * it is one piece.
 */
import type { CompiledRule } from '../core/rule.js'
import {
  deletedCountMax,
  isSameHead,
  type Acquired,
  type ChunkPiece,
  type RuleHead,
} from '../sqlite/rule-states.js'
import type { TableChunks } from '../stores/memory/table-chunks.js'
import type { WordBuffer } from '../stores/memory/word-buffer.js'

/** Of those that are written at once, on the thread of the requests. */
const pieceChunksMax = 100
/** Where keys pour in faster than they are saved, a round must end all the same. */
const savesOfChunkMax = 3
/** How long changes may wait for others to be saved with, and what is of no use for those. */
const waitingMsMax = 5_000

export class SavedRule {
  readonly name: string
  readonly head: RuleHead
  readonly chunks: TableChunks
  /** Whether what is stored is this process's own from before it started afresh: it counts for nothing. */
  isAfresh: boolean
  /** Whether what is stored has been taken in already, and nobody else has saved since. */
  isRead = false
  /** Under which its chunks are saved; null while they are not. */
  generation: number | null = null
  /** Who has the rule's state instead, as far as is known. */
  refusal: Acquired['refusal'] = null
  /** Where the last of each chunk is stored; 0 where nothing is. */
  #ids = new Float64Array(16)
  /** Where others are stored: replaced in this round, replaced in the last, and of no use. */
  #replaced: number[] = []
  #replacedBefore: number[] = []
  #deletable: number[] = []
  #hasEarlier = true
  #isRoundOver = true
  #savedInRound = 0
  /** Since when there has been something to save; null where there is nothing. */
  #waitingSinceMs: number | null = null
  #roundMs = -Infinity

  constructor(rule: CompiledRule, chunks: TableChunks, isAfresh: boolean) {
    this.name = rule.name
    this.head = headOf(rule)
    this.chunks = chunks
    this.isAfresh = isAfresh
  }

  /** Whether it is still that rule's, with that state. */
  isOf(rule: CompiledRule, chunks: TableChunks): boolean {
    return chunks === this.chunks && isSameHead(headOf(rule), this.head)
  }

  /** Where it was acquired, all of it is to be saved from now on, under a generation of its own. */
  begin({ generation, refusal }: Acquired): void {
    this.generation = generation
    this.refusal = refusal
    this.isRead = false
    if (generation === null) return
    this.isAfresh = false
    this.chunks.markAll()
    this.#ids.fill(0)
    this.#replaced = []
    this.#replacedBefore = []
    this.#deletable = []
    this.#hasEarlier = true
    this.#isRoundOver = false
  }

  /**
   * Whether it is time for a round: no more changes come, or the first has waited for long. To be asked about
   * once a second.
   */
  isRipe(nowMs: number): boolean {
    const seen = this.chunks.look()
    if (seen === 'none') {
      this.#waitingSinceMs = null
      const isAnythingLeft = this.#deletable.length + this.#replacedBefore.length > 0
      return isAnythingLeft && hasPassed(nowMs, this.#roundMs, waitingMsMax)
    }
    this.#waitingSinceMs ??= nowMs
    return seen === 'waiting' || hasPassed(nowMs, this.#waitingSinceMs, waitingMsMax)
  }

  /** Begins a round. */
  restart(nowMs: number): void {
    this.chunks.restart()
    this.#isRoundOver = false
    this.#savedInRound = 0
    this.#waitingSinceMs = null
    this.#roundMs = nowMs
  }

  /** Whether there is something to save in this round, or to delete after it. */
  get isDue(): boolean {
    if (this.generation === null) return false
    return !this.#isRoundOver || this.isToTidy
  }

  /** What is of no use waits for the next round, unless this one saved nothing, or it is much. */
  get isToTidy(): boolean {
    const count = this.#deletable.length
    return this.hasEarlier || count > deletedCountMax || (count > 0 && this.#savedInRound === 0)
  }

  /** Writes the next chunks of the round; null where there was nothing to write, as at its end. */
  write(buffer: WordBuffer): ChunkPiece | null {
    const [chunks, ends, rowCounts]: [number[], number[], number[]] = [[], [], []]
    buffer.clear()
    for (let turn = 0; turn < pieceChunksMax && buffer.length < this.chunks.turnWords; turn++) {
      const chunk = this.#nextChunk
      if (chunk === -1) break
      const from = buffer.length
      const rowCount = this.chunks.write(chunk, buffer)
      if (rowCount === 0) {
        // Of an empty one nothing is stored, and what was is out of date.
        this.#replace(chunk, 0)
        buffer.length = from
        continue
      }
      chunks.push(chunk)
      rowCounts.push(rowCount)
      ends.push(buffer.length)
    }
    if (chunks.length > 0) {
      return { chunks, ends, rowCounts, words: buffer.words.subarray(0, buffer.length) }
    }
    if (this.#nextChunk === -1 && !this.#isRoundOver) this.#endRound()
    return null
  }

  /** A piece was saved, the first of its chunks under this id, the others after it. */
  saved({ chunks }: ChunkPiece, firstId: number): void {
    for (const [index, chunk] of chunks.entries()) {
      this.#replace(chunk, firstId + index)
    }
    this.#savedInRound += chunks.length
  }

  /** A piece could not be saved. */
  putBack({ chunks }: ChunkPiece): void {
    for (const chunk of chunks) this.chunks.putBack(chunk)
  }

  /** Where something is stored that is of no use any more, a bounded number; none during a round. */
  get deletable(): number[] {
    return this.#deletable.slice(-deletedCountMax)
  }

  /** Whether chunks of earlier generations may be stored, and are of no use any more. */
  get hasEarlier(): boolean {
    return this.#hasEarlier && this.#isRoundOver
  }

  /** @param hasEarlier whether there may be more of earlier generations. */
  deleted(ids: readonly number[], hasEarlier: boolean): void {
    this.#deletable.length -= ids.length
    this.#hasEarlier = this.#hasEarlier && hasEarlier
  }

  /** -1 at the end of the round. */
  get #nextChunk(): number {
    const isTooMuch = this.#savedInRound > savesOfChunkMax * this.chunks.count
    return this.#isRoundOver || isTooMuch ? -1 : this.chunks.next
  }

  #endRound(): void {
    this.#isRoundOver = true
    const { count, isQuiet } = this.chunks
    for (let chunk = count; chunk < this.#ids.length; chunk++) this.#replace(chunk, 0)
    this.#deletable = this.#deletable.concat(this.#replacedBefore, isQuiet ? this.#replaced : [])
    this.#replacedBefore = isQuiet ? [] : this.#replaced
    this.#replaced = []
  }

  #replace(chunk: number, id: number): void {
    if (chunk >= this.#ids.length) {
      const longer = new Float64Array(2 * chunk)
      longer.set(this.#ids)
      this.#ids = longer
    }
    const before = this.#ids[chunk] as number
    if (before !== 0) this.#replaced.push(before)
    this.#ids[chunk] = id
  }
}

/** A clock that was set back has let time pass too. */
export function hasPassed(nowMs: number, sinceMs: number, spanMs: number): boolean {
  return !(nowMs - sinceMs >= 0 && nowMs - sinceMs < spanMs)
}

/** What the state of a rule is the state of. */
export function headOf({
  name,
  key,
  absent,
  ipv6Prefix,
  windowMs,
  algorithm,
}: CompiledRule): RuleHead {
  return { rule: name, key, absent, ipv6Prefix, windowMs, algorithm: algorithm.name }
}

/*
 * Takes in what is stored of a rule's state, the newest first.
 */
import type { Clock } from '../core/clock.js'
import type { CompiledRule } from '../core/rule.js'
import type { StoredPiece } from '../sqlite/rule-states.js'
import type { TakenBy, TakenIn } from '../stores/memory/chunk-intake.js'
import type { TableChunks } from '../stores/memory/table-chunks.js'

/** Taken in some 100 µs, where the table grows under them; at the start in a third of that. */
const rowsAtOnce = 100

export class StateReading {
  readonly sum: TakenIn = { taken: 0, passedOver: 0, leftOut: 0 }
  /** Chunks that are not what was once written, or that another version wrote. */
  damagedCount = 0
  readonly #chunks: TableChunks
  readonly #rule: CompiledRule
  readonly #known: TakenBy['known']
  readonly #clock: Clock

  /** @param known what becomes of keys that the table knows already. */
  constructor(chunks: TableChunks, rule: CompiledRule, known: TakenBy['known'], clock: Clock) {
    this.#chunks = chunks
    this.#rule = rule
    this.#known = known
    this.#clock = clock
  }

  /** Takes a piece in, and stops now and then for others to have their turn. */
  *takeIn({ chunks, damagedCount }: StoredPiece): Generator<undefined, void> {
    this.damagedCount += damagedCount
    for (const words of chunks) {
      let at = 0
      while (at !== -1 && at < words.length) {
        at = this.#chunks.take(words, at, rowsAtOnce, {
          rule: this.#rule,
          nowMs: this.#clock.monotonicMs(),
          known: this.#known,
          sum: this.sum,
        })
        yield
      }
      if (at === -1) this.damagedCount++
    }
  }
}

/*
 * Saves what has changed of rules' state, in rounds: a piece of each rule in turn. The thread of the requests
 * writes a piece of up to 64 KB into a buffer, in a turn of its own, and sends it when the one before is
 * stored: nothing ever stands still for a large table, and the disk takes some megabytes a second at most.
 */
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../core/clock.js'
import type { Asked } from '../sqlite/asked.js'
import { DatabaseFault } from '../sqlite/database-thread.js'
import type { RuleStateRows, Writer } from '../sqlite/rule-states.js'
import { WordBuffer } from '../stores/memory/word-buffer.js'
import type { SavedRule } from './saved-rule.js'

export interface RuleStateSaverParts {
  readonly rows: Asked<Pick<RuleStateRows, 'save' | 'tidy'>>
  /** The id of who saves. */
  readonly holder: string
  readonly clock: Clock
  /** Told of a rule whose state is not this process's any more. */
  readonly onLost: (saved: SavedRule) => void
}

/** 4 MB a second. */
const pieceWordsPerMs = 1_000

export class RuleStateSaver {
  /** When something was saved last, by the monotonic clock: that renews all leases. */
  savedAtMs = -Infinity
  readonly #parts: RuleStateSaverParts
  readonly #buffer = new WordBuffer()
  #isHurried = false
  /** Ends the pause that is under way. */
  #wake: () => void = () => undefined

  constructor(parts: RuleStateSaverParts) {
    this.#parts = parts
  }

  /** Makes no pauses from now on. */
  hurry(): void {
    this.#isHurried = true
    this.#wake()
  }

  /** Goes over all that has changed. Rejects where the database does not take it; then it is still to be saved. */
  async saveRound(rules: readonly SavedRule[]): Promise<void> {
    for (const saved of rules) saved.restart(this.#parts.clock.monotonicMs())
    let due = rules.filter(isRoundDue)
    for (; due.length > 0; due = due.filter(isRoundDue)) {
      for (const saved of due) await this.#savePiece(saved)
    }
  }

  async #savePiece(saved: SavedRule): Promise<void> {
    const { rows, holder, clock, onLost } = this.#parts
    const { name: rule, generation } = saved
    if (generation === null) return
    const by = { holder, rule, generation }
    const piece = saved.write(this.#buffer)
    if (piece === null) return this.#tidy(saved, by)
    const { deletable } = saved
    try {
      const firstId = await rows.save(by, piece, deletable, clock.wallMs())
      if (firstId === null) return onLost(saved)
      saved.deleted(deletable, true)
      saved.saved(piece, firstId)
    } catch (error) {
      saved.putBack(piece)
      // Nobody knows then under which ids it was saved, if it was.
      if (!(error instanceof DatabaseFault)) onLost(saved)
      throw error
    }
    this.savedAtMs = clock.monotonicMs()
    await this.#pause(piece.words.length / pieceWordsPerMs)
  }

  async #tidy(saved: SavedRule, by: Writer): Promise<void> {
    const { deletable: ids, hasEarlier, isToTidy } = saved
    // Where there was nothing to save others have their turn all the same.
    if (!isToTidy) return setImmediate()
    const answer = await this.#parts.rows.tidy(by, ids, hasEarlier)
    if (answer === 'lost') this.#parts.onLost(saved)
    else saved.deleted(ids, answer === 'more')
  }

  #pause(timeMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isHurried) return resolve()
      const timer = setTimeout(resolve, timeMs).unref()
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function isRoundDue(saved: SavedRule): boolean {
  return saved.isDue
}

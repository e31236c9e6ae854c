/*
 * What the log says of rule state that is kept: once for each change, not for each try.
 */
import type { Logger } from '../core/logger.js'
import type { SavedRule } from './saved-rule.js'
import type { StateReading } from './state-reading.js'

export class RuleStateNotes {
  readonly #logger: Logger
  /** How each rule stood when that was last said. */
  readonly #told = new Map<string, string>()
  #isFailing = false

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Of rules whose state was asked for: which are saved by this process, and who has the others. */
  standing(rules: readonly SavedRule[]): void {
    const groups = new Map<string, SavedRule[]>()
    for (const saved of rules) {
      const standing = JSON.stringify(saved.generation === null ? saved.refusal : 'saved')
      if (this.#told.get(saved.name) === standing) continue
      this.#told.set(saved.name, standing)
      groups.set(standing, [...(groups.get(standing) ?? []), saved])
    }
    for (const group of groups.values()) this.#tell(group)
  }

  #tell(group: readonly SavedRule[]): void {
    const rules = group.map(({ name }) => name)
    const [first] = group
    if (first === undefined) return
    if (first.generation !== null) {
      this.#logger.info({ rules }, 'the state of these rules is saved')
    } else if (first.refusal?.heldBy === null) {
      this.#logger.warn(
        { rules },
        'the database was begun by another process, which hashes keys in its own way; ' +
          'the state of these rules is not persisted until the restart',
      )
    } else if (first.refusal !== null) {
      this.#logger.warn(
        { rules, heldBy: first.refusal.heldBy },
        'another process saves the state of these rules; this one does not persist it',
      )
    }
  }

  restored(rule: string, { sum: { taken, leftOut }, damagedCount }: StateReading): void {
    if (taken > 0) this.#logger.info({ rule, keys: taken }, 'rule state was restored')
    if (leftOut > 0) {
      this.#logger.warn({ rule, keys: leftOut }, 'rule state was left out, for want of room')
    }
    if (damagedCount > 0) {
      this.#logger.warn({ rule, chunks: damagedCount }, 'rule state was damaged, and passed over')
    }
  }

  /** @param failure null where all went well. */
  ended(failure: unknown): void {
    if (failure !== null && !this.#isFailing) {
      this.#logger.error({ err: failure }, 'rule state cannot be saved; it is tried again')
    }
    if (failure === null && this.#isFailing) this.#logger.info({}, 'rule state is saved again')
    this.#isFailing = failure !== null
  }

  closedEarly(): void {
    this.#logger.error({}, 'closing with rule state that could not be saved')
  }
}

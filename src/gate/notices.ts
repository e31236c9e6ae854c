/*
 * What a start says of rules that are right and may still surprise: a window that was perhaps meant in
 * seconds, and the memory that a log of attempts may come to.
 */
import type { Logger } from '../core/logger.js'
import type { CompiledRule } from '../core/rule.js'

/** A time, a cost and a link. */
const entryBytes = 16
/** Hash and state of a key, in a table that is half full just after it has grown. */
const keyBytes = 2 * (8 + 24)

export function noteRules(rules: readonly CompiledRule[], logger: Logger): void {
  for (const { name, windowMs, algorithm, maxEntries, maxKeys } of rules) {
    if (windowMs < 1_000) {
      const meant = `${windowMs}s`
      logger.warn(
        { rule: name, windowMs, meant },
        'a window below a second: a bare number is milliseconds',
      )
    }
    if (algorithm.keepsEntries) {
      const bytesMax = maxEntries * entryBytes + maxKeys * keyBytes
      logger.info(
        { rule: name, bytesMax },
        'a rolling window keeps each attempt: at most so many bytes',
      )
    }
  }
}

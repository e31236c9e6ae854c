/*
 * What a start says of rules that are right and may still surprise: a window that was perhaps meant in
 * seconds, the memory that a log of attempts may come to, other processes with the same rules.
 */
import type { Logger } from '../core/logger.js'
import type { CompiledRule, RuleOptions } from '../core/rule.js'
import type { Warnings } from '../core/warnings.js'

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

/** Rules that ask for what only a database can give. */
export function noteMemoryOnly(options: readonly RuleOptions[], logger: Logger): void {
  const rules = options.filter(({ persist }) => persist === true).map(({ name }) => name)
  if (rules.length > 0) {
    logger.warn(
      { rules },
      'persist takes a database: the state of these rules ends with the process',
    )
  }
}

/**
 * Rules in memory know nothing of other workers. PM2 numbers its processes from 0 and starts a single one
 * with that number too, so 0 tells of others only where PM2 says how many there are.
 *
 * @param isClusterWorker whether this process was forked by node:cluster.
 */
export function noteWorkers(
  environment: Readonly<Record<string, string | undefined>>,
  isClusterWorker: boolean,
  warnings: Warnings,
): void {
  const { NODE_APP_INSTANCE: number, instances } = environment
  const isOneOfMany = number !== undefined && (Number(number) > 0 || Number(instances) > 1)
  if (isClusterWorker || isOneOfMany) warnings.note('TALLYGATE_WARN_SEVERAL_WORKERS')
}

/*
 * The dialects of the RateLimit fields by name. One is chosen when a gate is made, so that no request
 * compares names. `Retry-After` belongs to the answer of a declined request, whatever the dialect.
 */
import type { Clock } from '../../core/clock.js'
import type { Dialect } from './dialect.js'
import { draft6 } from './draft-6.js'
import { draft8 } from './draft-8.js'
import { legacy } from './legacy.js'

const dialects = {
  'draft-8': draft8,
  'draft-6': draft6,
  legacy,
  off: () => writeNothing,
} satisfies Record<string, (clock: Clock) => Dialect>

export type DialectName = keyof typeof dialects

export const dialectNames = Object.keys(dialects) as readonly DialectName[]

/** @param clock read by dialects that tell moments instead of spans. */
export function createDialect(name: DialectName, clock: Clock): Dialect {
  return dialects[name](clock)
}

function writeNothing(): void {
  // The dialect `off`.
}

/*
 * Counts beyond 2^53 − 1, which a double no longer holds exactly: kept beside the row of doubles, for the
 * slots that need it, so that everything else adds doubles. Nothing here runs for a request.
 */

/** By slot. The row of doubles has them rounded. */
export type LargeCounts = ReadonlyMap<number, bigint>

/** A row of counts, and those of them that are large. */
export interface ExactRow {
  readonly counts: Float64Array
  /** Left out where there are none. */
  readonly large?: LargeCounts | undefined
}

/** A row with rows of small counts added to it. */
export function sumOf(row: ExactRow, ...more: readonly Float64Array[]): ExactRow {
  const counts = row.counts.slice()
  for (const each of more) {
    for (let slot = 0; slot < counts.length; slot++) {
      counts[slot] = (counts[slot] as number) + (each[slot] ?? 0)
    }
  }
  let large: Map<number, bigint> | undefined
  for (const [slot, count] of counts.entries()) {
    if (count <= Number.MAX_SAFE_INTEGER) continue
    large ??= new Map()
    large.set(
      slot,
      more.reduce((sum, each) => sum + BigInt(each[slot] ?? 0), exactAt(row, slot)),
    )
  }
  return large === undefined ? { counts } : { counts, large }
}

/** What is in a slot, whole. */
export function exactAt({ counts, large }: ExactRow, slot: number): bigint {
  return large?.get(slot) ?? BigInt(counts[slot] ?? 0)
}

/** As JSON has it: a number where that is exact, else its digits. */
export type Count = number | string

export function countOf(exact: bigint): Count {
  return exact <= Number.MAX_SAFE_INTEGER ? Number(exact) : String(exact)
}

/*
 * Spans of time as people write them in a configuration: `500ms`, `30s`, `1m`, `1h`, `1d`, `1w`, or a whole
 * number of milliseconds. Months and years are left out on purpose: they have no fixed length.
 */

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const

type Unit = keyof typeof unitsMs

export const windowMsMin = 1
export const windowMsMax = 366 * unitsMs.d

/**
 * Milliseconds of a span, or null where `value` is none.
 *
 * @example parseDuration('1m') // 60000
 */
export function parseDuration(value: unknown): number | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? value : null
  if (typeof value !== 'string') return null
  const match = /^(\d{1,15})(ms|s|m|h|d|w)$/.exec(value)
  if (match === null) return null
  const spanMs = Number(match[1]) * unitsMs[match[2] as Unit]
  return Number.isSafeInteger(spanMs) ? spanMs : null
}

/**
 * The shortest exact spelling of a span.
 *
 * @example formatDuration(90_000) // '90s'
 */
export function formatDuration(spanMs: number): string {
  const units = Object.entries(unitsMs).toReversed()
  const [name, unitMs] = units.find(([, ms]) => spanMs >= ms && spanMs % ms === 0) ?? ['ms', 1]
  return `${spanMs / unitMs}${name}`
}

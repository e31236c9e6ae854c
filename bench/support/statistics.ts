/*
 * Medians and spreads of a few dozen numbers.
 */

/** The value below which a share of all lies, between two of them where the share falls between. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  const position = (sorted.length - 1) * share
  const below = sorted[Math.floor(position)] ?? NaN
  const above = sorted[Math.ceil(position)] ?? NaN
  return below + (above - below) * (position % 1)
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Values are too many for the arguments of `Math.max`. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), -Infinity)
}

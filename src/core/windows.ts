/*
 * The calendar windows in which requests and verdicts are tallied, smallest first. Metrics, tallies and
 * tables share this set and its order.
 */

export const windowKinds = ['minute', 'hour', 'day', 'week'] as const
export type WindowKind = (typeof windowKinds)[number]

/*
 * The buckets in which demand is sorted: 1, 2, 3, 5, 7 times each power of ten, to a million, and what is
 * above. Upper bounds, which belong to their bucket.
 */
import { metrics } from './table.js'

export const demandBounds: Float64Array = Float64Array.of(
  ...metrics.keyWindowDemand.buckets,
  Infinity,
)

/** The bucket of a sum that is above the bound of the bucket before `from`. */
export function bucketOf(sum: number, from = 0): number {
  let bucket = from
  while (sum > (demandBounds[bucket] as number)) bucket++
  return bucket
}

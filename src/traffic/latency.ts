/*
 * How long answers took, in memory that does not grow: counts in buckets each 2 % wider than the one
 * before, from 10 µs to about an hour. A quantile is therefore right to 1 %, however many requests were made.
 */

const base = Math.log(1.02)
const leastMs = 0.01
const bucketCount = 1_000

export class Latency {
  readonly #counts = new Float64Array(bucketCount)
  #count = 0

  observe(latencyMs: number): void {
    const bucket = Math.round(Math.log(Math.max(latencyMs, leastMs) / leastMs) / base)
    const index = Math.min(bucket, bucketCount - 1)
    this.#counts[index] = (this.#counts[index] ?? 0) + 1
    this.#count++
  }

  /** The latency that a `share` of the answers did not exceed, or null before the first. */
  quantileMs(share: number): number | null {
    if (this.#count === 0) return null
    const rank = Math.max(1, Math.ceil(share * this.#count))
    let seen = 0
    const index = this.#counts.findIndex((count) => (seen += count) >= rank)
    return leastMs * Math.exp(index * base)
  }
}

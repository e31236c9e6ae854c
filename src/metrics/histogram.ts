/*
 * A histogram as preallocated slots, one for each bucket: an observation is a short search and two
 * additions. Buckets are added up only when somebody looks.
 */

/** The shape in which an exposition takes a metric's values. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** Where it is not the metric's own name: `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string
}

export class Histogram {
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  /** @param bounds upper bounds of the buckets, ascending, without +Inf. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#sum += value
  }

  /** Cumulative buckets, sum and count, as Prometheus wants them. */
  samples(name: string, labels: Readonly<Record<string, string>> = {}): Sample[] {
    return histogramSamples(name, labels, this.#bounds, this.#counts, this.#sum)
  }
}

/** @param counts of each bucket alone, the one above all bounds last. */
export function histogramSamples(
  name: string,
  labels: Readonly<Record<string, string>>,
  bounds: readonly number[],
  counts: Float64Array,
  sum: number,
): Sample[] {
  let count = 0
  const buckets = [...counts].map((counted, bucket) => {
    count += counted
    const le = bucket < bounds.length ? String(bounds[bucket]) : '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

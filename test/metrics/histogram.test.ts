/*
 * Histograms: cumulative buckets whose last one counts everything, for any observations.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Histogram } from '../../src/metrics/histogram.js'

describe('a histogram', () => {
  it('counts a value on a bound in the bucket of that bound', () => {
    const histogram = new Histogram([1, 2.5, 10])
    for (const value of [0, 1, 1.01, 2.5, 10, 10.01, 1e9]) histogram.observe(value)
    expect(histogram.samples('x', { rule: 'ip' })).toEqual([
      { metricName: 'x_bucket', labels: { rule: 'ip', le: '1' }, value: 2 },
      { metricName: 'x_bucket', labels: { rule: 'ip', le: '2.5' }, value: 4 },
      { metricName: 'x_bucket', labels: { rule: 'ip', le: '10' }, value: 5 },
      { metricName: 'x_bucket', labels: { rule: 'ip', le: '+Inf' }, value: 7 },
      { metricName: 'x_sum', labels: { rule: 'ip' }, value: 1_000_000_024.52 },
      { metricName: 'x_count', labels: { rule: 'ip' }, value: 7 },
    ])
  })

  it('has every series at 0 before the first observation', () => {
    const samples = new Histogram([1, 2]).samples('x')
    expect(samples.map(({ value }) => value)).toEqual([0, 0, 0, 0, 0])
  })

  it('is cumulative, and each bucket counts exactly what is at most its bound', () => {
    const bounds = [0.001, 0.1, 1, 7, 100]
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1_000, noNaN: true })), (values) => {
        const histogram = new Histogram(bounds)
        for (const value of values) histogram.observe(value)
        const counts = histogram
          .samples('x')
          .filter(({ metricName }) => metricName === 'x_bucket')
          .map(({ value }) => value)
        expect(counts).toEqual(
          [...bounds, Infinity].map((bound) => values.filter((value) => value <= bound).length),
        )
        expect(counts).toEqual(counts.toSorted((a, b) => a - b))
      }),
    )
  })
})

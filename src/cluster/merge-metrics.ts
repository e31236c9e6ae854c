/*
 * Metrics of several processes as those of one: counters, histograms and sums of summaries are added up,
 * gauges as their row says, and quantiles of summaries, which cannot be added, become the highest. Every
 * series is there once, in the order in which it first comes. Pure.
 */
import type { ReportedMetric, ReportedSeries } from './report.js'

/** Most series of dead workers: more than a gate has, less than a mistake in somebody's labels makes. */
export const keptSeriesMax = 20_000

type Combine = (one: number, other: number) => number

/** NaN is "not known" and gives way to what is. */
const knownOf =
  (combine: Combine): Combine =>
  (one, other) =>
    Number.isNaN(one) ? other : Number.isNaN(other) ? one : combine(one, other)

const add: Combine = (one, other) => one + other
const highest = knownOf(Math.max)
/** Of what each process has for itself, the least: the earliest start, the one that fails. */
const least = knownOf(Math.min)

interface Series {
  readonly series: ReportedSeries
  value: number
}

/** A metric that outlives its process: what it says is added up. */
export function isLasting({
  type,
  aggregate,
}: Pick<ReportedMetric, 'type' | 'aggregate'>): boolean {
  return type !== 'gauge' && aggregate === 'sum'
}

export function mergeMetrics(lists: readonly (readonly ReportedMetric[])[]): ReportedMetric[] {
  const metrics = new Map<string, { metric: ReportedMetric; series: Map<string, Series> }>()
  for (const metric of lists.flat()) {
    const known = metrics.get(metric.name) ?? { metric, series: new Map<string, Series>() }
    metrics.set(metric.name, known)
    for (const series of metric.series) merge(known.series, known.metric, series)
  }
  return [...metrics.values()].map(({ metric, series }) => ({
    ...metric,
    series: [...series.values()].map((each) => ({ ...each.series, value: encoded(each.value) })),
  }))
}

/** What is kept of metrics whose process has ended, with one more: their sums, without what is still 0. */
export function keepMetrics(
  kept: readonly ReportedMetric[],
  last: readonly ReportedMetric[],
): ReportedMetric[] {
  let seriesCount = 0
  const isKept = (metric: ReportedMetric, series: ReportedSeries) => {
    if (!isAdded(metric, series) || Number(series.value) === 0) return false
    return ++seriesCount <= keptSeriesMax
  }
  return mergeMetrics([kept, last.filter(isLasting)])
    .map((metric) => ({ ...metric, series: metric.series.filter((each) => isKept(metric, each)) }))
    .filter(({ series }) => series.length > 0)
}

/** The value as JSON can have it. */
export function encoded(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}

function merge(known: Map<string, Series>, metric: ReportedMetric, series: ReportedSeries): void {
  const name = nameOf(series)
  const value = Number(series.value)
  const before = known.get(name)
  if (before === undefined) known.set(name, { series, value })
  else before.value = combineOf(metric, series)(before.value, value)
}

function combineOf(metric: ReportedMetric, series: ReportedSeries): Combine {
  if (isLasting(metric)) return isAdded(metric, series) ? add : highest
  if (metric.aggregate === 'sum') return add
  return metric.aggregate === 'max' ? highest : least
}

/** All but the quantiles of a summary. */
function isAdded({ type }: ReportedMetric, series: ReportedSeries): boolean {
  return type !== 'summary' || series.name !== undefined
}

/** The same for the same labels, in whatever order they are written. */
function nameOf({ name = '', labels }: ReportedSeries): string {
  const entries = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([name, entries])
}

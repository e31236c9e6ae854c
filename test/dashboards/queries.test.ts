/*
 * Queries ask for metrics and labels that exist, are narrowed by the board's variables, and tell
 * "nothing happens" from "nothing is there". Names are compared with the metric table and with
 * what prom-client really registers. A failure lists the offenders by panel.
 */
import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { labelValues, metrics, type MetricRow } from '../../src/metrics/table.js'
import { boards, expressions, metricNames, selectors } from './board-reader.js'

const queries = boards().flatMap(expressions)
const labelsOf = await knownLabels()

describe('queries of the boards', () => {
  it('GRF-10: each metric is in the metric table or among the defaults of prom-client', () => {
    expect(queries.length).toBeGreaterThan(0)
    expect(offenders((expr) => metricNames(expr).some((name) => !labelsOf.has(name)))).toEqual([])
  })

  it('GRF-10: each label that selects a metric is one that the metric has', () => {
    expect(
      offenders((expr) =>
        selectors(expr).some(({ metric, labels }) =>
          labels.some((label) => isUnknown(metric, label)),
        ),
      ),
    ).toEqual([])
  })

  it.each([...closedLabels()])('each %s that is asked for exists', (label, known) => {
    const matcher = new RegExp(`[{,\\s]${label}!?="([^"]*)"`, 'g')
    expect(
      offenders((expr) => [...expr.matchAll(matcher)].some(([, value = '']) => !known.has(value))),
    ).toEqual([])
  })

  it('each metric is selected by the chosen jobs and instances', () => {
    const chosen = /\w\{\s*job=~"\$job",\s*instance=~"\$instance"/g
    expect(
      offenders((expr) => (expr.match(chosen) ?? []).length !== metricNames(expr).length),
    ).toEqual([])
  })

  it('metrics that other programs have too are kept to instances that run tallygate', () => {
    const foreign = /\b(?:process|nodejs)_/
    expect(offenders((expr) => foreign.test(expr)).length).toBeGreaterThan(0)
    const kept = /(?:and|\*) on \(job, instance\)[^]*tallygate_build_info/
    expect(offenders((expr) => foreign.test(expr) && !kept.test(expr))).toEqual([])
  })

  it('no query shows a constant for an app that is down', () => {
    expect(offenders((expr) => /vector\(|absent/.test(expr))).toEqual([])
  })

  it('a share of no traffic is 0 and not NaN', () => {
    expect(offenders(isShare).length).toBeGreaterThan(0)
    expect(offenders((expr) => isShare(expr) && !/ > 0\)\nor sum/.test(expr))).toEqual([])
  })

  it('a quantile of no observations is 0 and not NaN', () => {
    expect(offenders(isQuantile).length).toBeGreaterThan(0)
    expect(offenders((expr) => isQuantile(expr) && !/ > 0\s+or 0 \* sum/.test(expr))).toEqual([])
  })

  it('a quantile is taken over buckets, by le', () => {
    const sound = /histogram_quantile\([\d.]+, sum by \(le\b[^]*_bucket/
    expect(offenders((expr) => isQuantile(expr) && !sound.test(expr))).toEqual([])
  })

  it('instances that share a database are counted once', () => {
    const once = /^sum by \(outcome\) \(\s*max by \(database, window, period, outcome\) \(/
    expect(offenders(isWindow)).toHaveLength(labelValues.window.length * labelValues.period.length)
    expect(offenders((expr) => isWindow(expr) && !once.test(expr))).toEqual([])
  })

  it('no line of a query is longer than 100 columns', () => {
    expect(offenders((expr) => expr.split('\n').some((line) => line.length > 100))).toEqual([])
  })
})

const isShare = (expr: string): boolean => expr.includes('/ (sum')
const isQuantile = (expr: string): boolean => expr.includes('histogram_quantile')
const isWindow = (expr: string): boolean => expr.includes(metrics.windowRequests.name)

function isUnknown(metric: string, label: string): boolean {
  return !['job', 'instance', ...(labelsOf.get(metric) ?? [])].includes(label)
}

/** Where the queries stand of which `isBad` holds. */
function offenders(isBad: (expr: string) => boolean): string[] {
  return queries.filter(({ expr }) => isBad(expr)).map(({ where }) => where)
}

/** The labels of every metric that a scrape can hold, a histogram's parts each by its own name. */
async function knownLabels(): Promise<ReadonlyMap<string, readonly string[]>> {
  const known = new Map<string, readonly string[]>()
  const rows: readonly MetricRow[] = Object.values(metrics)
  for (const { name, type, labels } of rows) {
    if (type === 'histogram') {
      known.set(`${name}_bucket`, [...labels, 'le'])
      known.set(`${name}_count`, labels).set(`${name}_sum`, labels)
    } else {
      known.set(name, labels)
    }
  }
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const { name } of await registry.getMetricsAsJSON()) known.set(name, [])
  registry.clear()
  return known
}

/** Labels whose values are a closed set in every metric that has them, with all of these. */
function closedLabels(): Map<string, ReadonlySet<string>> {
  const rows: readonly MetricRow[] = Object.values(metrics)
  const shared: Readonly<Record<string, readonly string[]>> = labelValues
  const valuesOf = (row: MetricRow, label: string) => row.values?.[label] ?? shared[label]
  const labels = new Set(rows.flatMap((row) => row.labels))
  const closed = [...labels].flatMap((label): [string, ReadonlySet<string>][] => {
    const values = rows
      .filter((row) => row.labels.includes(label))
      .map((row) => valuesOf(row, label))
    return values.includes(undefined) ? [] : [[label, new Set(values.flatMap((one) => one ?? []))]]
  })
  return new Map(closed)
}

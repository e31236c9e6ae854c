/*
 * The adapter to prom-client, the one file that imports it. Each row of the table becomes an object whose
 * `get` reads the slots when Prometheus asks; nothing is written to prom-client on the request path.
 *
 * Of its default process metrics, three gauges whose names end in `_total` are left out: that ending
 * belongs to counters, and promtool says so.
 */
import { collectDefaultMetrics, Histogram, Registry, type Metric } from 'prom-client'
import { TallygateError } from '../core/errors.js'
import type { MetricKind, ReportedMetric } from '../cluster/report.js'
import type { Sample } from './histogram.js'
import { metrics, type Aggregate, type MetricId, type MetricRow } from './table.js'

/** Reads the values of one metric, all of them, as they are now. */
export type MetricSource = () => readonly Sample[] | Promise<readonly Sample[]>

export type MetricSources = Partial<Record<MetricId, MetricSource>>

export interface Exposition {
  readonly contentType: string
  /** Adds metrics; each may be added once. */
  add(sources: MetricSources): void
  /** Everything, in the text format 0.0.4. */
  text(): Promise<string>
  /** Of all metrics, in their order. */
  names(): string[]
  /** The values of these metrics, all read now; a source that has to ask somebody answers later. */
  read(isWanted: (metric: MetricShape) => boolean): Promise<ReportedMetric>[]
  /** The same format for values that were read, here or in other processes. */
  textOf(metrics: readonly ReportedMetric[]): Promise<string>
}

export interface MetricShape {
  readonly name: string
  readonly type: MetricKind
  readonly aggregate: Aggregate
}

/** What prom-client's metrics have, and its types do not tell. */
interface ReadableMetric {
  readonly name: string
  readonly help: string
  readonly type: MetricKind
  readonly aggregator?: string
  get(): Promise<{ values: readonly PromValue[] }>
}

interface PromValue {
  readonly metricName?: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

const misnamedDefaults = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** Series of the garbage collector that would else be born with the first collection of their kind. */
const gcKinds = ['major', 'minor', 'incremental', 'weakcb']

/**
 * @param given a registry to put the metrics into; its own default metrics are left as they are. Without
 * one a new registry is made, with the process metrics in it.
 */
export function createExposition(given?: Registry): Exposition {
  const registry = given ?? new Registry()
  refuseTaken(registry)
  if (given === undefined) {
    collectDefaultMetrics({ register: registry })
    for (const name of misnamedDefaults) registry.removeSingleMetric(name)
    const collections = registry.getSingleMetric('nodejs_gc_duration_seconds')
    if (collections instanceof Histogram) for (const kind of gcKinds) collections.zero({ kind })
  }
  return {
    contentType: Registry.PROMETHEUS_CONTENT_TYPE,
    add(sources) {
      for (const [id, source] of Object.entries(sources)) {
        if (source !== undefined) registry.registerMetric(adapt(metrics[id as MetricId], source))
      }
    },
    text: () => registry.metrics(),
    names: () => registry.getMetricsAsArray().map(({ name }) => name),
    read(isWanted) {
      const all = registry.getMetricsAsArray() as unknown as readonly ReadableMetric[]
      return all.flatMap((metric) => {
        const { name, type } = metric
        const aggregate = aggregateOf(metric)
        return isWanted({ name, type, aggregate }) ? [readMetric(metric, aggregate)] : []
      })
    },
    textOf: (read) => textOf(registry, read),
  }
}

/**
 * How a metric that is not in our table adds up: as it says itself, the averages of event loops as the
 * highest. What prom-client would take from the first process or leave out is each one's own.
 */
function aggregateOf({ aggregator }: ReadableMetric): Aggregate {
  if (aggregator === undefined || aggregator === 'sum') return 'sum'
  return aggregator === 'max' || aggregator === 'average' ? 'max' : 'one'
}

async function readMetric(metric: ReadableMetric, aggregate: Aggregate): Promise<ReportedMetric> {
  const { name, help, type } = metric
  const { values } = await metric.get()
  const series = values.map(({ metricName, labels, value }) => ({
    ...(metricName === undefined || metricName === name ? {} : { name: metricName }),
    labels: Object.fromEntries(
      Object.entries(labels).map(([label, text]) => [label, String(text)]),
    ),
    value: Number.isFinite(value) ? value : String(value),
  }))
  return { name, help, type, aggregate, series }
}

/** By the registry itself, so with its default labels. */
async function textOf(registry: Registry, read: readonly ReportedMetric[]): Promise<string> {
  const writer = registry as unknown as { getMetricsAsString(metric: object): Promise<string> }
  const texts = read.map(({ name, help, type, series }) => {
    const values = series.map(({ name: metricName = name, labels, value }) => ({
      metricName,
      labels,
      value: Number(value),
    }))
    return writer.getMetricsAsString({ get: async () => ({ name, help, type, values }) })
  })
  return `${(await Promise.all(texts)).join('\n\n')}\n`
}

/** A registry takes each name once, so two gates cannot share one. */
function refuseTaken(registry: Registry): void {
  const taken = Object.values(metrics).find(({ name }) => registry.getSingleMetric(name))
  if (taken === undefined) return
  throw new TallygateError(
    'TALLYGATE_OPTION',
    `Cannot create a gate: registry must be one that no other gate uses: ` +
      `received one that has ${taken.name} already`,
  )
}

/** prom-client asks of a metric no more than this; its type says class, so the cast is the adapter. */
function adapt(row: MetricRow, source: MetricSource): Metric {
  const { name, help, type } = row
  const aggregator = row.aggregate === 'one' ? 'first' : row.aggregate
  return {
    name,
    help,
    type,
    aggregator,
    get: async () => ({ name, help, type, aggregator, values: await source() }),
    reset: () => undefined,
  } as unknown as Metric
}

export type { Registry } from 'prom-client'

/*
 * The adapter to prom-client, the one file that imports it. Each row of the table becomes an object whose
 * `get` reads the slots when Prometheus asks; nothing is written to prom-client on the request path.
 *
 * Of its default process metrics, three gauges whose names end in `_total` are left out: that ending
 * belongs to counters, and promtool says so.
 */
import { collectDefaultMetrics, Histogram, Registry, type Metric } from 'prom-client'
import { TallygateError } from '../core/errors.js'
import type { Sample } from './histogram.js'
import { metrics, type MetricId, type MetricRow } from './table.js'

/** Reads the values of one metric, all of them, as they are now. */
export type MetricSource = () => readonly Sample[] | Promise<readonly Sample[]>

export type MetricSources = Partial<Record<MetricId, MetricSource>>

export interface Exposition {
  readonly contentType: string
  /** Adds metrics; each may be added once. */
  add(sources: MetricSources): void
  /** Everything, in the text format 0.0.4. */
  text(): Promise<string>
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
  }
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

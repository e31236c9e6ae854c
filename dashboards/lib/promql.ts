/*
 * The grammar that all queries share: how a metric is selected by the board's variables, and how a
 * counter becomes a rate. Names come from the metric table; what a query asks is in `queries.ts`.
 * Long selectors are broken over lines, so that a query can be read where Grafana shows it.
 */

/** Only what `select` needs of a row of the metric table. */
interface Named {
  readonly name: string
}

const chosen = 'job=~"$job",instance=~"$instance"'
const columnsMax = 68

/**
 * A metric of the chosen jobs and instances; `suffix` picks a histogram's part, as in `_bucket`.
 */
export function select(metric: Named, matchers = '', suffix = ''): string {
  const labels = matchers === '' ? [chosen] : [chosen, matchers]
  const flat = `${metric.name}${suffix}{${labels.join(',')}}`
  if (flat.length <= columnsMax) return flat
  return `${metric.name}${suffix}{\n${indent(labels.join(',\n'))}\n}`
}

/** Per second. The range is Grafana's: at least four scrapes, so that it never comes out empty. */
export function rate(selector: string): string {
  return `rate(${selector}[$__rate_interval])`
}

/** How much a counter grew over the whole time shown. */
export function increase(selector: string): string {
  return `increase(${selector}[$__range])`
}

/** `sum`, `max` or another aggregation, `by` the labels given, its argument on lines of its own. */
export function aggregate(operator: string, by: string, inner: string): string {
  const head = by === '' ? operator : `${operator} by (${by}) `
  return `${head}(\n${indent(inner)}\n)`
}

export function indent(text: string): string {
  return text.replaceAll(/^/gm, '  ')
}

/*
 * The row on answers: what clients get back and how long they wait, from the histogram of the
 * bundled app. An app of your own that does not record it has nothing here; the rows above do not
 * depend on it.
 */
import type { PanelBuilder as BarGaugePanel } from '@grafana/grafana-foundation-sdk/bargauge'
import type { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries'
import { config } from '../config.js'
import { always, one, palette } from '../lib/colours.js'
import { barGaugePanel, stackedPanel, timeSeriesPanel } from '../lib/look.js'
import * as queries from '../lib/queries.js'
import { line, moment } from '../lib/targets.js'

const { colours } = config

export function latency(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 401,
    title: 'How long do clients wait?',
    description:
      'Time from a request to the end of its response: half are faster than p50, 99 of 100 ' +
      'faster than p99. Declined ones count too, and are quick. 0 while nothing is answered.',
    unit: 's',
  })
    .axisSoftMax(config.axisLeast.latencySeconds)
    .overrideByName('p50', always(colours.typical))
    .overrideByName('p99', always(colours.slowest))
    .withTarget(line('A', queries.latencyQuantile(0.5), 'p50'))
    .withTarget(line('B', queries.latencyQuantile(0.99), 'p99'))
}

export function codes(): TimeSeriesPanel {
  return stackedPanel({
    id: 402,
    title: 'What do clients get back?',
    description:
      'Responses per second by status code, stacked. Green: served. Red: 429, declined. ' +
      'Purple: 5xx, the app failed. The routes outside the limits, such as /healthz, are ' +
      'counted here and not above.',
    unit: 'reqps',
  })
    .axisSoftMax(config.axisLeast.perSecond)
    .colorScheme(palette())
    .overrideByRegexp('/^status [123]/', always(colours.allowed))
    .overrideByRegexp('/^status 4/', always(colours.exempt))
    .overrideByName('status 429', always(colours.declined))
    .overrideByRegexp('/^status 5/', always(colours.failed))
    .withTarget(line('A', queries.responseRateByCode(), 'status {{code}}'))
}

export function slowRoutes(): BarGaugePanel {
  return barGaugePanel(
    {
      id: 403,
      title: 'Which routes are slowest?',
      description:
        'p99 of the time to answer, by route, for the slowest routes now. 0: nobody asks for ' +
        'it now.',
      unit: 's',
    },
    'route',
  )
    .colorScheme(one(colours.exempt))
    .withTarget(moment('A', queries.slowestRoutes(config.slowestRoutes), '{{route}}'))
}

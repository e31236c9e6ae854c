/*
 * The row on processes: whether tallygate itself is short of memory, processor or time. One line
 * for each instance; strangers that report the same metrics are kept out by the queries.
 */
import type { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat'
import type { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries'
import { config } from '../config.js'
import { one, shadesOf } from '../lib/colours.js'
import { statListPanel, timeSeriesPanel } from '../lib/look.js'
import * as queries from '../lib/process-queries.js'
import { line, moment } from '../lib/targets.js'

const { typical, slowest } = config.colours

export function uptime(): StatPanel {
  return statListPanel({
    id: 601,
    title: 'What runs, and since when?',
    description: 'Each instance with its versions, and the time since its process started.',
    unit: 'dtdurations',
  })
    .decimals(0)
    .colorScheme(one(config.colours.neutral))
    .withTarget(
      moment('A', queries.uptimeByVersion(), '{{instance}}: tallygate {{version}}, Node {{node}}'),
    )
}

export function memory(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 602,
    title: 'How much memory does each process hold?',
    description: 'Resident is what the system counts; heap is what JavaScript uses of it.',
    unit: 'bytes',
  })
    .overrideByQuery('A', shadesOf(typical))
    .overrideByQuery('B', shadesOf(slowest))
    .withTarget(line('A', queries.residentMemory(), '{{instance}} resident'))
    .withTarget(line('B', queries.heapUsed(), '{{instance}} heap'))
}

export function eventLoop(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 603,
    title: 'Is the event loop late?',
    description:
      'Lag of the event loop: what every answer waits in addition. About 10 ms is the clock ' +
      'of the measurement itself; a p99 above 100 ms is felt by clients.',
    unit: 's',
  })
    .axisSoftMax(config.axisLeast.eventLoopLagSeconds)
    .overrideByQuery('A', shadesOf(typical))
    .overrideByQuery('B', shadesOf(slowest))
    .withTarget(line('A', queries.eventLoopLag('p50'), '{{instance}} p50'))
    .withTarget(line('B', queries.eventLoopLag('p99'), '{{instance}} p99'))
}

export function processor(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 604,
    title: 'How busy is each process?',
    description:
      'Share of one processor. JavaScript runs on one thread: near 100 % requests begin to queue.',
    unit: 'percentunit',
  })
    .overrideByQuery('A', shadesOf(slowest))
    .withTarget(line('A', queries.processorShare(), '{{instance}}'))
}

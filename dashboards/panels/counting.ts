/*
 * The row on counting: whether the figures above can be trusted. Counts wait in memory and are
 * flushed to the database each second; a failing database delays them, and only a process that
 * ends meanwhile loses them.
 */
import type { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat'
import type { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries'
import { config } from '../config.js'
import { always, byThresholds, one, steps } from '../lib/colours.js'
import { type PanelSpec, statPanel, timeSeriesPanel } from '../lib/look.js'
import * as queries from '../lib/queries.js'
import { line, moment } from '../lib/targets.js'

const { colours } = config

export function flushAge(): StatPanel {
  return neutralStat({
    id: 501,
    title: 'Since the last save',
    description:
      'Time since counts were last saved, on the instance that is furthest behind. Each second ' +
      'is usual, with or without traffic; more means that the database does not answer.',
    unit: 's',
  })
    .decimals(0)
    .withTarget(moment('A', queries.flushAge(), 'since the last save'))
}

export function failedFlushes(): StatPanel {
  return alarmingStat({
    id: 502,
    title: 'Failed saves',
    description:
      'Attempts to write counts down that failed in the time shown. The counts wait in memory ' +
      'and are tried again each second; a process that ends meanwhile takes them along.',
    unit: 'locale',
  }).withTarget(moment('A', queries.failedFlushes(), 'failed saves'))
}

export function liveEvictions(): StatPanel {
  return alarmingStat({
    id: 503,
    title: 'Live keys dropped',
    description:
      'Keys forgotten before their time in the time shown, because a rule tracked as many as ' +
      'it may. Their clients begin anew; raise maxKeys, or find out who makes so many keys.',
    unit: 'locale',
  }).withTarget(moment('A', queries.liveEvictions(), 'keys dropped'))
}

export function databaseSize(): StatPanel {
  return neutralStat({
    id: 504,
    title: 'Size of the database',
    description: 'Size of the largest SQLite file; 0 where the tallies are kept in memory.',
    unit: 'bytes',
  }).withTarget(moment('A', queries.databaseSize(), 'size'))
}

export function sessions(): StatPanel {
  return neutralStat({
    id: 505,
    title: 'Open sessions',
    description: 'Sessions of the bundled app that have not expired.',
    unit: 'locale',
  }).withTarget(moment('A', queries.sessions(), 'sessions'))
}

export function adminFailures(): StatPanel {
  return alarmingStat({
    id: 506,
    title: 'Wrong admin tokens',
    description:
      'Requests to the admin routes with a wrong token in the time shown: a stale script, or ' +
      'someone guessing.',
    unit: 'locale',
  }).withTarget(moment('A', queries.adminAuthFailures(), 'wrong tokens'))
}

export function pending(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 507,
    title: 'How many counts wait to be saved?',
    description:
      'Requests counted in memory and not yet in the database. A flush comes each second, so ' +
      'this is about a second of traffic; a steady climb means that the database takes no ' +
      'writes.',
    unit: 'short',
  })
    .axisSoftMax(config.axisLeast.pendingCount)
    .colorScheme(one(colours.exempt))
    .withTarget(line('A', queries.pendingRequests(), 'waiting'))
}

export function flushTime(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 508,
    title: 'How long does a save take?',
    description:
      'Time of a flush. No request waits for one; above a second, counts begin to pile up. 0 ' +
      'while there is nothing to save.',
    unit: 's',
  })
    .axisSoftMax(config.axisLeast.flushSeconds)
    .overrideByName('p50', always(colours.typical))
    .overrideByName('p99', always(colours.slowest))
    .withTarget(line('A', queries.flushQuantile(0.5), 'p50'))
    .withTarget(line('B', queries.flushQuantile(0.99), 'p99'))
}

export function flushes(): TimeSeriesPanel {
  return timeSeriesPanel({
    id: 509,
    title: 'Do saves succeed?',
    description: 'Flushes per second by result, over all instances. A failed one is tried again.',
    unit: 'ops',
  })
    .axisSoftMax(config.axisLeast.perSecond)
    .overrideByName('ok', always(colours.allowed))
    .overrideByName('failed', always(colours.failed))
    .withTarget(line('A', queries.flushRateByResult(), '{{result}}'))
}

function neutralStat(spec: PanelSpec): StatPanel {
  return statPanel(spec).colorScheme(one(colours.neutral))
}

/** Good at 0, bad from the first. */
function alarmingStat(spec: PanelSpec): StatPanel {
  return statPanel(spec)
    .decimals(0)
    .colorScheme(byThresholds())
    .thresholds(steps(colours.allowed, [config.declinesPerSecond, colours.declined]))
}

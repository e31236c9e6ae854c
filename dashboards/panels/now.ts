/*
 * The first row: is anyone being declined who should not be? A limit of one client declines the
 * client that asked too much; a limit shared by all declines whoever comes next. So the two are
 * told apart here.
 */
import type { PanelBuilder as BarGaugePanel } from '@grafana/grafana-foundation-sdk/bargauge'
import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common'
import { MappingType } from '@grafana/grafana-foundation-sdk/dashboard'
import type { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat'
import type { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries'
import { config } from '../config.js'
import { always, byThresholds, from, steps } from '../lib/colours.js'
import {
  barGaugePanel,
  perSecond,
  rulesPanel,
  stackedPanel,
  statListPanel,
  statPanel,
} from '../lib/look.js'
import * as queries from '../lib/queries.js'
import { line, moment } from '../lib/targets.js'

const { colours } = config

export function declinedShare(): StatPanel {
  return statPanel({
    id: 101,
    title: 'Share of requests declined',
    description:
      'Declined requests among all that were judged, over the last minute or more. Exempt ' +
      'requests are left out. Amber: a few greedy clients. Red: so many that ordinary clients' +
      ' must be among them.',
    unit: 'percentunit',
  })
    .decimals(1)
    .colorScheme(byThresholds())
    .thresholds(
      steps(
        colours.allowed,
        [config.declinedShareWarning, colours.near],
        [config.declinedShareCritical, colours.declined],
      ),
    )
    .withTarget(moment('A', queries.declinedShare(), 'declined'))
}

export function requestsNow(): StatPanel {
  return statListPanel({
    id: 102,
    title: 'Requests now',
    description: 'Requests per second by what became of them, over the last minute or more.',
    unit: 'reqps',
  })
    .decimals(1)
    .overrideByName('allowed', always(colours.allowed))
    .overrideByName('declined', from(config.declinesPerSecond, colours.declined, colours.neutral))
    .overrideByName('exempt', always(colours.exempt))
    .withTarget(moment('A', queries.requestRateByOutcome(), '{{outcome}}'))
}

export function declinedByShared(): StatPanel {
  return declines('everyone')({
    id: 103,
    title: 'Declined: shared limits',
    description:
      'Declines per second by rules whose key is global. They hit whoever comes next, not ' +
      'whoever caused them: more than 0 here means that innocent clients are turned away. The' +
      ' rules are in the row below.',
    unit: perSecond,
  })
}

export function declinedByOwn(): StatPanel {
  return declines('one client')({
    id: 104,
    title: 'Declined: own limits',
    description:
      'Declines per second by rules that count each client, session or other key for itself. ' +
      'They hit only the key that asked too much: usually right, unless the limit is too ' +
      'tight or many share an address.',
    unit: perSecond,
  })
}

export function closestRule(): StatPanel {
  return statPanel({
    id: 105,
    title: 'Closest to its limit',
    description:
      'The rule whose busiest key has used the largest share of its limit, in the current or ' +
      'the last window.',
    unit: 'percentunit',
  })
    .decimals(0)
    .textMode(BigValueTextMode.ValueAndName)
    .colorScheme(byThresholds())
    .thresholds(utilizationSteps())
    .withTarget(moment('A', queries.closestRule(), '{{rule}}'))
}

export function countsSaved(): StatPanel {
  return statPanel({
    id: 106,
    title: 'Are counts saved?',
    description:
      'Whether the last flush to the database succeeded on every instance. If not, limits ' +
      'still work, but the calendar counts below stand still; see the row on counting.',
    unit: 'short',
  })
    .colorScheme(byThresholds())
    .thresholds(steps(colours.declined, [1, colours.allowed]))
    .mappings([
      { type: MappingType.ValueToText, options: { 0: { text: 'no' }, 1: { text: 'yes' } } },
    ])
    .withTarget(moment('A', queries.databaseUp(), 'saved'))
}

export function outcomes(): TimeSeriesPanel {
  return stackedPanel({
    id: 107,
    title: 'What becomes of requests?',
    description: 'Requests per second, stacked: the height is all of them, red the declined.',
    unit: 'reqps',
  })
    .axisSoftMax(config.axisLeast.perSecond)
    .overrideByName('allowed', always(colours.allowed))
    .overrideByName('declined', always(colours.declined))
    .overrideByName('exempt', always(colours.exempt))
    .withTarget(line('A', queries.requestRateByOutcome(), '{{outcome}}'))
}

export function decliningRules(): TimeSeriesPanel {
  return rulesPanel({
    id: 108,
    title: 'Which rules decline?',
    description:
      'Declines per second by each enforced rule. One request may be declined by several, so ' +
      'the lines may add up to more than the declined requests.',
    unit: perSecond,
  })
    .axisSoftMax(config.axisLeast.perSecond)
    .withTarget(line('A', queries.declineRateByRule(), '{{rule}}'))
}

export function utilization(): BarGaugePanel {
  return barGaugePanel(
    {
      id: 109,
      title: 'How close is each rule to its limit?',
      description:
        'Usage of the busiest key as a share of the limit, in the current or the last window.' +
        ' Amber from ' +
        `${config.utilizationNear * 100} %, red where it declines.`,
      unit: 'percentunit',
    },
    'rule',
  )
    .max(config.utilizationFull)
    .decimals(0)
    .colorScheme(byThresholds())
    .thresholds(utilizationSteps())
    .withTarget(moment('A', queries.utilizationByRule(), '{{rule}}'))
}

/** One figure that is neutral at none and red at any. */
function declines(reach: 'everyone' | 'one client') {
  return (spec: Parameters<typeof statPanel>[0]): StatPanel =>
    statPanel(spec)
      .decimals(1)
      .colorScheme(byThresholds())
      .thresholds(steps(colours.allowed, [config.declinesPerSecond, colours.declined]))
      .withTarget(moment('A', queries.declineRateByReach(reach), 'declines'))
}

function utilizationSteps() {
  return steps(
    colours.within,
    [config.utilizationNear, colours.near],
    [config.utilizationFull, colours.declined],
  )
}

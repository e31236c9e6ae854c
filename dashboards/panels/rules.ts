/*
 * Lines over time for each rule, below the table of rules: how full the limits were, which rules
 * came near theirs, and how many keys each tracks. A rule has the same colour on all of them.
 */
import type { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries'
import { config } from '../config.js'
import { perSecond, rulesPanel } from '../lib/look.js'
import * as queries from '../lib/queries.js'
import { line } from '../lib/targets.js'

export function nearRules(): TimeSeriesPanel {
  return rulesPanel({
    id: 302,
    title: 'Which rules are near their limit?',
    description:
      'Attempts per second that were allowed with more than the near share of the limit used:' +
      ' what is likely to be declined soon.',
    unit: perSecond,
  })
    .axisSoftMax(config.axisLeast.perSecond)
    .withTarget(line('A', queries.verdictRateByRule('near'), '{{rule}}'))
}

export function utilizationOverTime(): TimeSeriesPanel {
  return rulesPanel({
    id: 303,
    title: 'How full were the limits?',
    description: 'Usage of the busiest key as a share of the limit. A rule declines at 100 %.',
    unit: 'percentunit',
  })
    .axisSoftMax(config.utilizationFull)
    .withTarget(line('A', queries.utilizationByRule(), '{{rule}}'))
}

export function trackedKeys(): TimeSeriesPanel {
  return rulesPanel({
    id: 304,
    title: 'How many keys does each rule track?',
    description:
      'Clients, sessions or other keys in memory now. A global rule has one. A sudden rise is' +
      ' a crowd, or someone who changes addresses.',
    unit: 'short',
  })
    .decimals(0)
    .axisSoftMax(config.axisLeast.keys)
    .withTarget(line('A', queries.keysByRule(), '{{rule}}'))
}

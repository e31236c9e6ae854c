/*
 * The table of rules: how each is set and what it decides now. Each figure is a query of its own;
 * the frames are joined by rule. The list below is all there is to a column: its header, its
 * query, its look, its place.
 */
import type { PanelBuilder as TablePanel } from '@grafana/grafana-foundation-sdk/table'
import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard'
import { config } from '../config.js'
import { from, steps } from '../lib/colours.js'
import { perSecond, tablePanel } from '../lib/look.js'
import * as queries from '../lib/queries.js'
import { column } from '../lib/targets.js'

interface Column {
  readonly header: string
  /** The label that `ruleInfo` reports, or the refId of a query whose values fill the column. */
  readonly field: string
  readonly query?: string
  readonly look: readonly DynamicConfigValue[]
}

const { colours, declinesPerSecond, utilizationNear, utilizationFull } = config
const { neutral } = colours
const colouredText: DynamicConfigValue = { id: 'custom.cellOptions', value: { type: 'color-text' } }
const rate = unit(perSecond, 1)

const columns: readonly Column[] = [
  { header: 'Rule', field: 'rule', look: [] },
  { header: 'Mode', field: 'mode', look: [] },
  { header: 'Key', field: 'key', look: [] },
  { header: 'Algorithm', field: 'algorithm', look: [{ id: 'custom.minWidth', value: 130 }] },
  { header: 'Limit', field: 'limit', query: queries.ruleLimit(), look: unit('locale', 0) },
  { header: 'Window', field: 'window', query: queries.ruleWindow(), look: unit('dtdurations', 0) },
  {
    header: 'Highest use',
    field: 'use',
    query: queries.utilizationByRule(),
    look: [
      ...unit('percentunit', 0),
      colouredText,
      {
        id: 'thresholds',
        value: steps(
          colours.within,
          [utilizationNear, colours.near],
          [utilizationFull, colours.declined],
        ).build(),
      },
    ],
  },
  verdictColumn('Within', 'within', colours.within),
  verdictColumn('Near', 'near', colours.near),
  verdictColumn('Over', 'over', colours.declined),
  { header: 'Keys', field: 'keys', query: queries.keysByRule(), look: unit('locale', 0) },
  {
    header: 'Key table full',
    field: 'full',
    query: queries.keyTableShareByRule(),
    look: unit('percentunit', 1),
  },
]

export function ruleTable(): TablePanel {
  const panel = tablePanel({
    id: 301,
    title: 'Rules: how each is set, and what it decides now',
    description:
      'Within, near and over are attempts per second by verdict; over declines only where the' +
      ' mode is enforce. Highest use is the share of the limit that the busiest key has used.',
    unit: 'short',
  })
    // Without this frame a rule has no row: it brings the labels that the other frames lack.
    .withTarget(column('info', queries.ruleInfo()))
    // Every frame has a Time of its own; left in, they would all become columns.
    .withTransformation({
      id: 'filterFieldsByName',
      options: { include: { pattern: '^(?!Time).*$' } },
    })
    .withTransformation({ id: 'joinByField', options: { byField: 'rule', mode: 'outer' } })
    .withTransformation({ id: 'organize', options: organized() })
  for (const { header, field, query, look } of columns) {
    if (query !== undefined) panel.withTarget(column(field, query))
    if (look.length > 0) panel.overrideByName(header, [...look])
  }
  return panel
}

function organized(): Record<string, Record<string, string | number | boolean>> {
  return {
    excludeByName: { 'Value #info': true },
    indexByName: Object.fromEntries(columns.map((each, index) => [fieldOf(each), index])),
    renameByName: Object.fromEntries(columns.map((each) => [fieldOf(each), each.header])),
  }
}

/** What the joined frames call a column before it is renamed. */
function fieldOf({ field, query }: Column): string {
  return query === undefined ? field : `Value #${field}`
}

function verdictColumn(
  header: string,
  verdict: 'within' | 'near' | 'over',
  colour: string,
): Column {
  const look = [...rate, colouredText, ...from(declinesPerSecond, colour, neutral)]
  return { header, field: verdict, query: queries.verdictRateByRule(verdict), look }
}

function unit(name: string, decimals: number): readonly DynamicConfigValue[] {
  return [
    { id: 'unit', value: name },
    { id: 'decimals', value: decimals },
  ]
}

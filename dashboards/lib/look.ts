/*
 * How panels look: one helper for each kind of panel, so that all boards look alike and a panel's
 * own file holds only its question. Every panel gets its id, title, description and unit here,
 * and cannot go without. Units are Grafana's names: `reqps`, `percentunit`, `s`, `bytes`,
 * `short`.
 */
import { PanelBuilder as BarGaugePanel } from '@grafana/grafana-foundation-sdk/bargauge'
import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import type { DataSourceRef } from '@grafana/grafana-foundation-sdk/common'
import * as common from '@grafana/grafana-foundation-sdk/common'
import type { Panel, ThresholdsConfig } from '@grafana/grafana-foundation-sdk/dashboard'
import { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat'
import { PanelBuilder as TablePanel } from '@grafana/grafana-foundation-sdk/table'
import { PanelBuilder as TimeSeriesPanel } from '@grafana/grafana-foundation-sdk/timeseries'
import { config } from '../config.js'
import { always, palette } from './colours.js'
import { datasource } from './variables.js'

/** The unit of attempts, verdicts and declines: Grafana's own `reqps` would call them requests. */
export const perSecond = 'suffix:/s'

export interface PanelSpec {
  /**
   * Stable: links and annotations name a panel by it. Hundreds are the row, as in `overview.ts`.
   */
  readonly id: number
  /** One question, or the name of what is shown. */
  readonly title: string
  /** What the figure means and, where it is bad, what to look at next. */
  readonly description: string
  readonly unit: string
}

/** What the builders of all kinds of panels have in common. */
interface AnyPanel extends Builder<Panel> {
  id(id: number): this
  title(title: string): this
  description(description: string): this
  unit(unit: string): this
  datasource(datasource: DataSourceRef): this
  thresholds(thresholds: Builder<ThresholdsConfig>): this
}

/**
 * Figures of this moment. Instant queries: a range's last value would outlive the app by an hour.
 */
export function statPanel(spec: PanelSpec): StatPanel {
  return dress(new StatPanel(), spec)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .graphMode(common.BigValueGraphMode.None)
    .colorMode(common.BigValueColorMode.Value)
    .textMode(common.BigValueTextMode.Auto)
    .text(new common.VizTextDisplayOptionsBuilder().titleSize(15).valueSize(34))
}

/** Several figures of one panel as a list, each with its name on the left. */
export function statListPanel(spec: PanelSpec): StatPanel {
  return statPanel(spec)
    .orientation(common.VizOrientation.Horizontal)
    .textMode(common.BigValueTextMode.ValueAndName)
    .text(new common.VizTextDisplayOptionsBuilder().titleSize(15).valueSize(20))
}

/**
 * Lines over time, from zero up. The legend is one line of names: a table of values would crop
 * itself.
 */
export function timeSeriesPanel(spec: PanelSpec): TimeSeriesPanel {
  return dress(new TimeSeriesPanel(), spec)
    .min(0)
    .lineWidth(2)
    .fillOpacity(8)
    .showPoints(common.VisibilityMode.Never)
    .legend(
      new common.VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom),
    )
    .tooltip(
      new common.VizTooltipOptionsBuilder()
        .mode(common.TooltipDisplayMode.Multi)
        // oxlint-disable-next-line unicorn/no-array-sort -- a builder's setting, no array
        .sort(common.SortOrder.Descending),
    )
}

/** One line for each rule: whichever the question, a rule has the same colour on every panel. */
export function rulesPanel(spec: PanelSpec): TimeSeriesPanel {
  const panel = timeSeriesPanel(spec).fillOpacity(0).colorScheme(palette())
  for (const [rule, colour] of Object.entries(config.ruleColours)) {
    panel.overrideByName(rule, always(colour))
  }
  return panel
}

/** Areas that add up to a whole. */
export function stackedPanel(spec: PanelSpec): TimeSeriesPanel {
  return timeSeriesPanel(spec)
    .lineWidth(1)
    .fillOpacity(45)
    .stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal))
}

/**
 * One bar for each value of `label`, now. Grafana would leave a bar that stands alone without its
 * name.
 */
export function barGaugePanel(spec: PanelSpec, label: string): BarGaugePanel {
  return dress(new BarGaugePanel(), spec)
    .displayName(`\${__field.labels.${label}}`)
    .sizing(common.BarGaugeSizing.Manual)
    .minVizHeight(16)
    .maxVizHeight(48)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .orientation(common.VizOrientation.Horizontal)
    .displayMode(common.BarGaugeDisplayMode.Basic)
    .valueMode(common.BarGaugeValueMode.Color)
    .namePlacement(common.BarGaugeNamePlacement.Top)
    .showUnfilled(true)
    .min(0)
}

export function tablePanel(spec: PanelSpec): TablePanel {
  return dress(new TablePanel(), spec).cellHeight(common.TableCellHeight.Sm).minWidth(80)
}

function dress<Kind extends AnyPanel>(panel: Kind, spec: PanelSpec): Kind {
  return panel
    .id(spec.id)
    .title(spec.title)
    .description(spec.description)
    .unit(spec.unit)
    .datasource(datasource)
}

/*
 * Queries as targets of a panel. An instant target asks for this moment only: stats, bars and
 * tables are of that kind. A range target asks for a line. `refId` is a word where a table names
 * its columns by it.
 */
import {
  DataqueryBuilder,
  PromQueryFormat,
  QueryEditorMode,
} from '@grafana/grafana-foundation-sdk/prometheus'
import { datasource } from './variables.js'

/** A line over time; `legend` may hold label names, as in `{{rule}}`. */
export function line(refId: string, expression: string, legend: string): DataqueryBuilder {
  return target(refId, expression).range().legendFormat(legend)
}

/** A value of this moment for each series. */
export function moment(refId: string, expression: string, legend: string): DataqueryBuilder {
  return target(refId, expression).instant().legendFormat(legend)
}

/** A column of a table, one row for each series; Grafana calls its values `Value #refId`. */
export function column(refId: string, expression: string): DataqueryBuilder {
  return target(refId, expression).instant().format(PromQueryFormat.Table)
}

function target(refId: string, expression: string): DataqueryBuilder {
  return new DataqueryBuilder()
    .refId(refId)
    .datasource(datasource)
    .editorMode(QueryEditorMode.Code)
    .expr(expression)
}

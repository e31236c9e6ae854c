/*
 * What all boards have in common: time range, refresh, variables, annotations, and that they are
 * read-only in Grafana, because what is edited there is lost when Grafana starts again (see
 * docs/dashboards.md).
 */
import {
  AnnotationQueryBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { config } from '../config.js'
import { layOut, type Row } from './layout.js'
import { restarts } from './process-queries.js'
import { datasource, variables } from './variables.js'

export interface BoardSpec {
  readonly uid: string
  readonly title: string
  readonly description: string
  readonly rows: readonly Row[]
}

export function board(spec: BoardSpec): Dashboard {
  const built = new DashboardBuilder(spec.title)
    .uid(spec.uid)
    .description(spec.description)
    .tags(['tallygate'])
    .timezone('browser')
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: config.timeFrom, to: config.timeTo })
    .refresh(config.refresh)
    .variables(variables())
    .annotation(restartAnnotation())
    .build()
  return { ...built, panels: layOut(spec.rows) }
}

/** A line through all panels where a process started anew: its counters begin at 0 there. */
function restartAnnotation(): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name('Restarts')
    .datasource(datasource)
    .enable(true)
    .iconColor(config.colours.exempt)
    .expr(restarts())
    .step(config.scrapeInterval)
    .titleFormat('Restart')
    .textFormat('{{instance}} started anew')
    .tagKeys('job')
}

/*
 * What a viewer may choose: the data source, the jobs and the instances. Jobs and instances are
 * read from tallygate's build info, so the lists hold nothing but tallygate. `All` is `.+` and
 * not a list of names: an instance that starts while the board is open is then seen at once.
 */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import type { DataSourceRef } from '@grafana/grafana-foundation-sdk/common'
import {
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard'
import { metrics } from '../../src/metrics/table.js'

/** The data source that the viewer chose; no board names one of its own. */
export const datasource: DataSourceRef = { type: 'prometheus', uid: '${datasource}' }

export function variables(): Builder<VariableModel>[] {
  const build = metrics.buildInfo.name
  return [
    new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
    choice('job', 'Job', `label_values(${build}, job)`),
    choice('instance', 'Instance', `label_values(${build}{job=~"$job"}, instance)`),
  ]
}

function choice(name: string, label: string, query: string): Builder<VariableModel> {
  return (
    new QueryVariableBuilder(name)
      .label(label)
      .datasource(datasource)
      .query({ qryType: 1, query, refId: 'PrometheusVariableQueryEditor-VariableQuery' })
      .definition(query)
      .refresh(VariableRefresh.OnTimeRangeChanged)
      // oxlint-disable-next-line unicorn/no-array-sort -- a builder's setting, no array
      .sort(VariableSort.AlphabeticalAsc)
      .multi(true)
      .includeAll(true)
      .allValue('.+')
      .current({ selected: true, text: ['All'], value: ['$__all'] })
  )
}

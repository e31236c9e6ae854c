/*
 * The calendar row: this minute, hour, day and week, each beside the one before it. The counts
 * come from the database, so they outlive restarts; a current window is still running and its
 * predecessor is whole.
 */
import type { PanelBuilder as StatPanel } from '@grafana/grafana-foundation-sdk/stat'
import type { labelValues } from '../../src/metrics/table.js'
import { config } from '../config.js'
import { always, from } from '../lib/colours.js'
import { statListPanel } from '../lib/look.js'
import { windowRequests } from '../lib/queries.js'
import { moment } from '../lib/targets.js'

type Window = (typeof labelValues.window)[number]

interface Wording {
  readonly id: number
  readonly title: string
  readonly current: string
  readonly previous: string
}

const wordings: Readonly<Record<Window, Wording>> = {
  minute: { id: 201, title: 'This minute', current: 'this minute', previous: 'the minute before' },
  hour: { id: 202, title: 'This hour', current: 'this hour', previous: 'the hour before' },
  day: { id: 203, title: 'Today', current: 'today', previous: 'yesterday' },
  week: { id: 204, title: 'This week', current: 'this week', previous: 'last week' },
}

export function calendarWindow(window: Window): StatPanel {
  const { id, title, current, previous } = wordings[window]
  const { allowed, declined, neutral } = config.colours
  return statListPanel({
    id,
    title,
    description:
      `Requests allowed and declined ${current} so far, and ${previous} as a whole, on the ` +
      'calendar that tallygate is set to. Kept in the database: a restart does not begin them anew. ' +
      'Exempt ones are left out.',
    unit: 'locale',
  })
    .overrideByRegexp('/^allowed/', always(allowed))
    .overrideByRegexp('/^declined/', from(1, declined, neutral))
    .withTarget(moment('A', windowRequests(window, 'current'), `{{outcome}} ${current} so far`))
    .withTarget(moment('B', windowRequests(window, 'previous'), `{{outcome}} ${previous}`))
}

/*
 * The Overview board, for a person at three in the morning: the first row says whether anyone is
 * declined who should not be, each later row why. This file holds the order only; ids of rows are
 * the hundreds of their panels' ids.
 */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard'
import { board } from './lib/board.js'
import * as answers from './panels/answers.js'
import * as counting from './panels/counting.js'
import * as now from './panels/now.js'
import * as processes from './panels/processes.js'
import { ruleTable } from './panels/rule-table.js'
import * as rules from './panels/rules.js'
import { calendarWindow } from './panels/windows.js'

export function overview(): Dashboard {
  return board({
    uid: 'tallygate-overview',
    title: 'tallygate / Overview',
    description:
      'What tallygate allows and declines, which rule decides, and how close each limit is.',
    rows: [nowRow, windowsRow, rulesRow, answersRow, countingRow, processesRow].map((row) => row()),
  })
}

const nowRow = () => ({
  id: 100,
  title: 'Is anyone being declined who should not be?',
  collapsed: false,
  lines: [
    {
      height: 4,
      panels: [
        now.declinedShare(),
        now.requestsNow(),
        now.declinedByShared(),
        now.declinedByOwn(),
        now.closestRule(),
        now.countsSaved(),
      ],
    },
    { height: 8, panels: [now.outcomes(), now.decliningRules(), now.utilization()] },
  ],
})

const windowsRow = () => ({
  id: 200,
  title: 'Is that more than usual?',
  collapsed: false,
  lines: [
    {
      height: 6,
      panels: [
        calendarWindow('minute'),
        calendarWindow('hour'),
        calendarWindow('day'),
        calendarWindow('week'),
      ],
    },
  ],
})

const rulesRow = () => ({
  id: 300,
  title: 'Which rule decides?',
  collapsed: false,
  lines: [
    { height: 7, panels: [ruleTable()] },
    { height: 8, panels: [rules.utilizationOverTime(), rules.nearRules(), rules.trackedKeys()] },
  ],
})

const answersRow = () => ({
  id: 400,
  title: 'What do clients notice?',
  collapsed: false,
  lines: [{ height: 8, panels: [answers.codes(), answers.latency(), answers.slowRoutes()] }],
})

const countingRow = () => ({
  id: 500,
  title: 'Can these figures be trusted?',
  collapsed: true,
  lines: [
    {
      height: 4,
      panels: [
        counting.flushAge(),
        counting.failedFlushes(),
        counting.liveEvictions(),
        counting.databaseSize(),
        counting.sessions(),
        counting.adminFailures(),
      ],
    },
    { height: 8, panels: [counting.pending(), counting.flushTime(), counting.flushes()] },
  ],
})

const processesRow = () => ({
  id: 600,
  title: 'Are the processes well?',
  collapsed: true,
  lines: [
    {
      height: 8,
      panels: [
        processes.uptime(),
        processes.memory(),
        processes.eventLoop(),
        processes.processor(),
      ],
    },
  ],
})

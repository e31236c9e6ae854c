/*
 * A run of `tallygate traffic` in words: the line that is rewritten while it goes on, and the summary at its
 * end. Pure text of a report, so that it can be tested without a run.
 */
import { STATUS_CODES } from 'node:http'
import type { Progress, TrafficReport } from '../traffic/report.js'

export function progressLine({ elapsedMs, sent, statuses }: Progress): string {
  const seconds = Math.round(elapsedMs / 1_000)
  return `${seconds} s: ${sent} sent, ${statuses['200'] ?? 0} × 200, ${statuses['429'] ?? 0} × 429`
}

export function summary(report: TrafficReport): string {
  const { sent, answered, failed, elapsedMs, clientCount, sessions, latencyMs } = report
  const seconds = elapsedMs / 1_000
  const lines = [
    `${sent} requests of ${clientCount} clients in ${seconds.toFixed(1)} s ` +
      `(${(sent / seconds).toFixed(1)} a second, seed ${report.seed})${stopped[report.stoppedBy]}`,
    '',
    ...table([
      ...Object.entries(report.statuses).map(([status, count]) => statusRow(status, count)),
      ['failed', failed, 'no answer'],
      ['sent', sent, `${answered} answered + ${failed} failed`],
    ]),
    '',
    ...declinedLines(report),
    `sessions     ${sessions.begun} begun, ${sessions.ended} ended`,
    `latency      p50 ${shownMs(latencyMs.p50)}, p99 ${shownMs(latencyMs.p99)}`,
    ...addressLines(report),
    '',
    'where to look next',
    `  ${report.url}metrics`,
    `  ${report.url}admin/stats (with the admin token)`,
    '  the Overview dashboard in Grafana, where it runs: docker compose up',
  ]
  return `${lines.join('\n')}\n`
}

type Row = readonly [name: string, count: number, meaning: string]

const stopped = {
  end: '',
  signal: ', stopped early',
  failures: ', given up: the app no longer answers; start it again with npm start',
} as const

function statusRow(status: string, count: number): Row {
  return [status, count, (STATUS_CODES[status] ?? '').toLowerCase()]
}

function table(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([, count]) => String(count).length))
  return rows.map(([name, count, meaning]) =>
    `  ${name.padEnd(8)} ${String(count).padStart(width)}  ${meaning}`.trimEnd(),
  )
}

function declinedLines({ declinedBy, statuses }: TrafficReport): string[] {
  const rules = Object.entries(declinedBy).toSorted(([, a], [, b]) => b - a)
  if (rules.length === 0) {
    const hint =
      statuses['429'] === undefined ? 'a higher --rate passes limits' : 'no rule was named'
    return [`declined by  nothing; ${hint}`]
  }
  const named = rules.map(([rule, count]) => `${rule} ${count}`).join(', ')
  const isOverlapping = rules.reduce((sum, [, count]) => sum + count, 0) > (statuses['429'] ?? 0)
  return [`declined by  ${named}${isOverlapping ? ' (some by several at once)' : ''}`]
}

function addressLines({ isAddressShared }: TrafficReport): string[] {
  if (isAddressShared === false) return []
  const seen =
    isAddressShared === true ? 'to the app all clients seem to be one address' : unknownLine
  return ['', `hint: ${seen};`, '      start it with TRUST_PROXY=1 npm start to count them apart']
}

const unknownLine = 'an app that trusts no proxy counts all clients as one address'

function shownMs(latencyMs: number | null): string {
  return latencyMs === null ? 'none' : `${latencyMs.toFixed(latencyMs < 10 ? 1 : 0)} ms`
}

/*
 * The queries of a board, asked of a real Prometheus as Grafana would ask them: variables filled in, ranges
 * that follow the scrape interval.
 */
import { readFileSync } from 'node:fs'

export interface BoardQuery {
  readonly panel: string
  readonly refId: string
  readonly expr: string
  readonly isInstant: boolean
}

interface Panel {
  title?: string
  panels?: Panel[]
  targets?: { refId?: string; expr?: string; instant?: boolean }[]
}

/** Every query of every panel, those in collapsed rows too. */
export function boardQueries(file: string): BoardQuery[] {
  const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { panels: Panel[] }
  const all = panels.flatMap((panel) => [panel, ...(panel.panels ?? [])])
  return all.flatMap(({ title = '', targets = [] }) =>
    targets.map(({ refId = '', expr = '', instant = false }) => ({
      panel: title,
      refId,
      expr,
      isInstant: instant,
    })),
  )
}

/** A query with the board's variables at "All", for a source scraped each second. */
export function filledIn(expr: string): string {
  return expr
    .replaceAll(/\$\{?(job|instance)(:\w+)?\}?/g, '.+')
    .replaceAll(/\$\{?__rate_interval\}?/g, '5s')
    .replaceAll(/\$\{?__range\}?/g, '30s')
    .replaceAll(/\$\{?__interval\}?/g, '1s')
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly number[]
}

/** Asks for the last `seconds`, one point a second, or, for an instant query, for now. */
export async function ask(
  prometheus: string,
  query: string,
  isInstant: boolean,
  seconds = 15,
): Promise<Series[]> {
  const now = Date.now() / 1000
  const params = isInstant
    ? { query, time: String(now) }
    : { query, start: String(now - seconds), end: String(now), step: '1' }
  const path = isInstant ? 'query' : 'query_range'
  const response = await fetch(`${prometheus}/api/v1/${path}`, {
    method: 'POST',
    body: new URLSearchParams(params),
  })
  const answer = (await response.json()) as {
    status: string
    error?: string
    data: { result: { metric: Record<string, string>; value?: Point; values?: Point[] }[] }
  }
  if (answer.status !== 'success') throw new Error(`${answer.error}: ${query}`)
  return answer.data.result.map(({ metric, value, values }) => ({
    metric,
    values: (values ?? (value === undefined ? [] : [value])).map(([, text]) => Number(text)),
  }))
}

type Point = [number, string]

/*
 * The reports of all workers as one, and what is kept of those that have ended. Pure: the order of the
 * reports decides nothing but the order of series and which id a key of several seeds is listed by.
 */
import { keepMetrics, mergeMetrics } from './merge-metrics.js'
import { mergeTallies, newestOf } from './merge-tallies.js'
import type { Lasting, Merged, Passing, Report, RuleReport } from './report.js'
import { mergeTopKeys } from './top-keys.js'

/** How many keys a worker reports of a rule; a merged list is as long. */
export const topKeysMax = 100

/** @param kept of workers that have ended; null where none has. */
export function mergeReports(reports: readonly Report[], kept: Lasting | null): Merged {
  const lasting = [...reports.map((each) => each.lasting), ...(kept === null ? [] : [kept])]
  const passing = reports.flatMap((each) => each.passing ?? [])
  return {
    ...sumsOf(lasting),
    metrics: mergeMetrics([
      ...reports.flatMap((each) => [each.passing?.metrics ?? [], each.lasting.metrics]),
      kept?.metrics ?? [],
    ]),
    workerCount: passing.length,
    rules: mergeRules(passing),
    unsaved: passing.flatMap(({ unsaved }) => unsaved),
    lastFlushAtMs: latest(passing.map(({ lastFlushAtMs }) => lastFlushAtMs)),
    pending: sum(passing.map(({ pending }) => pending)),
  }
}

/** What is kept of workers that have ended, with the last report of one more. */
export function keep(kept: Lasting | null, last: Lasting): Lasting {
  const sums = sumsOf(kept === null ? [last] : [kept, last])
  const { tally } = sums
  return {
    ...sums,
    metrics: keepMetrics(kept?.metrics ?? [], last.metrics),
    tally: tally === null ? null : newestOf(tally),
  }
}

function sumsOf(lasting: readonly Lasting[]): Omit<Lasting, 'metrics'> {
  return {
    tally: mergeTallies(lasting.flatMap(({ tally }) => tally ?? [])),
    failures: sum(lasting.map(({ failures }) => failures)),
    lost: sum(lasting.map(({ lost }) => lost)),
    evictedKeys: byIndex(
      lasting.map(({ evictedKeys }) => evictedKeys),
      sum,
    ),
  }
}

function mergeRules(passing: readonly Passing[]): RuleReport[] {
  const lists = passing.map(({ rules, keySpace }) => rules.map((rule) => ({ ...rule, keySpace })))
  return byIndex(lists, (same) => ({
    trackedKeys: sum(same.map(({ trackedKeys }) => trackedKeys)),
    peakUtilization: Math.max(...same.map(({ peakUtilization }) => peakUtilization)),
    limit: Math.max(...same.map(({ limit }) => limit)),
    demand: {
      keys: byIndex(
        same.map(({ demand }) => demand.keys),
        sum,
      ),
      max: Math.max(...same.map(({ demand }) => demand.max)),
    },
    candidates: byIndex(
      same.map(({ candidates }) => candidates),
      (each) => ({
        over: sum(each.map(({ over }) => over)),
        keysOver: sum(each.map(({ keysOver }) => keysOver)),
      }),
    ),
    topKeys: mergeTopKeys(
      same.map(({ keySpace, topKeys }) => ({ keySpace, ...topKeys })),
      topKeysMax,
    ),
  }))
}

/** One of all that lists have at the same place. */
function byIndex<T, Result>(
  lists: readonly (readonly T[])[],
  merge: (same: readonly T[]) => Result,
): Result[] {
  const length = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length }, (_, index) =>
    merge(lists.flatMap((list) => (index < list.length ? [list[index] as T] : []))),
  )
}

function latest(times: readonly (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

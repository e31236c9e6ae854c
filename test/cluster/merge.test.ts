/*
 * Reports added up: against plain sums, in any order, exactly, and with what is kept of the dead.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keep, mergeReports } from '../../src/cluster/merge.js'
import { isLasting, keptSeriesMax, mergeMetrics } from '../../src/cluster/merge-metrics.js'
import { addRows, mergeTallies, newestOf } from '../../src/cluster/merge-tallies.js'
import type {
  Lasting,
  MetricKind,
  Passing,
  Report,
  ReportedMetric,
  Row,
} from '../../src/cluster/report.js'
import { mergeTopKeys, type SpacedTopKeys } from '../../src/cluster/top-keys.js'

const metric = (
  type: MetricKind,
  aggregate: ReportedMetric['aggregate'],
  values: Record<string, number | string>,
  name = 'm',
): ReportedMetric => ({
  name,
  help: 'h',
  type,
  aggregate,
  series: Object.entries(values).map(([of, value]) => ({ labels: { of }, value })),
})

const valuesOf = (merged: readonly ReportedMetric[], name = 'm') =>
  Object.fromEntries(
    merged
      .find((each) => each.name === name)
      ?.series.map(({ labels, value }) => [labels['of'], value]) ?? [],
  )

const lastingOf = (values: Record<string, number>, more: Partial<Lasting> = {}): Lasting => ({
  metrics: [metric('counter', 'sum', values)],
  tally: null,
  failures: 0,
  lost: 0,
  evictedKeys: [],
  ...more,
})

const passingOf = (more: Partial<Passing> = {}): Passing => ({
  metrics: [],
  keySpace: 'a',
  rules: [],
  unsaved: [],
  lastFlushAtMs: null,
  pending: 0,
  ...more,
})

const someValues: fc.Arbitrary<Record<string, number>> = fc.dictionary(
  fc.constantFrom('a', 'b', 'c'),
  fc.nat({ max: 1_000_000 }),
)

describe('metrics', () => {
  it('counters add up, gauges as they say, and every series is there once', () => {
    const merged = (type: MetricKind, aggregate: ReportedMetric['aggregate']) =>
      valuesOf(
        mergeMetrics([
          [metric(type, aggregate, { a: 3, b: 1 })],
          [metric(type, aggregate, { a: 2, c: 5 })],
        ]),
      )
    expect(merged('counter', 'sum')).toEqual({ a: 5, b: 1, c: 5 })
    expect(merged('gauge', 'sum')).toEqual({ a: 5, b: 1, c: 5 })
    expect(merged('gauge', 'max')).toEqual({ a: 3, b: 1, c: 5 })
    expect(merged('gauge', 'one')).toEqual({ a: 2, b: 1, c: 5 })
  })

  it('the order of labels makes no other series', () => {
    const one = metric('counter', 'sum', {})
    const [merged] = mergeMetrics([
      [{ ...one, series: [{ labels: { a: '1', b: '2' }, value: 1 }] }],
      [{ ...one, series: [{ labels: { b: '2', a: '1' }, value: 1 }] }],
    ])
    expect(merged?.series).toEqual([{ labels: { a: '1', b: '2' }, value: 2 }])
  })

  it('what is not known gives way to what is, and passes as text', () => {
    const gauge = (value: number | string) => [metric('gauge', 'max', { a: value })]
    expect(valuesOf(mergeMetrics([gauge('NaN'), gauge(2)]))).toEqual({ a: 2 })
    expect(valuesOf(mergeMetrics([gauge('NaN'), gauge('NaN')]))).toEqual({ a: 'NaN' })
    expect(valuesOf(mergeMetrics([gauge('Infinity'), gauge(2)]))).toEqual({ a: 'Infinity' })
  })

  it('sums of summaries add up, their quantiles become the highest and end with their process', () => {
    const summary = (quantile: number, sum: number): ReportedMetric => ({
      ...metric('summary', 'sum', {}),
      series: [
        { labels: { quantile: '0.5' }, value: quantile },
        { name: 'm_sum', labels: {}, value: sum },
      ],
    })
    const [merged] = mergeMetrics([[summary(1, 10)], [summary(3, 20)]])
    expect(merged?.series.map(({ value }) => value)).toEqual([3, 30])
    const kept = keep(null, { ...lastingOf({}), metrics: [summary(3, 20)] })
    expect(kept.metrics[0]?.series).toEqual([{ name: 'm_sum', labels: {}, value: 20 }])
  })

  it('add up to the same in any order, the dead as the living', () => {
    fc.assert(
      fc.property(fc.array(someValues, { maxLength: 6 }), fc.nat({ max: 6 }), (all, deadCount) => {
        const expected: Record<string, number> = {}
        for (const values of all) {
          for (const [of, value] of Object.entries(values)) {
            expected[of] = (expected[of] ?? 0) + value
          }
        }
        const dead = all.slice(0, deadCount)
        const living = all.slice(deadCount).toReversed()
        let kept: Lasting | null = null
        for (const values of dead) kept = keep(kept, lastingOf(values))
        const reports = living.map((values): Report => ({
          lasting: lastingOf(values),
          passing: null,
        }))
        const merged = valuesOf(mergeReports(reports, kept).metrics)
        for (const [of, value] of Object.entries(expected)) expect(merged[of] ?? 0).toBe(value)
      }),
    )
  })

  it('gauges are not kept, nor series still at 0, nor more than a bound', () => {
    const gauge = metric('gauge', 'sum', { a: 1 }, 'g')
    const kept = keep(null, {
      ...lastingOf({ a: 1, b: 0 }),
      metrics: [gauge, ...lastingOf({ a: 1, b: 0 }).metrics],
    })
    expect(isLasting(gauge)).toBe(false)
    expect(kept.metrics.map(({ name }) => name)).toEqual(['m'])
    expect(valuesOf(kept.metrics)).toEqual({ a: 1 })
    const many = Array.from({ length: keptSeriesMax + 5 }, (_, index) => [`s${index}`, 1])
    const bounded = keep(kept, lastingOf(Object.fromEntries(many) as Record<string, number>))
    expect(bounded.metrics[0]?.series.length).toBe(keptSeriesMax)
    expect(valuesOf(bounded.metrics)['a']).toBe(1)
  })
})

const row = (...counts: number[]): Row => ({ counts })

describe('tallies', () => {
  it('add up exactly beyond what a double holds', () => {
    const some = fc.array(fc.bigInt({ min: 0n, max: 2n ** 60n }), { minLength: 1, maxLength: 5 })
    const rowOf = (count: bigint): Row =>
      count > Number.MAX_SAFE_INTEGER
        ? { counts: [Number(count)], large: [[0, String(count)]] }
        : { counts: [Number(count)] }
    fc.assert(
      fc.property(some, (counts) => {
        const sum = addRows(counts.map(rowOf))
        const exact = counts.reduce((total, count) => total + count, 0n)
        const digits = sum.large?.[0]?.[1]
        expect(digits === undefined ? BigInt(sum.counts[0] ?? 0) : BigInt(digits)).toBe(exact)
      }),
    )
  })

  it('windows add up by where they begin, since the first of them', () => {
    const hour = (startMs: number, ...counts: number[]) => ({
      window: 'hour' as const,
      startMs,
      counts,
    })
    const merged = mergeTallies([
      { sinceMs: 9, totals: row(1, 2), windows: [hour(0, 1, 1), hour(1, 0, 1)] },
      { sinceMs: 5, totals: row(10, 20), windows: [hour(1, 4, 4), hour(2, 6, 16)] },
    ])
    expect(merged).toEqual({
      sinceMs: 5,
      totals: row(11, 22),
      windows: [hour(0, 1, 1), hour(1, 4, 5), hour(2, 6, 16)],
    })
    const newest = merged === null ? [] : newestOf(merged).windows
    expect(newest.map(({ startMs }) => startMs)).toEqual([2, 1])
    expect(mergeTallies([])).toBeNull()
  })

  it('of the dead are kept, with what failed and was lost, in the newest windows', () => {
    const dead = (startMs: number): Lasting =>
      lastingOf(
        {},
        {
          tally: {
            sinceMs: startMs,
            totals: row(1),
            windows: [{ window: 'minute', startMs, counts: [1] }],
          },
          failures: 1,
          lost: 2,
          evictedKeys: [3],
        },
      )
    const kept = [0, 1, 2, 3].map(dead).reduce<Lasting | null>(keep, null)
    expect(kept).toMatchObject({
      tally: { sinceMs: 0, totals: row(4) },
      failures: 4,
      lost: 8,
      evictedKeys: [12],
    })
    expect(kept?.tally?.windows.map(({ startMs }) => startMs)).toEqual([3, 2])
  })
})

describe('rules', () => {
  const rule = (keys: number[], max: number, peakUtilization: number) => ({
    trackedKeys: 2,
    peakUtilization,
    limit: max,
    demand: { keys, max },
    candidates: [{ over: 1, keysOver: 1 }],
    topKeys: { keys: [], unlistedMax: 0 },
  })

  it('keys and demand add up, the highest use and the greatest demand stay', () => {
    const reports = [
      { lasting: lastingOf({}), passing: passingOf({ rules: [rule([1, 2], 7, 0.5)], pending: 1 }) },
      {
        lasting: lastingOf({}),
        passing: passingOf({ rules: [rule([3, 4], 5, 0.9)], lastFlushAtMs: 7, pending: 2 }),
      },
      { lasting: lastingOf({}), passing: null },
    ]
    expect(mergeReports(reports, null)).toMatchObject({
      workerCount: 2,
      lastFlushAtMs: 7,
      pending: 3,
      rules: [
        {
          trackedKeys: 4,
          peakUtilization: 0.9,
          limit: 7,
          demand: { keys: [4, 6], max: 7 },
          candidates: [{ over: 2, keysOver: 2 }],
        },
      ],
    })
  })
})

const key = (id: string, requests: number, address: string | null = null, countErrorMax = 0) => ({
  id,
  key: address,
  requests,
  over: 0,
  countErrorMax,
})

const list = (keySpace: string, keys: SpacedTopKeys['keys'], unlistedMax = 0): SpacedTopKeys => ({
  keySpace,
  keys,
  unlistedMax,
})

describe('the heaviest keys', () => {
  it('of one seed are the same by their id, with the address that one of them knows', () => {
    const { keys } = mergeTopKeys(
      [list('s', [key('1', 5), key('2', 1)]), list('s', [key('1', 3, '192.0.2.1')])],
      10,
    )
    expect(keys).toEqual([key('1', 8, '192.0.2.1'), key('2', 1)])
  })

  it('of different seeds are the same by their address, else listed apart', () => {
    const { keys } = mergeTopKeys(
      [
        list('s', [key('1', 5, '192.0.2.1'), key('2', 4)]),
        list('t', [key('9', 3, '192.0.2.1'), key('2', 1)]),
      ],
      10,
    )
    expect(keys).toEqual([key('1', 8, '192.0.2.1'), key('2', 4), key('2', 1)])
  })

  it('a list that is cut says what those it leaves out may have made', () => {
    const merged = mergeTopKeys([list('s', [key('1', 5), key('2', 4), key('3', 3)])], 1)
    expect(merged).toEqual({ keys: [key('1', 5)], unlistedMax: 4 })
  })

  it('between requests − countErrorMax and requests is what a key truly made', () => {
    const counts = fc.dictionary(
      fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      fc.integer({ min: 1, max: 9 }),
    )
    fc.assert(
      fc.property(
        fc.array(counts, { minLength: 1, maxLength: 4 }),
        fc.nat({ max: 4 }),
        fc.integer({ min: 1, max: 5 }),
        (workers, listedCount, wanted) => {
          const truth = new Map<string, number>()
          const lists = workers.map((made) => {
            for (const [id, count] of Object.entries(made)) {
              truth.set(id, (truth.get(id) ?? 0) + count)
            }
            const all = Object.entries(made)
              .map(([id, count]) => key(id, count))
              .toSorted((a, b) => b.requests - a.requests)
            const left = all.slice(listedCount).map(({ requests }) => requests)
            return list('s', all.slice(0, listedCount), Math.max(0, ...left))
          })
          const merged = mergeTopKeys(lists, wanted)
          for (const { id, requests, countErrorMax } of merged.keys) {
            const made = truth.get(id) ?? 0
            expect(made).toBeLessThanOrEqual(requests)
            expect(made).toBeGreaterThanOrEqual(requests - countErrorMax)
          }
          const listed = new Set(merged.keys.map(({ id }) => id))
          const unlisted = [...truth].filter(([id]) => !listed.has(id)).map(([, made]) => made)
          expect(Math.max(0, ...unlisted)).toBeLessThanOrEqual(merged.unlistedMax)
        },
      ),
    )
  })
})

/*
 * How long does one decision keep everybody waiting while new keys pour in? Keys are added in slices of a
 * thousand; a slice lasts from the end of the one before to its own, so the making of keys, the collector
 * and a turn of the event loop are all inside and nothing can hide between two. A stall is what a slice
 * takes above the median slice.
 *
 *   npx tsc -p tsconfig.bench.json && node build/bench/stall.js [--quick] [--json]
 */
import { performance } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { answer, childArguments, runChild } from './support/child.js'
import { isQuick, printFigures, shownCount, type Figure } from './support/figure.js'
import { fillerOf, fillers, type Filler } from './support/fillers.js'
import { addressOf } from './support/keys.js'
import { largest, median } from './support/statistics.js'

interface Run {
  readonly longestMs: number
  readonly medianMs: number
  /** Keys tracked when the longest slice had ended. */
  readonly longestAtCount: number
  /** Keys that were taken before it threw, or all. */
  readonly addedCount: number
  readonly failure: string | null
  readonly evictedCount: number | null
}

const sliceCount = 1_000
const warmUpSlices = 10
const keyCount = isQuick ? 2_000_000 : 18_000_000
const tries = isQuick ? 1 : 3
const names = [
  'tallygate, maxKeys 20 M',
  'tallygate, maxKeys by default',
  'express-rate-limit',
  'bare Map',
] satisfies (keyof typeof fillers)[]

const asked = childArguments()
if (asked === null) await printFigures([await measure()])
else answer(await pour(fillerOf(asked[0] ?? ''), Number(asked[1])))

/** Adds so many new keys, or as many as there is room for. */
async function pour(filler: Filler, wantedCount: number): Promise<Run> {
  const slicesMs: number[] = []
  let addedCount = 0
  let failure: string | null = null
  let endedMs = performance.now()
  while (addedCount < wantedCount && failure === null) {
    const endCount = addedCount + sliceCount
    try {
      for (; addedCount < endCount; addedCount++) {
        const added = filler.add(addressOf(addedCount))
        if (added instanceof Promise) await added
      }
    } catch (error) {
      failure = String(error)
    }
    await setImmediate()
    const nowMs = performance.now()
    slicesMs.push(nowMs - endedMs)
    endedMs = nowMs
  }
  const measuredMs = slicesMs.slice(warmUpSlices)
  const longestMs = largest(measuredMs)
  const counts = filler.counts?.()
  return {
    longestMs,
    medianMs: median(measuredMs),
    longestAtCount: (warmUpSlices + measuredMs.indexOf(longestMs) + 1) * sliceCount,
    addedCount,
    failure,
    evictedCount: counts === undefined ? null : counts.evictedExpired + counts.evictedLive,
  }
}

/** Turn by turn, so that a change of the machine's speed meets all of them. */
async function measure(): Promise<Figure> {
  const runs = new Map(names.map((name) => [name, [] as Run[]]))
  for (let turn = 0; turn < tries; turn++) {
    for (const name of names) {
      const run = await runChild<Run>(import.meta.url, ['--child', name, String(keyCount)])
      runs.get(name)?.push(run)
    }
  }
  const bests = new Map([...runs].map(([name, list]) => [name, bestOf(list)]))
  const peer = bests.get('express-rate-limit')
  return {
    title: `The longest stall while ${shownCount(keyCount)} new keys arrive`,
    columns: [
      'contender',
      'longest stall, ms',
      `of ${tries}`,
      'ratio to express-rate-limit',
      'at keys',
      'median slice, ms',
      'keys taken',
      'evicted',
      'threw',
    ],
    rows: [...runs].map(([name, list]) => rowOf(name, list, peer)),
    notes: [
      `Slices of ${shownCount(sliceCount)} new keys, the first ${warmUpSlices} not looked at; a stall is a slice less the median slice; best of ${tries}, each in a process of its own; windows of a day.`,
      'The making of the keys, collections and a turn of the event loop are inside the slices.',
    ],
  }
}

function bestOf(runs: readonly Run[]): Run | undefined {
  return runs.toSorted((one, other) => stallMs(one) - stallMs(other))[0]
}

function stallMs({ longestMs, medianMs }: Run): number {
  return longestMs - medianMs
}

function rowOf(name: string, runs: readonly Run[], peer: Run | undefined): string[] {
  const best = bestOf(runs)
  if (best === undefined) return [name]
  const ratio = peer === undefined ? NaN : stallMs(best) / stallMs(peer)
  return [
    name,
    stallMs(best).toFixed(1),
    runs.map((run) => stallMs(run).toFixed(1)).join(', '),
    ratio.toFixed(3),
    shownCount(best.longestAtCount),
    best.medianMs.toFixed(2),
    shownCount(best.addedCount),
    best.evictedCount === null ? '' : shownCount(best.evictedCount),
    best.failure === null ? '' : `${best.failure}, at ${shownCount(best.addedCount)} keys`,
  ]
}

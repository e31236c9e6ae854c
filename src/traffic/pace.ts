/*
 * When requests are sent: moments of a run, in order, in milliseconds from its start. Most carry one
 * request and follow each other by chance (a Poisson process); every ten to fifteen seconds one carries a
 * burst. What bursts send is taken off the rest, so that the mean stays the rate that was asked for, and
 * they are at most a quarter of it, so that a slow run stays slow.
 */
import type { Random } from './random.js'

export interface Moment {
  readonly atMs: number
  readonly requestCount: number
  readonly isBurst: boolean
}

export interface PaceOptions {
  readonly durationMs: number
  /** Mean requests a second. */
  readonly rate: number
  readonly random: Random
}

const burstRequestsMax = 60
const burstShareMax = 0.25

export function* moments({ durationMs, rate, random }: PaceOptions): Generator<Moment> {
  const burstTimesMs = burstTimes(durationMs, random)
  const requestCount = (rate * durationMs) / 1_000
  const burstSize = Math.min(
    burstRequestsMax,
    Math.floor((burstShareMax * requestCount) / Math.max(1, burstTimesMs.length)),
  )
  const steadyCount = requestCount - burstSize * burstTimesMs.length
  const meanGapMs = durationMs / steadyCount
  let atMs = 0
  while (atMs < durationMs) {
    const nextBurstMs = burstTimesMs[0] ?? Infinity
    if (burstSize > 1 && nextBurstMs <= atMs) {
      burstTimesMs.shift()
      yield { atMs: nextBurstMs, requestCount: burstSize, isBurst: true }
      continue
    }
    yield { atMs, requestCount: 1, isBurst: false }
    atMs += -Math.log(1 - random()) * meanGapMs
  }
}

/** The first comes soon, so that a short run has one too. */
function burstTimes(durationMs: number, random: Random): number[] {
  const times: number[] = []
  let atMs = 2_000 + 1_500 * random()
  while (atMs < durationMs) {
    times.push(atMs)
    atMs += 10_000 + 5_000 * random()
  }
  return times
}

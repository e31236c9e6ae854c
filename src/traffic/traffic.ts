/*
 * A bounded, varied load for demonstrations: it sends what the pace says from whom the population says, and
 * reports what came back. Bounded in every way: it ends by itself, has at most 64 requests on their way,
 * waits for none longer than five seconds, and gives up on a server that has gone. It leaves the looks of a
 * report to the command line.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../core/clock.js'
import { TallygateError } from '../core/errors.js'
import type { Asked, Client } from './client.js'
import { Population } from './population.js'
import { exchange, type Exchange } from './exchange.js'
import { checkTrafficOptions, type CheckedOptions, type TrafficOptions } from './options.js'
import { moments, type Moment } from './pace.js'
import { seededRandom, type Random } from './random.js'
import { ReportCounts, type StopReason, type TrafficReport } from './report.js'

const inFlightMax = 64
const failedInRowMax = 100
/** A run that fell this far behind goes on from there: it never catches up in one great burst. */
const lagMsMax = 1_000

/** @throws TallygateError where an option is wrong, or nothing answers at the address. */
export async function runTraffic(options: TrafficOptions): Promise<TrafficReport> {
  const checked = checkTrafficOptions(options)
  const { clock, onProgress } = options
  const run = new Run(checked, clock, options.signal)
  const startedMs = clock.monotonicMs()
  const elapsedMs = () => clock.monotonicMs() - startedMs
  const ticker =
    onProgress === undefined
      ? undefined
      : setInterval(() => onProgress(run.counts.progress(elapsedMs())), 1_000)
  try {
    const stoppedBy = await run.send()
    const { base: url, seed } = checked
    return run.counts.report({ url, seed, stoppedBy, elapsedMs: elapsedMs() })
  } finally {
    clearInterval(ticker)
  }
}

class Run {
  readonly counts = new ReportCounts()
  readonly #options: CheckedOptions
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #random: Random
  readonly #population: Population
  readonly #inFlight = new Set<Promise<Exchange>>()

  constructor(options: CheckedOptions, clock: Clock, signal = new AbortController().signal) {
    this.#options = options
    this.#clock = clock
    this.#signal = signal
    this.#random = seededRandom(options.seed)
    this.#population = new Population(this.#random)
  }

  async send(): Promise<StopReason> {
    await this.#sendFirst()
    const stoppedBy = await this.#sendAll()
    await Promise.all(this.#inFlight)
    return stoppedBy
  }

  /** Alone, to see that anybody answers. It is a request of the run like any other, and counted. */
  async #sendFirst(): Promise<void> {
    const first = await this.#launch(this.#population.pick(), { method: 'GET', path: '' })
    if (first.isAnswered) return
    throw new TallygateError(
      'TALLYGATE_UNREACHABLE',
      `Cannot send traffic to ${this.#options.base}: it does not answer (${first.reason}); ` +
        'start it with npm start',
    )
  }

  async #sendAll(): Promise<StopReason> {
    const { durationMs, rate } = this.#options
    const startMs = this.#clock.monotonicMs()
    let lagMs = 0
    for (const moment of moments({ durationMs, rate, random: this.#random })) {
      const dueMs = moment.atMs + lagMs
      const nowMs = this.#clock.monotonicMs() - startMs
      if (nowMs - dueMs > lagMsMax) lagMs += nowMs - dueMs
      if (Math.max(dueMs, nowMs) >= durationMs) break
      await pause(dueMs - nowMs, this.#signal)
      if (this.#signal.aborted) return 'signal'
      await this.#sendMoment(moment)
      if (this.counts.failedInRow >= failedInRowMax) return 'failures'
    }
    return 'end'
  }

  async #sendMoment(moment: Moment): Promise<void> {
    for (const { client, asked } of this.#population.requests(moment)) {
      void this.#launch(client, asked)
      if (this.#inFlight.size >= inFlightMax) await Promise.race(this.#inFlight)
    }
  }

  /** Never rejects: a request without an answer is one outcome of two. */
  #launch(client: Client, asked: Asked): Promise<Exchange> {
    this.counts.countSent(client)
    const exchanged = exchange(this.#options.base, client, asked, this.#clock).then((done) => {
      this.#inFlight.delete(exchanged)
      this.counts.countDone(client, asked.method, done)
      const setCookies = done.isAnswered ? done.headers.getSetCookie() : []
      client.learn(asked, done.isAnswered ? done.status : null, setCookies)
      return done
    })
    this.#inFlight.add(exchanged)
    return exchanged
  }
}

/** Ends early, and without a fault, where the run is told to stop. */
async function pause(waitMs: number, signal: AbortSignal): Promise<void> {
  if (waitMs <= 0) return
  try {
    await sleep(waitMs, undefined, { signal })
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error
  }
}

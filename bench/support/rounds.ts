/*
 * Runs contenders against each other in one process: in each round every one of them gets the same slice
 * of the same traffic, and the one that begins changes from round to round. So a change of the machine's
 * speed meets all of them, and a ratio is taken within a round.
 *
 * Before a slice the young generation is collected and the event loop turns once, both unmeasured: nobody
 * pays for what the one before left behind.
 */
import { setImmediate } from 'node:timers/promises'
import type { Order } from './keys.js'
import { median, quantile } from './statistics.js'

export interface Contender {
  readonly name: string
  /** How it was set up, in one line. */
  readonly how: string
  /** Decides for the keys at these positions of the order; answers how many attempts were allowed. */
  run(order: Order, from: number, to: number): number | Promise<number>
  /** Ends its timers. */
  close(): unknown
}

export interface Traffic {
  /** Asked once before the first round, so that every key is known; null for none. */
  readonly filling: Order | null
  readonly order: Order
  readonly sliceLength: number
}

export const warmUpRounds = 2

/** Nanoseconds an attempt: for each contender, one for each round after the warm-up. */
export async function runRounds(
  contenders: readonly Contender[],
  traffic: Traffic,
): Promise<number[][]> {
  const { filling, order, sliceLength } = traffic
  const times = contenders.map((): number[] => [])
  if (filling !== null) {
    for (const contender of contenders) await runSlice(contender, filling, 0, filling.length)
  }
  const roundCount = Math.floor(order.length / sliceLength)
  for (let round = 0; round < roundCount; round++) {
    for (let turn = 0; turn < contenders.length; turn++) {
      const index = (round + turn) % contenders.length
      const from = round * sliceLength
      const contender = contenders[index] as Contender
      const sliceNs = await runSlice(contender, order, from, from + sliceLength)
      if (round >= warmUpRounds) times[index]?.push(sliceNs / sliceLength)
    }
  }
  for (const contender of contenders) await contender.close()
  return times
}

async function runSlice(
  contender: Contender,
  order: Order,
  from: number,
  to: number,
): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('Run with --expose-gc')
  globalThis.gc({ type: 'minor' })
  await setImmediate()
  const startedNs = process.hrtime.bigint()
  const answer = contender.run(order, from, to)
  const allowed = typeof answer === 'number' ? answer : await answer
  const tookNs = Number(process.hrtime.bigint() - startedNs)
  if (allowed !== to - from) {
    throw new RangeError(`${contender.name} must allow all: allowed ${allowed} of ${to - from}`)
  }
  return tookNs
}

export const roundColumns = (peer: string) => [
  'contender',
  'median ns',
  'quartiles',
  'min – max',
  `ratio to ${peer}`,
]

/** One row a contender; ratios are medians of the ratios within a round. */
export function rowsOf(
  contenders: readonly Contender[],
  times: readonly (readonly number[])[],
  peer: string,
): string[][] {
  const peerTimes = times[contenders.findIndex(({ name }) => name === peer)] ?? []
  return contenders.map(({ name }, index) => {
    const own = times[index] ?? []
    const at = (share: number) => quantile(own, share).toFixed(0)
    const ratios = own.map((value, round) => value / (peerTimes[round] ?? NaN))
    return [
      name,
      at(0.5),
      `${at(0.25)} – ${at(0.75)}`,
      `${at(0)} – ${at(1)}`,
      median(ratios).toFixed(2),
    ]
  })
}

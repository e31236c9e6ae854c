/*
 * What does a decision cost, beside the limiters that one would otherwise take? Every attempt is allowed:
 * the path of nearly every request. One process, rounds interleaved; see support/rounds.ts.
 *
 *   npx tsc -p tsconfig.bench.json
 *   node --expose-gc --max-old-space-size=8192 build/bench/decisions.js [--quick] [--json]
 */
import { isQuick, printFigures, shownCount, type Figure } from './support/figure.js'
import { bareMaps, expressFour, tallygateGate } from './support/four-rules.js'
import {
  addresses,
  everyKeyOrder,
  newAddresses,
  oneKeyOrder,
  sessionIds,
  uniformOrder,
  zipfOrder,
  type Texts,
} from './support/keys.js'
import {
  bareMap,
  expressRateLimit,
  limiterPackage,
  peer,
  rateLimiterFlexible,
  rollingRateLimiter,
  tallygate,
  textAlone,
  windowMs,
  type MakeContender,
} from './support/one-rule.js'
import {
  roundColumns,
  rowsOf,
  runRounds,
  warmUpRounds,
  type Contender,
  type Traffic,
} from './support/rounds.js'

const roundCount = isQuick ? 4 : 12
const sliceLength = isQuick ? 20_000 : 200_000
const orderLength = (warmUpRounds + roundCount) * sliceLength
const manyKeyCount = 100_000
const mostKeyCount = 1_000_000

const everyone: readonly MakeContender[] = [
  tallygate,
  expressRateLimit,
  rateLimiterFlexible,
  limiterPackage,
  rollingRateLimiter,
  bareMap,
  textAlone,
]

async function figureOf(
  title: string,
  contenders: readonly Contender[],
  traffic: Traffic,
  notes: readonly string[] = [],
): Promise<Figure> {
  const times = await runRounds(contenders, traffic)
  globalThis.gc?.()
  return {
    title,
    columns: roundColumns(peer),
    rows: rowsOf(contenders, times, peer),
    notes: [
      `Nanoseconds an attempt; ${roundCount} rounds of ${shownCount(sliceLength)} attempts after ${warmUpRounds} of warm-up; window ${windowMs / 60_000} minutes, every attempt allowed.`,
      ...contenders.map(({ name, how }) => `${name}: ${how}.`),
      ...notes,
    ],
  }
}

function hotKey(): Promise<Figure> {
  const keys = addresses(1)
  const traffic = { filling: null, order: oneKeyOrder(orderLength), sliceLength }
  const contenders = everyone.map((make) => make(keys))
  return figureOf('One rule, one hot key', contenders, traffic)
}

function zipfKeys(): Promise<Figure> {
  const keys = addresses(manyKeyCount)
  const traffic = {
    filling: everyKeyOrder(manyKeyCount),
    order: zipfOrder(orderLength, manyKeyCount),
    sliceLength,
  }
  const title = `One rule, ${shownCount(manyKeyCount)} keys, Zipf’s law with s = 1`
  const contenders = everyone.map((make) => make(keys))
  return figureOf(title, contenders, traffic, ['Every key is known before the first round.'])
}

/** @param keys texts made beforehand, or anew for each attempt. */
function uniformKeys(title: string, keys: Texts, note: string): Promise<Figure> {
  const traffic = {
    filling: everyKeyOrder(mostKeyCount),
    order: uniformOrder(orderLength, mostKeyCount),
    sliceLength,
  }
  const contenders = everyone.filter((make) => make !== rollingRateLimiter)
  return figureOf(
    `One rule, ${shownCount(mostKeyCount)} keys, uniform${title}`,
    contenders.map((make) => make(keys)),
    traffic,
    [
      'Every key is known before the first round.',
      note,
      'rolling-rate-limiter: left out: a list and a timer for each of a million keys burden the collector for all.',
    ],
  )
}

const keptNote =
  'Texts of keys made beforehand, as objects that lie all over the heap: the processor waits for each, whoever asks.'
const newNote =
  'The text of the key is made anew for each attempt out of bytes, as a server does for each request; for everybody, and inside the time.'

function fourRules(): Promise<Figure> {
  const clients = { ips: addresses(manyKeyCount), sessions: sessionIds(manyKeyCount) }
  const contenders = [tallygateGate, expressFour, bareMaps].map((make) => make(clients))
  const traffic = {
    filling: everyKeyOrder(manyKeyCount),
    order: zipfOrder(orderLength, manyKeyCount),
    sliceLength,
  }
  const title = `Four rules in one attempt, ${shownCount(manyKeyCount)} clients, Zipf’s law with s = 1`
  return figureOf(title, contenders, traffic, ['Every client is known before the first round.'])
}

const figures: Figure[] = [
  await hotKey(),
  await zipfKeys(),
  await uniformKeys('', addresses(mostKeyCount), keptNote),
  await uniformKeys(', a new text each', newAddresses(mostKeyCount), newNote),
  await fourRules(),
]
await printFigures(figures)

/*
 * How much memory does a tracked key take? Each contender and size grows in a process of its own; after a
 * full collection the heap and what lies outside it (`external`, which has the array buffers in it) are
 * compared with before the contender was made; tallygate's shared buffers, which `external`
 * leaves out, are added. Peers keep the texts of keys, and those are counted.
 *
 *   npx tsc -p tsconfig.bench.json && node build/bench/memory.js [--quick] [--json]
 */
import { answer, childArguments, runChild } from './support/child.js'
import { isQuick, printFigures, shownCount, type Figure } from './support/figure.js'
import { fillerOf, fillers, type Filler } from './support/fillers.js'
import { addressOf } from './support/keys.js'
import { largest, mean } from './support/statistics.js'

interface Sample {
  readonly keyCount: number
  /** Above what the process had before. */
  readonly bytes: number
}

const million = 1_000_000
const stepCount = 50_000
const smallCount = 100_000
const ours = 'tallygate, maxKeys 20 M'
const keyCountMax = isQuick ? 2 * million : 10 * million

const asked = childArguments()
if (asked === null) await printFigures([await measureGrowth(), await measurePeers()])
else answer(await grow(asked[0] ?? '', Number(asked[1]), Number(asked[2])))

/** Samples at every so many keys, up to the last count. */
async function grow(name: string, keyCount: number, everyCount: number): Promise<Sample[]> {
  const samples: Sample[] = []
  const before = usedBytes()
  const filler = fillerOf(name)
  for (let index = 0; index < keyCount; index++) {
    const added = filler.add(addressOf(index))
    if (added instanceof Promise) await added
    if ((index + 1) % everyCount === 0) {
      samples.push({ keyCount: index + 1, bytes: usedBytes() + tableBytes(filler) - before })
    }
  }
  // Asked after the last sample: the contender has been there until then.
  await filler.add(addressOf(0))
  return samples
}

/** What a contender keeps in shared buffers, which `external` leaves out. */
function tableBytes(filler: Filler): number {
  return filler.counts?.().bytes ?? 0
}

function usedBytes(): number {
  if (globalThis.gc === undefined) throw new Error('Run with --expose-gc')
  // Twice: array buffers go one collection after what held them.
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function runGrowth(name: string, keyCount: number, everyCount: number): Promise<Sample[]> {
  return runChild(import.meta.url, ['--child', name, String(keyCount), String(everyCount)])
}

async function measureGrowth(): Promise<Figure> {
  const samples = await runGrowth(ours, keyCountMax, stepCount)
  const shown = samples.filter(
    ({ keyCount }) => keyCount === smallCount || keyCount % million === 0,
  )
  const fromMillion = samples.filter(({ keyCount }) => keyCount >= million).map(bytesPerKey)
  const aboveSmall = samples.filter(({ keyCount }) => keyCount > smallCount).map(bytesPerKey)
  return {
    title: 'Bytes a key of tallygate, one sliding-window rule',
    columns: ['keys', 'bytes a key'],
    rows: [
      ...shown.map((sample) => [shownCount(sample.keyCount), bytesPerKey(sample).toFixed(1)]),
      [`mean, 1 to ${keyCountMax / million} million`, mean(fromMillion).toFixed(1)],
      [`maximum above ${shownCount(smallCount)}`, largest(aboveSmall).toFixed(1)],
    ],
    notes: [
      `heapUsed + external + shared buffers after a full collection, less what it was before; a sample every ${shownCount(stepCount)} keys of one growing run; maxKeys 20 million.`,
    ],
  }
}

async function measurePeers(): Promise<Figure> {
  const names = Object.keys(fillers).filter((name) => name !== 'tallygate, maxKeys by default')
  const bytes = new Map<string, number>()
  for (const name of names) {
    const [sample] = await runGrowth(name, million, million)
    bytes.set(name, sample === undefined ? NaN : bytesPerKey(sample))
  }
  const peerBytes = bytes.get('express-rate-limit') ?? NaN
  return {
    title: `Bytes a key at ${shownCount(million)} keys`,
    columns: ['contender', 'bytes a key', 'ratio to express-rate-limit'],
    rows: [...bytes].map(([name, own]) => [name, own.toFixed(1), (own / peerBytes).toFixed(2)]),
    notes: ['One process each, measured as above; keys are IPv4 addresses in one flat text.'],
  }
}

function bytesPerKey({ keyCount, bytes }: Sample): number {
  return bytes / keyCount
}

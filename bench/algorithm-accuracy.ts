/*
 * How far may one trust the sliding window's estimate, and what does a client get that does as it is told?
 * Not a measure of speed: clocks are set by hand and chance is seeded, so that every run prints the same.
 *
 *   npx tsc -p tsconfig.bench.json && node build/bench/algorithm-accuracy.js
 *
 * Wrong is a decision that an exact log of the very attempts let through so far would have made otherwise.
 */
import { blankMeasure, type KeyState } from '../src/core/algorithm.js'
import { algorithms } from '../src/core/algorithms/index.js'
import { EntryPool } from '../src/core/entry-pool.js'
import { RuleTime } from '../src/core/rule-time.js'
import type { CompiledRule } from '../src/core/rule.js'
import { seededRandom } from '../src/traffic/random.js'

const windowMs = 60_000
const startMs = 1_760_000_040_000
const attemptCount = 1_000_000
const obedientWindowCount = 1000

/** One key of one rule, decided at given times. */
class Key {
  readonly rule: CompiledRule
  readonly state: KeyState
  readonly time = new RuleTime(windowMs)
  readonly out = blankMeasure()

  constructor(name: string, limit: number) {
    const algorithm = algorithms.get(name)
    if (algorithm === undefined) throw new RangeError(`No such algorithm: received ${name}`)
    const buffer = new ArrayBuffer(8 * algorithm.wordCount)
    this.rule = { ...plainRule, algorithm, limit, capacity: limit, nearUsage: 0.8 * limit }
    this.state = {
      words: new Uint32Array(buffer),
      doubles: new Float64Array(buffer),
      entries: algorithm.keepsEntries ? new EntryPool() : null,
    }
  }

  allows(timeMs: number): boolean {
    this.time.read(timeMs)
    this.rule.algorithm.align(this.state, 0, this.time)
    this.rule.algorithm.judge(this.state, 0, this.rule, this.time, 1, this.out)
    return this.out.allowed
  }

  settle(counted: boolean, declined: boolean): void {
    const { rule, state, time, out } = this
    rule.algorithm.settle(state, 0, rule, time, 1, counted, declined, out)
  }
}

const plainRule: Omit<CompiledRule, 'algorithm' | 'limit' | 'capacity' | 'nearUsage'> = {
  index: 0,
  name: 'bench',
  key: 'global',
  keyParts: [],
  plans: null,
  planOf: null,
  match: null,
  isPlain: true,
  windowMs,
  minIntervalMs: 0,
  maxAgeMs: Infinity,
  maxEntries: 10_000,
  strict: false,
  function: null,
  mode: 'enforce',
  near: 0.8,
  absent: 'skip',
  maxKeys: 1,
  ipv6Prefix: 64,
  expose: true,
  persist: false,
  candidates: [],
  candidateOf: null,
  label: '',
}

interface Shares {
  wronglyDeclined: number
  wronglyAllowed: number
  /** What passed, and what passes a log that sees the same traffic and keeps its own history. */
  passed: number
  passedByLog: number
}

/** Shares of all attempts, in Poisson traffic at `load` times the limit. */
function sharesAt(limit: number, load: number): Shares {
  const random = seededRandom(limit * 1000 + load * 10)
  const estimate = new Key('sliding-window', limit)
  const log = new Key('rolling-window', limit)
  // Twice the limit may pass in one window: the log must hold what the estimate let through.
  const passedMs = new Float64Array(2 * limit + 1)
  let passedCount = 0
  let timeMs = startMs
  let passedByLogCount = 0
  const wrong = { declined: 0, allowed: 0 }
  for (let index = 0; index < attemptCount; index++) {
    timeMs += (-Math.log(1 - random()) * windowMs) / (limit * load)
    // The limit-th latest: while it is younger than a window the exact log is full.
    const oldestMs = passedMs[(passedCount - limit) % passedMs.length] ?? -Infinity
    const isExactlyAllowed = passedCount < limit || timeMs - oldestMs >= windowMs
    const isAllowed = estimate.allows(timeMs)
    estimate.settle(isAllowed, !isAllowed)
    if (isAllowed) passedMs[passedCount++ % passedMs.length] = timeMs
    const isAllowedByLog = log.allows(timeMs)
    log.settle(isAllowedByLog, !isAllowedByLog)
    if (isAllowedByLog) passedByLogCount++
    if (isExactlyAllowed && !isAllowed) wrong.declined++
    if (!isExactlyAllowed && isAllowed) wrong.allowed++
  }
  return {
    wronglyDeclined: wrong.declined / attemptCount,
    wronglyAllowed: wrong.allowed / attemptCount,
    passed: passedCount / attemptCount,
    passedByLog: passedByLogCount / attemptCount,
  }
}

/** What a client gets that asks on at once while it is served, else at `retryAfterMs`; 1 is the limit. */
function obedientShare(algorithm: string, limit: number): number {
  const key = new Key(algorithm, limit)
  const warmMs = startMs + 10 * windowMs
  const endMs = warmMs + obedientWindowCount * windowMs
  let passedCount = 0
  let timeMs = startMs
  while (timeMs < endMs) {
    const isAllowed = key.allows(timeMs)
    key.settle(isAllowed, !isAllowed)
    if (isAllowed && timeMs >= warmMs) passedCount++
    timeMs += key.out.retryAfterMs
  }
  return passedCount / (limit * obedientWindowCount)
}

const percent = (share: number) => `${(share * 100).toFixed(2)} %`
const print = (...cells: (string | number)[]) => process.stdout.write(`| ${cells.join(' | ')} |\n`)

print('limit', 'load', 'wrongly declined', 'wrongly allowed', 'passed', 'passed by an exact log')
for (const limit of [10, 60, 1000]) {
  for (const load of [0.8, 1, 1.5, 3]) {
    const shares = sharesAt(limit, load)
    print(
      limit,
      load,
      percent(shares.wronglyDeclined),
      percent(shares.wronglyAllowed),
      percent(shares.passed),
      percent(shares.passedByLog),
    )
  }
}
print('algorithm', ...[1, 5, 60].map((limit) => `limit ${limit}`))
for (const name of algorithms.keys()) {
  print(name, ...[1, 5, 60].map((limit) => percent(obedientShare(name, limit))))
}

/*
 * What does it cost to keep the state of many keys? The thread of the requests writes what has changed in
 * turns, and the database's stores it: here both are one, each timed by itself. Then a start, which reads all
 * of it before the first request.
 *
 *   npx tsc -p tsconfig.bench.json
 *   node build/bench/rule-states.js [--quick] [--json]
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { systemClock } from '../src/core/clock.js'
import { KeyHasher } from '../src/core/hash.js'
import { keyKinds, KeyMaker } from '../src/core/key.js'
import { compileRules, type CompiledRule, type RuleOptions } from '../src/core/rule.js'
import { RuleStates } from '../src/gate/rule-states.js'
import { SavedRule } from '../src/gate/saved-rule.js'
import { hashSeedOf } from '../src/sqlite/hash-seed.js'
import { newHolder } from '../src/sqlite/lease.js'
import { RuleStateRows } from '../src/sqlite/rule-states.js'
import { openDatabase } from '../src/sqlite/database.js'
import { MemoryStore } from '../src/stores/memory/memory-store.js'
import { WordBuffer } from '../src/stores/memory/word-buffer.js'
import { isQuick, printFigures, shownCount, type Figure } from './support/figure.js'
import { addressOf } from './support/keys.js'
import { largest, median } from './support/statistics.js'

const silent = { info() {}, warn() {}, error() {} }
const roundCount = isQuick ? 2 : 5

interface Case {
  readonly title: string
  readonly options: RuleOptions
  readonly keyCount: number
  /** Attempts of each key. */
  readonly attempts: number
}

const million = 1_000_000
const limits = { name: 'ip', key: 'ip', window: '1d', maxKeys: 2 * million } as const
const cases: readonly Case[] = [
  { title: 'sliding window', options: { ...limits, limit: 100 }, keyCount: million, attempts: 1 },
  {
    title: 'rolling window, 50 entries a key',
    options: { ...limits, limit: 100, algorithm: 'rolling-window', maxEntries: 2 * million },
    keyCount: 20_000,
    attempts: 50,
  },
]

function measure({ title, options, keyCount, attempts }: Case): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tallygate-bench-'))
  const path = join(folder, 'x.db')
  try {
    const rules = compileRules([options])
    const [rule] = rules as [CompiledRule]
    const database = openDatabase(path, systemClock.wallMs())
    const hashSeed = hashSeedOf(database)
    const store = new MemoryStore(rules, systemClock)
    fill(
      store,
      rule,
      new KeyMaker(new KeyHasher(Buffer.from(hashSeed, 'base64'))),
      keyCount,
      attempts,
    )
    const turns = save(store, rule, new RuleStateRows(database, hashSeed))
    database.connection.pragma('wal_checkpoint(TRUNCATE)')
    const fileBytes = statSync(path).size
    const startMs = start(rules, database, hashSeed)
    database.close()
    return [
      title,
      shownCount(keyCount),
      String(turns.length),
      (median(turns) * 1000).toFixed(0),
      (largest(turns) * 1000).toFixed(0),
      turns.reduce((sum, each) => sum + each, 0).toFixed(1),
      (fileBytes / 1e6).toFixed(1),
      startMs.toFixed(0),
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function fill(
  store: MemoryStore,
  rule: CompiledRule,
  keys: KeyMaker,
  keyCount: number,
  attempts: number,
): void {
  for (let attempt = 0; attempt < attempts; attempt++) {
    for (let index = 0; index < keyCount; index++) {
      store.decide({ rules: [rule], keys: [keys.of(keyKinds.address, addressOf(index))], cost: 1 })
    }
  }
}

/** What each turn of one round took, in milliseconds: of several rounds the one that was least disturbed. */
function save(store: MemoryStore, rule: CompiledRule, rows: RuleStateRows): number[] {
  const rounds: number[][] = []
  for (let round = 0; round < roundCount; round++) {
    const holder = newHolder()
    const saved = new SavedRule(rule, store.chunksOf(rule), false)
    const when = { isAfresh: true, isFirst: true, nowMs: systemClock.wallMs() }
    const acquired = rows.acquire(holder, saved.head, when)
    saved.begin(acquired)
    saved.restart(systemClock.monotonicMs())
    const by = { holder: holder.id, rule: rule.name, generation: acquired.generation ?? 0 }
    rounds.push([...turnsOf(saved, (piece) => void rows.save(by, piece, [], systemClock.wallMs()))])
    while (rows.tidy(by, [], true) === 'more');
    rows.release(holder.id)
  }
  const sumOf = (turns: readonly number[]) => turns.reduce((sum, each) => sum + each, 0)
  return rounds.toSorted((one, other) => sumOf(one) - sumOf(other))[0] ?? []
}

type Piece = NonNullable<ReturnType<SavedRule['write']>>

function* turnsOf(saved: SavedRule, store: (piece: Piece) => void): Generator<number, void> {
  const buffer = new WordBuffer()
  while (saved.chunks.next !== -1) {
    const beganMs = performance.now()
    const piece = saved.write(buffer)
    yield performance.now() - beganMs
    if (piece !== null) store(piece)
  }
}

/** How long a start reads, in milliseconds. */
function start(
  rules: readonly CompiledRule[],
  database: ReturnType<typeof openDatabase>,
  hashSeed: string,
): number {
  const times = Array.from({ length: roundCount }, () => {
    const store = new MemoryStore(rules, systemClock)
    const states = new RuleStates({ store, clock: systemClock, logger: silent })
    const beganMs = performance.now()
    states.restore(database, hashSeed, rules)
    return performance.now() - beganMs
  })
  return Math.min(...times)
}

const figure: Figure = {
  title: 'Rule state that is saved, and read at the start',
  columns: [
    'rule',
    'keys',
    'turns',
    'median turn, µs',
    'longest turn, µs',
    'all turns, ms',
    'file, MB',
    'start, ms',
  ],
  rows: cases.map(measure),
  notes: [
    `Turns of the thread that serves requests, of the best of ${roundCount} rounds in which everything is saved; a start is the best of as many.`,
  ],
}
await printFigures([figure])

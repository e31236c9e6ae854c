/*
 * What is saved of a table in chunks and taken in by another decides as the first would have: at once and
 * from then on, for every algorithm, wherever rows have moved between the saving of one chunk and the next.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Decision } from '../../src/core/decision.js'
import { KeyHasher } from '../../src/core/hash.js'
import { KeyMaker } from '../../src/core/key.js'
import { compileRules, type CompiledRule, type RuleOptions } from '../../src/core/rule.js'
import { RuleLimiter, type Attempt } from '../../src/limiter/limiter.js'
import { MemoryStore } from '../../src/stores/memory/memory-store.js'
import type { TakenBy, TakenIn } from '../../src/stores/memory/chunk-intake.js'
import type { TableChunks } from '../../src/stores/memory/table-chunks.js'
import { WordBuffer } from '../../src/stores/memory/word-buffer.js'
import { manualClock, type ManualClock } from '../../src/testing/index.js'
import { algorithmNames } from '../support/algorithm-harness.js'
import { epochMs, ipRule } from '../support/units/limits.js'

const seed = Buffer.alloc(544, 'a seed for the tests of chunks')

interface Side {
  readonly limiter: RuleLimiter
  readonly rule: CompiledRule
  readonly chunks: TableChunks
  readonly store: MemoryStore
}

function sideOf(options: RuleOptions, clock: ManualClock): Side {
  const rules = compileRules([options])
  const store = new MemoryStore(rules, clock)
  const keys = new KeyMaker(new KeyHasher(seed))
  const limiter = new RuleLimiter([options], rules, store, null, keys)
  const rule = rules[0] as CompiledRule
  return { limiter, rule, chunks: store.chunksOf(rule), store }
}

/** Chunks as they were saved, the latest last. */
interface SavedChunk {
  readonly chunk: number
  readonly words: Uint32Array
  /** The round in which it was saved anew. */
  replacedIn: number
}

function saveOne(from: TableChunks, saved: SavedChunk[], round = 0): boolean {
  const chunk = from.next
  if (chunk === -1) return false
  const buffer = new WordBuffer()
  from.write(chunk, buffer)
  const last = saved.findLast((each) => each.chunk === chunk)
  if (last !== undefined) last.replacedIn = round
  saved.push({ chunk, words: buffer.words.slice(0, buffer.length), replacedIn: Infinity })
  return true
}

function saveAll(from: TableChunks): SavedChunk[] {
  const saved: SavedChunk[] = []
  from.restart()
  while (saveOne(from, saved));
  return saved
}

function takeAll(
  saved: readonly SavedChunk[],
  { chunks, rule }: Side,
  nowMs: number,
  known: TakenBy['known'] = 'stays',
): TakenIn {
  const sum = { taken: 0, passedOver: 0, leftOut: 0 }
  for (const { words } of saved.toReversed()) {
    for (let at = 0; at < words.length;) {
      at = chunks.take(words, at, 7, { rule, nowMs, known, sum })
      expect(at).toBeGreaterThan(0)
    }
  }
  return sum
}

const byOf = (rule: CompiledRule): TakenBy => ({
  rule,
  nowMs: epochMs,
  known: 'stays',
  sum: { taken: 0, passedOver: 0, leftOut: 0 },
})

const factsOf = (key: number) => ({ keys: { ip: `key ${key}` } })

const step = fc.record({
  act: fc.constantFrom('decide', 'decide', 'decide', 'adjust', 'reset', 'refund', 'sweep', 'wait'),
  key: fc.nat(30),
  cost: fc.integer({ min: 1, max: 4 }),
  waitMs: fc.oneof(fc.nat(5_000), fc.double({ min: 0, max: 200_000, noNaN: true })),
})
type Step = { act: string; key: number; cost: number; waitMs: number }

/** Does a step on each side, and answers what each said. */
function play(
  { act, key, cost, waitMs }: Step,
  sides: Side[],
  clock: ManualClock,
  taken: Attempt[][],
): Decision[] {
  if (act === 'wait') clock.advance(waitMs)
  return sides.map(({ limiter, store }, side) => {
    // What can be given back is what was attempted from now on: receipts end with their process.
    const attempts = (taken[side] ??= [])
    if (act === 'decide') {
      const attempt = limiter.attempt(factsOf(key), { cost }) as Attempt
      attempts.push(attempt)
      return attempt.decision
    }
    if (act === 'adjust') void limiter.adjust('ip', factsOf(key), cost - 2)
    if (act === 'reset') void limiter.reset('ip', factsOf(key))
    if (act === 'refund') void limiter.refund(attempts.pop() ?? (limiter.attempt({}) as Attempt))
    if (act === 'sweep') store.sweep()
    return limiter.peek(factsOf(key)) as Decision
  })
}

const variants: [string, Partial<RuleOptions>][] = algorithmNames.flatMap((algorithm) => [
  [algorithm, { algorithm }],
  [`${algorithm}, strict`, { algorithm, strict: true }],
])
variants.push(
  ['rolling-window with minInterval', { algorithm: 'rolling-window', minInterval: '2s' }],
  ['exponential with maxAge', { algorithm: 'exponential', maxAge: '90s' }],
  ['token-bucket with burst', { algorithm: 'token-bucket', burst: 9 }],
)

describe('state that is saved and taken in', () => {
  it.each(variants)('%s: decides as it would have', (_, fields) => {
    const options = ipRule({ limit: 6, window: '1m', ...fields })
    const steps = fc.array(step, { maxLength: 120 })
    fc.assert(
      fc.property(steps, steps, (before, after) => {
        const clock = manualClock(epochMs)
        const first = sideOf(options, clock)
        const past: Attempt[][] = []
        for (const each of before) play(each, [first], clock, past)
        const second = sideOf(options, clock)
        takeAll(saveAll(first.chunks), second, clock.monotonicMs())
        const taken: Attempt[][] = []
        for (const each of after) {
          const [one, other] = play(each, [first, second], clock, taken)
          expect(other).toEqual(one)
        }
      }),
      { numRuns: 60 },
    )
  })
})

/*
 * A process that dies while it saves. Keys come, go, move and expire between the saving of one chunk and the
 * next; whatever is stored then has every key as it was at the start of the last round that came to its end,
 * or later.
 */
describe('state that is saved piece by piece', () => {
  const act = fc.record({
    act: fc.constantFrom('save', 'save', 'decide', 'many', 'drop', 'sweep', 'wait'),
    from: fc.nat(3_000),
    count: fc.integer({ min: 1, max: 600 }),
  })

  it.each(['fixed-window', 'rolling-window'] as const)(
    '%s: has every key that has not changed since, whenever the process dies',
    (algorithm) => {
      const options = ipRule({ limit: 50, window: '1h', algorithm })
      fc.assert(
        fc.property(fc.array(act, { minLength: 60, maxLength: 250, size: 'max' }), (acts) => {
          const clock = manualClock(epochMs)
          const side = sideOf(options, clock)
          let saved: SavedChunk[] = []
          /** The round in which each key changed last. */
          const changedIn = new Map<number, number>()
          let round = 1
          side.chunks.restart()
          for (const { act: name, from, count } of acts) {
            if (name === 'save') {
              for (let turn = 0; turn < 1 + (count >> 5); turn++) {
                if (saveOne(side.chunks, saved, round)) continue
                for (const each of saved) {
                  const isGone = each.chunk >= side.chunks.count
                  if (isGone && each.replacedIn === Infinity) each.replacedIn = round
                }
                const keptFrom = side.chunks.isQuiet ? round + 1 : round
                saved = saved.filter(({ replacedIn }) => replacedIn >= keptFrom)
                side.chunks.restart()
                round++
              }
            }
            const end = from + (name === 'many' || name === 'drop' ? count : 1)
            for (let key = from; key < end; key++) {
              const facts = factsOf(key)
              if (name === 'decide' || name === 'many') {
                void side.limiter.decide(facts)
                changedIn.set(key, round)
              }
              if (name === 'drop') {
                void side.limiter.reset('ip', facts)
                // It may come back until what is stored of it is deleted, a round later.
                changedIn.set(key, round + 1)
              }
            }
            if (name === 'sweep') for (let turn = 0; turn < 5 && side.store.sweep(); turn++);
            if (name === 'wait') clock.advance(count * 2_000)
          }
          const other = sideOf(options, clock)
          takeAll(saved, other, clock.monotonicMs())
          for (const [key, lastRound] of changedIn) {
            if (lastRound >= round - 1) continue
            const [is, was] = [other, side].map(({ limiter }) => limiter.peek(factsOf(key)))
            expect(is).toEqual(was)
          }
        }),
        { numRuns: 15, endOnFailure: true },
      )
    },
  )
})

describe('a chunk', () => {
  const options = ipRule({ limit: 50, window: '1d' })
  const filled = (keyCount: number, fields: Partial<RuleOptions> = {}) => {
    const clock = manualClock(epochMs)
    const side = sideOf({ ...options, ...fields }, clock)
    for (let key = 0; key < keyCount; key++) void side.limiter.decide(factsOf(key))
    return { ...side, clock }
  }

  it('is due again for a change in it, and no other is; a look changes nothing', () => {
    const { chunks, limiter } = filled(20_000)
    // One that was found in its second place is brought to its first.
    for (const key of [7, 8, -1]) void limiter.peek(factsOf(key))
    const count = saveAll(chunks).length
    expect(count).toBeGreaterThan(30)
    expect(chunks.isQuiet).toBe(true)
    void limiter.decide(factsOf(7))
    expect(saveAll(chunks)).toHaveLength(1)
    void limiter.adjust('ip', factsOf(7), 2)
    expect(saveAll(chunks)).toHaveLength(1)
    void limiter.reset('ip', factsOf(7))
    expect(saveAll(chunks)).toHaveLength(1)
    const attempt = limiter.attempt(factsOf(8)) as Attempt
    saveAll(chunks)
    void limiter.refund(attempt)
    expect(saveAll(chunks)).toHaveLength(1)
    void limiter.peek(factsOf(8))
    void limiter.peek(factsOf(-1))
    expect(saveAll(chunks)).toHaveLength(0)
  })

  it('that could not be saved is due again at once', () => {
    const { chunks } = filled(5_000)
    const saved = saveAll(chunks)
    chunks.restart()
    expect(chunks.next).toBe(-1)
    chunks.putBack(3)
    expect(chunks.next).toBe(3)
    expect(chunks.isQuiet).toBe(false)
    expect(saveOne(chunks, saved)).toBe(true)
    expect(saveOne(chunks, saved)).toBe(false)
  })

  it('holds few rows of large logs, so that writing it is soon done', () => {
    const counts = [10, 100, 10_000].map((limit) => {
      const { chunks } = filled(4_000, { algorithm: 'rolling-window', limit })
      return 4_000 / saveAll(chunks).length
    })
    expect(counts[0]).toBeGreaterThan(20)
    expect(counts[1]).toBeLessThan(4)
    expect(counts[2]).toBeLessThan(1)
  })

  it('of another algorithm, or of nothing, is not read', () => {
    const { chunks, rule } = filled(0)
    const by = byOf(rule)
    for (const algorithm of ['rolling-window', 'exponential'] as const) {
      for (const { words } of saveAll(filled(50, { algorithm }).chunks)) {
        // Of a state as large as its own it cannot be told: that is what the head of a rule's state is for.
        const isOther = algorithm === 'rolling-window'
        expect(chunks.take(words, 0, 1_000, by)).toBe(isOther ? -1 : words.length)
      }
    }
    expect(chunks.take(new Uint32Array(0), 0, 1, by)).toBe(-1)
    expect(chunks.take(new Uint32Array(40), 0, 1, by)).toBe(-1)
  })

  it.each(['sliding-window', 'rolling-window'] as const)(
    '%s: that is damaged throws nothing, and leaves a table that can be swept and saved',
    (algorithm) => {
      const [first] = saveAll(filled(60, { algorithm }).chunks)
      const words = first?.words ?? new Uint32Array(0)
      const damage = fc.array(fc.tuple(fc.nat(words.length - 1), fc.nat(0xffffffff)))
      fc.assert(
        fc.property(damage, fc.nat(words.length), (changes, length) => {
          const bad = words.slice(0, length)
          for (const [at, word] of changes) if (at > 0) bad[at] = word
          const { chunks, rule, store } = filled(3, { algorithm })
          expect(chunks.take(bad, 0, 1_000, byOf(rule))).toBeLessThanOrEqual(length)
          store.sweep()
          saveAll(chunks)
        }),
      )
    },
  )

  it('takes no more in than there is room for, and evicts nothing', () => {
    const saved = saveAll(filled(3_000).chunks)
    const few = filled(100, { maxKeys: 500 })
    expect(takeAll(saved, few, epochMs)).toEqual({ taken: 400, passedOver: 100, leftOut: 2_500 })
    const counts = few.limiter.keyCounts(few.rule)
    expect(counts).toMatchObject({ tracked: 500, evictedExpired: 0, evictedLive: 0 })
    const savedLogs = saveAll(filled(100, { algorithm: 'rolling-window' }).chunks)
    const fewLogs = filled(10, { algorithm: 'rolling-window', maxEntries: 60 })
    expect(takeAll(savedLogs, fewLogs, epochMs)).toEqual({ taken: 50, passedOver: 10, leftOut: 40 })
  })

  it('brings back nothing that has expired, or lies further ahead than any clock is set back', () => {
    const saved = saveAll(filled(100).chunks)
    for (const nowMs of [epochMs + 2 * 86_400_000, epochMs - 86_400_000 * 2 - 1]) {
      expect(takeAll(saved, filled(0), nowMs)).toEqual({ taken: 0, passedOver: 100, leftOut: 0 })
    }
    expect(takeAll(saved, filled(0), epochMs - 3_600_000).taken).toBe(100)
  })

  it.each(algorithmNames)('%s: of another process counts where it has used more', (algorithm) => {
    const [one, other] = [filled(0, { algorithm }), filled(0, { algorithm })]
    // By key: how often it came to the one, and how often to the other.
    const uses: [number, number][] = [
      [3, 1],
      [1, 3],
      [2, 2],
      [0, 2],
      [2, 0],
    ]
    for (const [key, [atOne, atOther]] of uses.entries()) {
      for (let time = 0; time < atOne; time++) void one.limiter.decide(factsOf(key))
      for (let time = 0; time < atOther; time++) void other.limiter.decide(factsOf(key))
    }
    saveAll(one.chunks)
    const sum = takeAll(saveAll(other.chunks), one, epochMs, 'more')
    expect(sum).toEqual({ taken: 2, passedOver: 2, leftOut: 0 })
    const usage = uses.map((_, key) => one.limiter.peek(factsOf(key)))
    expect(usage).toMatchObject([3, 3, 2, 2, 2].map((each) => ({ remaining: 50 - each })))
    expect(saveAll(one.chunks).length).toBeGreaterThan(0)
  })

  it('gives back the entries of logs that it takes in and drops, or takes in place of others', () => {
    const logs = { algorithm: 'rolling-window', limit: 10, maxEntries: 30 } as const
    const [one, other] = [filled(1, logs), filled(0, logs)]
    for (let time = 0; time < 10; time++) {
      other.clock.advance(1)
      void other.limiter.decide(factsOf(0))
    }
    const saved = saveAll(other.chunks)
    for (let turn = 0; turn < 20; turn++) takeAll(saved, one, epochMs + 10, 'more')
    one.clock.advance(10)
    for (let key = 1; key <= 2; key++) {
      for (let time = 0; time < 10; time++) {
        one.clock.advance(1)
        void one.limiter.decide(factsOf(key))
      }
    }
    expect(one.limiter.keyCounts(one.rule)).toMatchObject({ tracked: 3, evictedLive: 0 })
    expect(one.limiter.peek(factsOf(0))).toMatchObject({ remaining: 0 })
  })
})

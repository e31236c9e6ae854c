/*
 * One key of one rule, driven without store or limiter: an algorithm, a row of state with a guard row on
 * either side, the rule's time. Each call first takes a reading of the clock, as a store does.
 */
import { blankMeasure, type KeyState, type Measure } from '../../src/core/algorithm.js'
import { algorithms } from '../../src/core/algorithms/index.js'
import { EntryPool, noEntry } from '../../src/core/entry-pool.js'
import { RuleTime } from '../../src/core/rule-time.js'
import type { CompiledRule } from '../../src/core/rule.js'

export interface HarnessOptions {
  algorithm: string
  limit: number
  windowMs: number
  strict?: boolean
  burst?: number
  minIntervalMs?: number
  maxAgeMs?: number
}

export const algorithmNames = [...algorithms.values()].map(({ name }) => name)

export function ruleOf(options: HarnessOptions): CompiledRule {
  const algorithm = algorithms.get(options.algorithm)
  if (algorithm === undefined) throw new Error(`No algorithm ${options.algorithm}`)
  return {
    index: 0,
    name: 'ip',
    key: 'ip',
    keyParts: [{ kind: 'ip' }],
    plans: null,
    planOf: null,
    match: null,
    isPlain: true,
    limit: options.limit,
    capacity: options.burst ?? options.limit,
    windowMs: options.windowMs,
    algorithm,
    minIntervalMs: options.minIntervalMs ?? 0,
    maxAgeMs: options.maxAgeMs ?? Infinity,
    maxEntries: 1_000_000,
    strict: options.strict ?? false,
    function: null,
    mode: 'enforce',
    near: 0.8,
    nearUsage: 0.8 * options.limit,
    absent: 'skip',
    maxKeys: 1000,
    ipv6Prefix: 64,
    expose: true,
    persist: false,
    candidates: [],
    candidateOf: null,
    label: '',
  }
}

/** A row in the middle of three, so that a write outside it shows. */
export function stateOf(rule: CompiledRule): { state: KeyState; at: number } {
  const { wordCount, keepsEntries } = rule.algorithm
  const buffer = new ArrayBuffer(4 * 3 * wordCount)
  return {
    state: {
      words: new Uint32Array(buffer),
      doubles: new Float64Array(buffer),
      entries: keepsEntries ? new EntryPool() : null,
    },
    at: wordCount,
  }
}

export class OneKey {
  rule: CompiledRule
  readonly state: KeyState
  readonly at: number
  readonly time: RuleTime
  readonly #options: HarnessOptions
  readonly #history: ((key: OneKey) => void)[] = []

  constructor(options: HarnessOptions) {
    this.#options = options
    this.rule = ruleOf(options)
    const { state, at } = stateOf(this.rule)
    this.state = state
    this.at = at
    this.time = new RuleTime(options.windowMs)
  }

  /** One attempt, decided by this rule alone. */
  attempt(atMs: number, cost = 1): Measure {
    this.#history.push((key) => key.attempt(atMs, cost))
    return this.#decide(atMs, cost, true)
  }

  /** What an attempt would be answered; leaves no trace in the state. */
  peek(atMs: number, cost = 1): Measure {
    this.#history.push((key) => key.peek(atMs, cost))
    return this.#decide(atMs, cost, false)
  }

  adjust(atMs: number, delta: number): void {
    this.#history.push((key) => key.adjust(atMs, delta))
    this.#align(atMs)
    this.rule.algorithm.adjust(this.state, this.at, this.rule, this.time, delta)
  }

  refund({ takenAtMs, taken }: Measure): void {
    this.#history.push((key) => key.refund({ ...blankMeasure(), takenAtMs, taken }))
    this.rule.algorithm.refund(this.state, this.at, this.rule, takenAtMs, taken)
  }

  isExpired(atMs: number): boolean {
    this.#history.push((key) => key.isExpired(atMs))
    this.#align(atMs)
    return this.rule.algorithm.isExpired(this.state, this.at, this.rule, this.time)
  }

  release(): void {
    this.rule.algorithm.release(this.state, this.at)
  }

  configure(change: Partial<CompiledRule>): void {
    this.#history.push((key) => key.configure(change))
    this.rule = { ...this.rule, ...change }
  }

  /** Another key with the same past, to ask what would be. */
  fork(): OneKey {
    const other = new OneKey(this.#options)
    for (const step of this.#history) step(other)
    return other
  }

  /** Entries of the log, oldest first. */
  entries(): { timeMs: number; cost: number }[] {
    const pool = this.state.entries
    if (pool === null) return []
    const list = []
    let entry = this.state.words[this.at] ?? noEntry
    while (entry !== noEntry) {
      list.push({ timeMs: pool.timeOf(entry), cost: pool.costOf(entry) })
      entry = pool.nextOf(entry)
    }
    return list
  }

  /** All there is of the key's state, to compare. */
  snapshot(): { words: number[]; entries: object[]; entryCount: number } {
    return {
      words: [...this.state.words],
      entries: this.entries(),
      entryCount: this.state.entries?.count ?? 0,
    }
  }

  /** Whether the guard rows on either side are as they were. */
  get isInBounds(): boolean {
    const end = this.at + this.rule.algorithm.wordCount
    return [...this.state.words].every(
      (word, index) => (index >= this.at && index < end) || word === 0,
    )
  }

  #align(atMs: number): void {
    this.time.read(atMs)
    this.rule.algorithm.align(this.state, this.at, this.time)
  }

  #decide(atMs: number, cost: number, counts: boolean): Measure {
    const { state, at, rule, time } = this
    const out = blankMeasure()
    this.#align(atMs)
    rule.algorithm.judge(state, at, rule, time, cost, out)
    const counted = counts && (out.allowed || rule.strict)
    rule.algorithm.settle(state, at, rule, time, cost, counted, !out.allowed, out)
    return out
  }
}

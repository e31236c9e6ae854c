/*
 * Rule state in this process: one table of keys for each rule, decisions at once. Several processes with
 * such a store each keep their own counts.
 */
import type { Clock } from '../../core/clock.js'
import type { CompiledRule } from '../../core/rule.js'
import type { Attempt, KeyCounts, Store } from '../store.js'
import { absentKey, KeyTable } from './key-table.js'

export class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly #clock: Clock
  readonly #rules: CompiledRule[]
  readonly #tables: KeyTable[]
  #sweptAtMs: number

  constructor(rules: readonly CompiledRule[], clock: Clock) {
    this.#clock = clock
    this.#rules = [...rules]
    this.#tables = rules.map((rule) => new KeyTable(rule.algorithm.slotCount))
    this.#sweptAtMs = clock.monotonicMs()
  }

  decide(attempt: Attempt): void {
    this.#judge(attempt)
    this.#settle(attempt, true)
  }

  peek(attempt: Attempt): void {
    this.#judge(attempt)
    this.#settle(attempt, false)
  }

  refund(attempt: Attempt): void {
    for (const [index, rule] of attempt.rules.entries()) {
      if (rule.strict || rule.mode !== 'enforce' || !attempt.allowed) continue
      const table = this.#tableOf(rule)
      if (this.#isStartedAfresh(rule)) continue
      const at = table.find(attempt.keys[index] as string)
      if (at === absentKey) continue
      const keyNowMs = attempt.measures[index]?.keyNowMs ?? attempt.nowMs
      rule.algorithm.refund(table.state, at, rule, keyNowMs, attempt.cost)
    }
  }

  adjust(rule: CompiledRule, key: string, delta: number): void {
    const table = this.#tableOf(rule)
    const nowMs = this.#clock.monotonicMs()
    let at = table.find(key)
    if (at === absentKey) {
      if (delta <= 0) return
      at = table.claim(key, rule, nowMs)
    }
    rule.algorithm.adjust(table.state, at, rule, nowMs, delta)
  }

  reset(rule: CompiledRule, key: string): void {
    this.#tableOf(rule).forget(key)
  }

  configure(rule: CompiledRule, afresh: boolean): void {
    this.#rules[rule.index] = rule
    if (afresh) this.#tables[rule.index] = new KeyTable(rule.algorithm.slotCount)
  }

  keyCounts(rule: CompiledRule): KeyCounts {
    return this.#tableOf(rule).counts()
  }

  sweep(): void {
    const nowMs = this.#clock.monotonicMs()
    const elapsedMs = Math.max(0, nowMs - this.#sweptAtMs)
    this.#sweptAtMs = nowMs
    for (const rule of this.#rules) this.#tableOf(rule).sweep(rule, nowMs, elapsedMs)
  }

  close(): void {
    for (const rule of this.#rules) this.configure(rule, true)
  }

  /** First step: what would each rule say, and so, may the attempt pass? */
  #judge(attempt: Attempt): void {
    const nowMs = this.#clock.monotonicMs()
    attempt.nowMs = nowMs
    attempt.allowed = true
    for (let index = 0; index < attempt.rules.length; index++) {
      const rule = attempt.rules[index] as CompiledRule
      const table = this.#tables[rule.index] as KeyTable
      const at = table.find(attempt.keys[index] as string)
      const measure = attempt.measures[index]
      if (measure === undefined) continue
      rule.algorithm.judge(table.state, at, rule, nowMs, attempt.cost, measure)
      if (!measure.allowed && rule.mode === 'enforce') attempt.allowed = false
    }
  }

  /** Second step: all or nothing, then the state as it is afterwards. */
  #settle(attempt: Attempt, counts: boolean): void {
    for (let index = 0; index < attempt.rules.length; index++) {
      const rule = attempt.rules[index] as CompiledRule
      const measure = attempt.measures[index]
      if (measure === undefined) continue
      const passes = rule.mode === 'enforce' ? attempt.allowed : measure.allowed
      const counted = counts && (passes || rule.strict)
      const key = attempt.keys[index] as string
      const table = this.#tables[rule.index] as KeyTable
      let at = table.find(key)
      if (counted && at === absentKey) at = table.claim(key, rule, attempt.nowMs)
      const { algorithm } = rule
      algorithm.settle(
        table.state,
        at,
        rule,
        attempt.nowMs,
        attempt.cost,
        counted,
        !passes,
        measure,
      )
    }
  }

  /** Whether the rule has changed since so that what was counted under it is gone. */
  #isStartedAfresh(rule: CompiledRule): boolean {
    const now = this.#rules[rule.index]
    return now?.windowMs !== rule.windowMs || now.algorithm !== rule.algorithm
  }

  #tableOf(rule: CompiledRule): KeyTable {
    const table = this.#tables[rule.index]
    if (table === undefined) throw new RangeError(`No such rule: received index ${rule.index}`)
    return table
  }
}

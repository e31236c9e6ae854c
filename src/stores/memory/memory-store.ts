/*
 * Rule state in this process: one table of keys for each rule, decisions at once. Several processes with
 * such a store each keep their own counts.
 *
 * A decision reads the clock once and allocates nothing: what is found lies in measures that the tables own.
 */
import type { Measure } from '../../core/algorithm.js'
import type { Clock } from '../../core/clock.js'
import type { Key } from '../../core/key.js'
import { strictestOf } from '../../core/plans.js'
import type { CompiledRule } from '../../core/rule.js'
import type { Findings, KeyCounts, Question, Receipt, Store } from '../store.js'
import { KeyTable } from './key-table.js'
import type { TableChunks } from './table-chunks.js'

class MutableFindings implements Findings {
  allowed = true
  nowMs = 0
  readonly measures: Measure[] = []
}

export class MemoryStore implements Store {
  readonly kind = 'memory'
  readonly #clock: Clock
  readonly #rules: CompiledRule[]
  readonly #tables: KeyTable[]
  /** The table that a rule counted in, as it was compiled then: receipts outlive changes of their rule. */
  readonly #tableOfCompiled = new WeakMap<CompiledRule, KeyTable>()
  readonly #findings = new MutableFindings()
  #sweptAtMs: number

  constructor(rules: readonly CompiledRule[], clock: Clock) {
    this.#clock = clock
    // By index: candidates come after all rules, in the same order.
    this.#rules = [...rules, ...rules.flatMap(({ candidates }) => candidates)]
    this.#tables = this.#rules.map((rule) => new KeyTable(rule))
    for (const rule of this.#rules) this.#tableOfCompiled.set(rule, this.#tableOf(rule))
    this.#sweptAtMs = clock.monotonicMs()
  }

  decide(question: Question): Findings {
    this.#judge(question)
    this.#settle(question, true)
    return this.#findings
  }

  peek(question: Question): Findings {
    this.#judge(question)
    this.#settle(question, false)
    return this.#findings
  }

  refund(receipts: readonly Receipt[]): void {
    for (const { rule, key, takenAtMs, taken } of receipts) {
      // What was counted before the rule was started afresh is gone.
      if (this.#tableOfCompiled.get(rule.planOf ?? rule) !== this.#tableOf(rule)) continue
      const table = this.#locate(rule, key)
      if (table.state === table.blank) continue
      rule.algorithm.refund(table.state, table.at, rule, takenAtMs, taken)
      table.touched()
    }
  }

  adjust(rule: CompiledRule, key: Key, delta: number): void {
    this.#tableOf(rule).time.read(this.#clock.monotonicMs())
    const table = this.#locate(rule, key)
    if (table.state === table.blank) {
      if (delta <= 0) return
      table.claim(key, strictestOf(rule))
    } else if (delta > 0) {
      table.reserveEntry(key, strictestOf(rule))
    }
    rule.algorithm.adjust(table.state, table.at, rule, table.time, delta)
    table.touched()
  }

  reset(rule: CompiledRule, key: Key): void {
    this.#tableOf(rule).forget(key)
  }

  configure(rule: CompiledRule, afresh: boolean): void {
    this.#rules[rule.index] = rule
    if (afresh) this.#tables[rule.index] = new KeyTable(rule)
    this.#tableOfCompiled.set(rule, this.#tableOf(rule))
  }

  keyCounts(rule: CompiledRule): KeyCounts {
    return this.#tableOf(rule).counts()
  }

  /** The state of a rule, for what saves it. Once the rule has started afresh it is another object. */
  chunksOf(rule: CompiledRule): TableChunks {
    return this.#tableOf(rule).chunksFor(rule)
  }

  sweep(): boolean {
    const nowMs = this.#clock.monotonicMs()
    const elapsedMs = Math.max(0, nowMs - this.#sweptAtMs)
    this.#sweptAtMs = nowMs
    let isMoreDue = false
    for (const rule of this.#rules) {
      const table = this.#tableOf(rule)
      table.time.read(nowMs)
      if (table.sweep(strictestOf(rule), elapsedMs)) isMoreDue = true
    }
    return isMoreDue
  }

  close(): void {
    for (const rule of this.#rules) this.configure(rule, true)
  }

  /** First step: what would each rule say, and so, may the attempt pass? */
  #judge({ rules, keys, cost }: Question): void {
    const findings = this.#findings
    const nowMs = this.#clock.monotonicMs()
    findings.nowMs = nowMs
    findings.allowed = true
    for (let index = 0; index < rules.length; index++) {
      const rule = rules[index] as CompiledRule
      const table = this.#tables[rule.index] as KeyTable
      table.time.read(nowMs)
      table.locate(keys[index] as Key)
      const { measure } = table
      findings.measures[index] = measure
      rule.algorithm.judge(table.state, table.at, rule, table.time, cost, measure)
      if (!measure.allowed && rule.mode === 'enforce') findings.allowed = false
    }
  }

  /** Second step: all or nothing, then the state as it is afterwards. */
  #settle({ rules, keys, cost }: Question, counts: boolean): void {
    const { allowed } = this.#findings
    for (let index = 0; index < rules.length; index++) {
      const rule = rules[index] as CompiledRule
      const table = this.#tables[rule.index] as KeyTable
      const { measure } = table
      const passes = rule.mode === 'enforce' ? allowed : measure.allowed
      const counted = counts && (passes || rule.strict)
      if (counted) this.#makePlace(table, rule, keys[index] as Key)
      const { algorithm } = rule
      algorithm.settle(table.state, table.at, rule, table.time, cost, counted, !passes, measure)
    }
  }

  #makePlace(table: KeyTable, rule: CompiledRule, key: Key): void {
    // The other keys that it may have to look at can have other plans.
    if (table.state === table.blank) table.claim(key, strictestOf(rule))
    else if (rule.algorithm.keepsEntries) table.reserveEntry(key, strictestOf(rule))
    table.touched()
  }

  #locate(rule: CompiledRule, key: Key): KeyTable {
    const table = this.#tableOf(rule)
    table.locate(key)
    return table
  }

  #tableOf(rule: CompiledRule): KeyTable {
    const table = this.#tables[rule.index]
    if (table === undefined) throw new RangeError(`No such rule: received index ${rule.index}`)
    return table
  }
}

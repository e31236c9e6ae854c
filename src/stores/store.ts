/*
 * The contract of a store: where rule state lives. A store judges all rules of an attempt at once and
 * takes from all or from none, because only it can do that atomically; which rules apply, and under which
 * keys, the limiter has settled before. A store in this process answers at once; a remote one answers
 * with a promise, and nothing else differs.
 */
import type { Measure } from '../core/algorithm.js'
import type { CompiledRule } from '../core/rule.js'

export type Answer<T> = T | Promise<T>

/** One thing asked of the limiter, and what the store found. It outlives the call: refunds need it. */
export interface Attempt {
  /** The rules that apply, in the order of the configuration. */
  readonly rules: readonly CompiledRule[]
  /** The key of each rule. */
  readonly keys: readonly string[]
  /** Whole cost units, at least 1. */
  readonly cost: number
  /** Whether every enforced rule allows it. */
  allowed: boolean
  /** One for each rule, filled by the store. */
  readonly measures: readonly Measure[]
  /** The store's clock at the attempt. */
  nowMs: number
}

export interface KeyCounts {
  /** Keys tracked now. */
  tracked: number
  evictedExpired: number
  evictedLive: number
}

export interface Store {
  readonly kind: string
  /** Judges the attempt and counts it: everywhere if allowed, else only in strict rules. */
  decide(attempt: Attempt): Answer<void>
  /** Judges the attempt and leaves no trace. */
  peek(attempt: Attempt): Answer<void>
  /** Gives back what an allowed attempt took from enforced rules that are not strict. */
  refund(attempt: Attempt): Answer<void>
  adjust(rule: CompiledRule, key: string, delta: number): Answer<void>
  reset(rule: CompiledRule, key: string): Answer<void>
  /** Puts a changed rule in the place of the one with its index; `afresh` forgets its state. */
  configure(rule: CompiledRule, afresh: boolean): void
  keyCounts(rule: CompiledRule): KeyCounts
  /** Called about once a second: frees what has expired, a bounded number of keys a call. */
  sweep(): void
  close(): Answer<void>
}

/** What a store needs to know when it is made ready for a limiter's rules. */
export type StoreFactory = (rules: readonly CompiledRule[]) => Store

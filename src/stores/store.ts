/*
 * The contract of a store: where rule state lives. A store judges all rules of an attempt at once and
 * takes from all or from none, because only it can do that atomically; which rules apply, and under which
 * keys, the limiter has settled before. A store in this process answers at once; a remote one answers
 * with a promise, and nothing else differs.
 */
import type { Measure } from '../core/algorithm.js'
import type { Question } from '../core/facts.js'
import type { Key } from '../core/key.js'
import type { CompiledRule } from '../core/rule.js'

export type Answer<T> = T | Promise<T>

/** What a store found. It belongs to the store, and holds until the store is asked the next time. */
export interface Findings {
  /** Whether every enforced rule allows the attempt. */
  readonly allowed: boolean
  /** One for each rule of the question, in its order; what comes after those says nothing. */
  readonly measures: readonly Measure[]
  /** The store's clock at the attempt. */
  readonly nowMs: number
}

/** What an attempt took from one rule, for giving it back. */
export interface Receipt {
  readonly rule: CompiledRule
  readonly key: Key
  readonly takenAtMs: number
  readonly taken: number
}

export interface KeyCounts {
  /** Keys tracked now. */
  tracked: number
  evictedExpired: number
  evictedLive: number
  /** What their table takes in this process; entries of logs come on top. */
  bytes: number
}

export interface Store {
  readonly kind: string
  /** Judges the attempt and counts it: everywhere if allowed, else only in strict rules. */
  decide(question: Question): Answer<Findings>
  /** Judges the attempt and leaves no trace. */
  peek(question: Question): Answer<Findings>
  /** Gives back what was taken, from where it was counted, if it still weighs there. */
  refund(receipts: readonly Receipt[]): Answer<void>
  adjust(rule: CompiledRule, key: Key, delta: number): Answer<void>
  reset(rule: CompiledRule, key: Key): Answer<void>
  /** Puts a changed rule in the place of the one with its index; `afresh` forgets its state. */
  configure(rule: CompiledRule, afresh: boolean): void
  keyCounts(rule: CompiledRule): KeyCounts
  /**
   * Called about once a second: frees what has expired, a bounded number of keys a call. Whether more is
   * due: then it wants to be called again soon, after others have had their turn.
   */
  sweep(): boolean
  close(): Answer<void>
}

export type { Question } from '../core/facts.js'

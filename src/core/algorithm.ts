/*
 * The contract of a limiting algorithm: pure steps over numbers. A key's state is `wordCount` words of a
 * slab, from the index `at` on; all zeros are a key never seen. An attempt takes two steps, because several
 * rules decide together: `judge` each rule, then `settle` each with what they decided.
 *
 * Nothing here allocates, reads a clock, or looks at an option: the caller owns the slab, the time of the
 * rule and `out`. `doubles` lies over the same memory as `words`, so the double of the words `at` and `at + 1`
 * is `doubles[at >>> 1]`: `at` is always even.
 */
import type { EntryPool } from './entry-pool.js'
import type { CompiledRule } from './rule.js'
import type { RuleTime } from './rule-time.js'

export interface KeyState {
  readonly words: Uint32Array
  readonly doubles: Float64Array
  /** Entries of logs that have no fixed size; null where the algorithm keeps none. */
  readonly entries: EntryPool | null
}

/** How one rule measured an attempt; filled by `judge`, then by `settle`. */
export interface Measure {
  /** Whether this rule alone would allow the attempt. */
  allowed: boolean
  /** Usage as it would be with this attempt allowed: what the verdict `near` looks at. */
  usageWith: number
  /** Usage after the attempt was counted, or was not. */
  usage: number
  /** Whole cost units left of the capacity, never below 0. */
  remaining: number
  /** Whole milliseconds until usage is 0 (exponential: below 1). */
  resetMs: number
  /** 0 unless the attempt was declined; then the wait of this rule, 0 if it would allow it now. */
  retryAfterMs: number
  /** The key's own time at the attempt, see `RuleTime`: a refund finds it again by this. */
  takenAtMs: number
  /** By how much the attempt raised the usage; 0 where it was not counted. */
  taken: number
  /** Between `judge` and `settle`: the algorithm's own view of the state, named in its header. */
  view0: number
  view1: number
}

export function blankMeasure(): Measure {
  return {
    allowed: false,
    usageWith: 0,
    usage: 0,
    remaining: 0,
    resetMs: 0,
    retryAfterMs: 0,
    takenAtMs: 0,
    taken: 0,
    view0: 0,
    view1: 0,
  }
}

export type AlgorithmName =
  'sliding-window' | 'fixed-window' | 'rolling-window' | 'exponential' | 'token-bucket'

export interface Algorithm {
  readonly name: AlgorithmName
  /** 32-bit words of state a key takes: an even number. */
  readonly wordCount: number
  /**
   * Whether its state refers to entries of a pool: its first two words are then the first and the last one
   * of a log, or none. All else is a state by itself, so that a copy of it can be put into another slab.
   */
  readonly keepsEntries: boolean
  /** Goes over to the key's own time, see `RuleTime`; what takes a time below does so by itself. */
  align(state: KeyState, at: number, time: RuleTime): void
  /** Would an attempt of this cost fit now? Reads the state, writes only `out`. */
  judge(
    state: KeyState,
    at: number,
    rule: CompiledRule,
    time: RuleTime,
    cost: number,
    out: Measure,
  ): void
  /**
   * After `judge` on the same state, at the same time: writes the cost if it is `counted`, and reports the
   * state as it is then; where the attempt as a whole was `declined`, with this rule's wait for the same.
   */
  settle(
    state: KeyState,
    at: number,
    rule: CompiledRule,
    time: RuleTime,
    cost: number,
    counted: boolean,
    declined: boolean,
    out: Measure,
  ): void
  /** Adds to the usage now (`delta` > 0) or takes off it, never below 0 nor into another window. */
  adjust(state: KeyState, at: number, rule: CompiledRule, time: RuleTime, delta: number): void
  /** Takes back what an attempt took at `takenAtMs`, where it was counted, if that still weighs. */
  refund(state: KeyState, at: number, rule: CompiledRule, takenAtMs: number, taken: number): void
  /** Is the state no different from that of a key never seen? */
  isExpired(state: KeyState, at: number, rule: CompiledRule, time: RuleTime): boolean
  /** Gives back what the state holds outside the slab, before its row is cleared. */
  release(state: KeyState, at: number): void
}

/** Nothing lies outside the slab: for algorithms whose state is the row itself. */
export function releaseNothing(): void {
  // The row is cleared by the table.
}

/**
 * Whole units left of a capacity, both scaled by `scale`. A quotient just below a whole number may be rounded
 * up to it, so the product decides; a remainder of doubles would cost as much as the rest of a decision.
 */
export function wholeUnits(scaledLeft: number, scale: number): number {
  if (scaledLeft <= 0) return 0
  const units = Math.floor(scaledLeft / scale)
  return units * scale > scaledLeft ? units - 1 : units
}

/*
 * The contract of a limiting algorithm: pure steps over numbers. A key's state is `slotCount` doubles in
 * a slab, from index `at`; all zeros are a key never seen. An attempt takes two steps, because several
 * rules decide together: `judge` each rule, then `settle` each with what they decided.
 *
 * Nothing here allocates, reads a clock, or looks at an option: the caller owns the slab and `out`.
 */
import type { CompiledRule } from './rule.js'

/** How one rule measured an attempt; filled by `judge`, then by `settle`. */
export interface Measure {
  /** Whether this rule alone would allow the attempt. */
  allowed: boolean
  /** Usage as it would be with this attempt allowed: what the verdict `near` looks at. */
  usageWith: number
  /** Usage after the attempt was counted, or was not. */
  usage: number
  remaining: number
  resetMs: number
  /** 0 unless the attempt was declined; then the wait of this rule, 0 if it would allow it now. */
  retryAfterMs: number
  /** The key's own time, never behind its last attempt: a refund finds the window again by it. */
  keyNowMs: number
  /** Between `judge` and `settle`: the algorithm's own view of the state, named in its header. */
  view0: number
  view1: number
  view2: number
}

export function blankMeasure(): Measure {
  return {
    allowed: false,
    usageWith: 0,
    usage: 0,
    remaining: 0,
    resetMs: 0,
    retryAfterMs: 0,
    keyNowMs: 0,
    view0: 0,
    view1: 0,
    view2: 0,
  }
}

export interface Algorithm {
  readonly name: string
  /** Doubles of state a key takes. */
  readonly slotCount: number
  /** Would an attempt of this cost fit now? Reads the state, writes only `out`. */
  judge(
    state: Float64Array,
    at: number,
    rule: CompiledRule,
    nowMs: number,
    cost: number,
    out: Measure,
  ): void
  /**
   * After `judge` on the same state: writes the cost if it is `counted`, and reports the state as it is
   * then; where the attempt as a whole was `declined`, with this rule's wait for the same attempt.
   */
  settle(
    state: Float64Array,
    at: number,
    rule: CompiledRule,
    nowMs: number,
    cost: number,
    counted: boolean,
    declined: boolean,
    out: Measure,
  ): void
  /** Adds to the usage now (`delta` > 0) or takes off it, never below 0 nor into another window. */
  adjust(state: Float64Array, at: number, rule: CompiledRule, nowMs: number, delta: number): void
  /** Gives back a cost counted at `keyNowMs`, in the window where it was counted, if that still weighs. */
  refund(state: Float64Array, at: number, rule: CompiledRule, keyNowMs: number, cost: number): void
  /** Is the state no different from that of a key never seen? */
  isExpired(state: Float64Array, at: number, rule: CompiledRule, nowMs: number): boolean
}

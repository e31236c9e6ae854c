/*
 * Token bucket of `burst` tokens, refilled evenly by L tokens per W.
 *
 *   usage = tokens missing = max(0, missing − L · (now − last) / W)      allowed iff usage + cost ≤ burst
 *
 * State, two doubles in four words:  [ last | missing · W ]
 *   last          when `missing` was written, in milliseconds since the epoch
 *   missing · W   tokens missing then, times W; at most two buckets, so that a strict rule's debt is bounded
 *
 * Scaled by W a millisecond refills L, a whole number, and a token weighs W: nothing is rounded wherever
 * L · W fits 2^53. Beyond it the wait is still found by the very comparison that will be made then.
 * A record from ahead, after the clock was set back, counts for nothing. With L = 0 nothing is ever
 * allowed and nothing kept, whatever `burst`.
 * Source: J. Turner, "New directions in communications (or which way to the information age?)", 1986.
 *
 * View between the steps: view0 last, view1 missing · W, as they are in the state.
 */
import {
  releaseNothing,
  wholeUnits,
  type Algorithm,
  type KeyState,
  type Measure,
} from '../algorithm.js'
import type { CompiledRule } from '../rule.js'
import type { RuleTime } from '../rule-time.js'

const LAST = 0
const MISSING = 1
/** Above it milliseconds are no longer whole in a double: such a wait is given as estimated. */
const exactMsMax = 2 ** 51

export const tokenBucket: Algorithm = {
  name: 'token-bucket',
  wordCount: 4,
  keepsEntries: false,

  align,

  judge(state, at, rule, time, cost, out) {
    align(state, at, time)
    const { doubles } = state
    out.view0 = doubles[(at >>> 1) + LAST] as number
    out.view1 = doubles[(at >>> 1) + MISSING] as number
    const missing = missingAt(out.view0, out.view1, rule, time.nowMs)
    out.allowed = fits(missing, rule, cost)
    out.usage = missing / rule.windowMs
    out.usageWith = out.usage + cost
  },

  settle({ doubles }, at, rule, time, cost, counted, declined, out) {
    const { windowMs, capacity, limit } = rule
    let missing = missingAt(out.view0, out.view1, rule, time.nowMs)
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted && limit > 0) {
      const before = missing
      missing = Math.min(before + cost * windowMs, 2 * capacity * windowMs)
      out.taken = (missing - before) / windowMs
      out.view0 = time.nowMs
      out.view1 = missing
      doubles[(at >>> 1) + LAST] = time.nowMs
      doubles[(at >>> 1) + MISSING] = missing
    }
    out.usage = missing / windowMs
    out.remaining = limit > 0 ? wholeUnits(capacity * windowMs - missing, windowMs) : 0
    out.resetMs = Math.ceil(missing > 0 ? time.lagMs + missing / limit : 0)
    out.retryAfterMs = declined ? untilFits(out, rule, cost, time) : 0
  },

  adjust(state, at, rule, time, delta) {
    align(state, at, time)
    const { doubles } = state
    const { windowMs, capacity } = rule
    const last = doubles[(at >>> 1) + LAST] as number
    const missing = missingAt(last, doubles[(at >>> 1) + MISSING] as number, rule, time.nowMs)
    const adjusted = Math.max(0, missing + delta * windowMs)
    doubles[(at >>> 1) + LAST] = time.nowMs
    doubles[(at >>> 1) + MISSING] = Math.min(adjusted, 2 * capacity * windowMs)
  },

  /**
   * Refilled tokens pay the oldest debt first, so what was taken has stopped weighing once a whole bucket
   * has been refilled; until then no more of it can weigh than is left of that bucket.
   */
  refund({ doubles }, at, rule, takenAtMs, taken) {
    const sinceMs = (doubles[(at >>> 1) + LAST] as number) - takenAtMs
    if (sinceMs < 0) return
    const weighing = Math.max(0, rule.capacity * rule.windowMs - rule.limit * sinceMs)
    const missing = doubles[(at >>> 1) + MISSING] as number
    doubles[(at >>> 1) + MISSING] = Math.max(0, missing - Math.min(taken * rule.windowMs, weighing))
  },

  isExpired(state, at, rule, time) {
    align(state, at, time)
    const { doubles } = state
    const last = doubles[(at >>> 1) + LAST] as number
    return missingAt(last, doubles[(at >>> 1) + MISSING] as number, rule, time.nowMs) === 0
  },

  release: releaseNothing,
}

function align({ doubles }: KeyState, at: number, time: RuleTime): void {
  // A blank record has no time of its own.
  if (doubles[(at >>> 1) + MISSING] === 0) time.alignToClock()
  else time.alignTo(doubles[(at >>> 1) + LAST] as number)
}

/** Tokens missing at a time, times W. At most two buckets, even where `burst` was larger before. */
function missingAt(last: number, missing: number, rule: CompiledRule, timeMs: number): number {
  const sinceMs = timeMs - last
  if (sinceMs < 0 || rule.limit === 0) return 0
  return Math.max(0, Math.min(missing, 2 * rule.capacity * rule.windowMs) - rule.limit * sinceMs)
}

function fits(missing: number, rule: CompiledRule, cost: number): boolean {
  return rule.limit > 0 && missing + cost * rule.windowMs <= rule.capacity * rule.windowMs
}

/**
 * The least whole d ≥ 1 such that the attempt fits d ms from now, if none comes between; 0 if it fits now.
 * A quotient may be off in its last bit, so the estimate is moved by the comparison itself.
 */
function untilFits(out: Measure, rule: CompiledRule, cost: number, time: RuleTime): number {
  const { windowMs, capacity, limit } = rule
  if (limit === 0 || cost > capacity) return Infinity
  const missing = missingAt(out.view0, out.view1, rule, time.nowMs)
  if (fits(missing, rule, cost)) return 0
  const excess = missing - (capacity - cost) * windowMs
  let waitMs = Math.max(1, Math.ceil(time.lagMs + excess / limit))
  if (waitMs > exactMsMax) return waitMs
  for (let step = 1; !fitsAfter(out, rule, cost, time, waitMs); step *= 2) waitMs += step
  for (let tries = 0; tries < 4 && waitMs > 1; tries++) {
    if (!fitsAfter(out, rule, cost, time, waitMs - 1)) break
    waitMs--
  }
  return waitMs
}

function fitsAfter(
  out: Measure,
  rule: CompiledRule,
  cost: number,
  time: RuleTime,
  waitMs: number,
): boolean {
  const timeMs = Math.max(time.nowMs, time.nowMs - time.lagMs + waitMs)
  return fits(missingAt(out.view0, out.view1, rule, timeMs), rule, cost)
}

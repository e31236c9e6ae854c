/*
 * Sliding window by two counters. Windows start at multiples of W since the epoch.
 *
 *   usage = current + previous · (W − elapsed) / W         allowed iff usage + cost ≤ L
 *
 * State, three doubles:  [ last | current | previous ]
 *   last      time of the latest counted attempt; its window is the one that `current` counts
 *   current   cost counted in that window
 *   previous  cost counted in the window just before it
 *
 * All comparisons are made on numbers scaled by W, which are exact wherever L · W fits 2^53: dividing
 * first is wrong at whole edges. A reading up to two windows behind `last` counts as no time passed;
 * further back the key starts afresh. Source: the approximation described by Cloudflare in 2017, "How we
 * built rate limiting capable of scaling to millions of domains".
 *
 * View between the steps: view0 elapsed ms, view1 current, view2 previous, all as of `keyNowMs`.
 */
import type { Algorithm, Measure } from '../algorithm.js'

const LAST = 0
const CURRENT = 1
const PREVIOUS = 2

export const slidingWindow: Algorithm = {
  name: 'sliding-window',
  slotCount: 3,

  judge(state, at, rule, nowMs, cost, out) {
    look(state, at, rule.windowMs, nowMs, out)
    const used = scaledUsage(out, rule.windowMs)
    out.allowed = used + cost * rule.windowMs <= rule.limit * rule.windowMs
    out.usage = used / rule.windowMs
    out.usageWith = out.usage + cost
  },

  settle(state, at, rule, nowMs, cost, counted, declined, out) {
    if (counted) {
      out.view1 += cost
      state[at + LAST] = out.keyNowMs
      state[at + CURRENT] = out.view1
      state[at + PREVIOUS] = out.view2
    }
    const { windowMs, limit } = rule
    const used = scaledUsage(out, windowMs)
    const left = limit * windowMs - used
    const lagMs = out.keyNowMs - nowMs
    out.usage = used / windowMs
    // `a - a % b` over b: floor(a / b) may round a quotient just below a whole number up to it.
    out.remaining = left > 0 ? (left - (left % windowMs)) / windowMs : 0
    out.resetMs = Math.ceil(lagMs + untilEmpty(out, windowMs))
    out.retryAfterMs = declined ? untilFits(out, windowMs, limit, cost, lagMs) : 0
  },

  adjust(state, at, rule, nowMs, delta) {
    const { windowMs } = rule
    const keyNowMs = keyTime(state[at + LAST] as number, windowMs, nowMs)
    roll(state, at, windowMs, keyNowMs)
    state[at + LAST] = keyNowMs
    state[at + CURRENT] = Math.max(0, (state[at + CURRENT] as number) + delta)
  },

  refund(state, at, rule, keyNowMs, cost) {
    const { windowMs } = rule
    const last = state[at + LAST] as number
    const windowsAgo = (startOf(last, windowMs) - startOf(keyNowMs, windowMs)) / windowMs
    const slot = windowsAgo === 0 ? CURRENT : windowsAgo === 1 ? PREVIOUS : null
    if (slot !== null) state[at + slot] = Math.max(0, (state[at + slot] as number) - cost)
  },

  isExpired(state, at, rule, nowMs) {
    const { windowMs } = rule
    const last = state[at + LAST] as number
    if (nowMs < last) return last - nowMs > 2 * windowMs
    const windowsAgo = (startOf(nowMs, windowMs) - startOf(last, windowMs)) / windowMs
    if (windowsAgo >= 2) return true
    const weighs = (state[at + CURRENT] as number) > 0
    return windowsAgo === 1 ? !weighs : !weighs && (state[at + PREVIOUS] as number) === 0
  },
}

/** Start of the window that a time lies in. */
function startOf(timeMs: number, windowMs: number): number {
  return timeMs - elapsedOf(timeMs, windowMs)
}

/** How far into its window a time lies. The remainder of doubles is exact, a quotient is not. */
function elapsedOf(timeMs: number, windowMs: number): number {
  const restMs = timeMs % windowMs
  // Before the epoch, where a clock may be set, the remainder is negative.
  return restMs < 0 ? restMs + windowMs : restMs
}

/** A key's own time: it stands still while the clock is up to two windows behind it. */
function keyTime(last: number, windowMs: number, nowMs: number): number {
  return nowMs < last && last - nowMs <= 2 * windowMs ? last : nowMs
}

/** Fills the view: the two counters as they stand at the key's own time. */
function look(
  state: Float64Array,
  at: number,
  windowMs: number,
  nowMs: number,
  out: Measure,
): void {
  const last = state[at + LAST] as number
  const keyNowMs = keyTime(last, windowMs, nowMs)
  const elapsedMs = elapsedOf(keyNowMs, windowMs)
  const windowsAgo = (keyNowMs - elapsedMs - startOf(last, windowMs)) / windowMs
  out.keyNowMs = keyNowMs
  out.view0 = elapsedMs
  out.view1 = windowsAgo === 0 ? (state[at + CURRENT] as number) : 0
  out.view2 =
    windowsAgo === 0
      ? (state[at + PREVIOUS] as number)
      : windowsAgo === 1
        ? (state[at + CURRENT] as number)
        : 0
}

/** Moves the counters on to the window of `keyNowMs`. */
function roll(state: Float64Array, at: number, windowMs: number, keyNowMs: number): void {
  const last = state[at + LAST] as number
  const windowsAgo = (startOf(keyNowMs, windowMs) - startOf(last, windowMs)) / windowMs
  if (windowsAgo === 0) return
  state[at + PREVIOUS] = windowsAgo === 1 ? (state[at + CURRENT] as number) : 0
  state[at + CURRENT] = 0
}

/** Usage times W. */
function scaledUsage(out: Measure, windowMs: number): number {
  return out.view1 * windowMs + out.view2 * (windowMs - out.view0)
}

function untilEmpty(out: Measure, windowMs: number): number {
  if (out.view1 > 0) return 2 * windowMs - out.view0
  return out.view2 > 0 ? windowMs - out.view0 : 0
}

/**
 * The least whole d ≥ 1 such that the attempt fits d ms from now, if none comes between; 0 if it fits now.
 * In this window usage falls by `previous` / W a millisecond, in the next by `current` / W.
 */
function untilFits(
  out: Measure,
  windowMs: number,
  limit: number,
  cost: number,
  lagMs: number,
): number {
  if (cost > limit) return Infinity
  const room = (limit - cost) * windowMs
  const excess = scaledUsage(out, windowMs) - room
  if (excess <= 0) return 0
  const restMs = windowMs - out.view0
  // The attempt fits where `current · W + previous · (rest − d)` is at most `room`.
  const inThis = out.view1 * windowMs <= room ? excess / out.view2 : Infinity
  const inNext = restMs + (out.view1 > 0 ? windowMs - room / out.view1 : 0)
  return wholeWait(out, windowMs, room, lagMs, Math.min(inThis, Math.max(inNext, restMs)))
}

/** The estimate made whole, then moved by the exact comparison: a quotient may be off in its last bit. */
function wholeWait(
  out: Measure,
  windowMs: number,
  room: number,
  lagMs: number,
  estimateMs: number,
): number {
  let waitMs = Math.max(1, Math.ceil(lagMs + estimateMs))
  while (waitMs > 1 && fitsAfter(out, windowMs, room, waitMs - 1 - lagMs)) waitMs--
  while (!fitsAfter(out, windowMs, room, waitMs - lagMs)) waitMs++
  return waitMs
}

/** Would the attempt fit `passedMs` from the key's own time? */
function fitsAfter(out: Measure, windowMs: number, room: number, passedMs: number): boolean {
  const elapsedMs = out.view0 + Math.max(0, passedMs)
  if (elapsedMs < windowMs) {
    return out.view1 * windowMs + out.view2 * (windowMs - elapsedMs) <= room
  }
  return elapsedMs >= 2 * windowMs || out.view1 * (2 * windowMs - elapsedMs) <= room
}

/*
 * Sliding window by two counters. Windows start at multiples of W since the epoch.
 *
 *   usage = current + previous · (W − elapsed) / W         allowed iff usage + cost ≤ L
 *
 * State, four words:  [ last · · | current | previous ]
 *   last      double: time of the latest counted attempt; says nothing while both counters are 0
 *   current   cost counted in the window of that time, at most 2^32 − 1
 *   previous  cost counted in the window just before it
 *
 * All comparisons are made on numbers scaled by W, which are exact wherever L · W fits 2^53: dividing
 * first is wrong at whole edges. Source: the approximation described by Cloudflare in 2017, "How we built
 * rate limiting capable of scaling to millions of domains".
 *
 * View between the steps: view0 current, view1 previous, both as of now.
 */
import {
  releaseNothing,
  wholeUnits,
  type Algorithm,
  type KeyState,
  type Measure,
} from '../algorithm.js'
import { startOf, type RuleTime } from '../rule-time.js'

const CURRENT = 2
const PREVIOUS = 3
const wordMax = 2 ** 32 - 1

export const slidingWindow: Algorithm = {
  name: 'sliding-window',
  wordCount: 4,
  keepsEntries: false,

  align,

  judge(state, at, rule, time, cost, out) {
    look(state, at, time, out)
    const { windowMs } = rule
    const used = scaledUsage(out, windowMs, time.elapsedMs)
    const usedWith = used + cost * windowMs
    out.allowed = usedWith <= rule.limit * windowMs
    // A key without a past, as most are, needs no division; a division costs as much as all else here.
    out.usageWith = out.view1 === 0 ? out.view0 + cost : usedWith / windowMs
  },

  settle(state, at, rule, time, cost, counted, declined, out) {
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted) {
      const current = Math.min(out.view0 + cost, wordMax)
      out.taken = current - out.view0
      out.view0 = current
      state.doubles[at >>> 1] = time.nowMs
      state.words[at + CURRENT] = current
      state.words[at + PREVIOUS] = out.view1
    }
    const { windowMs, limit } = rule
    if (out.view1 === 0) {
      out.usage = out.view0
      out.remaining = Math.max(0, limit - out.view0)
    } else {
      const used = scaledUsage(out, windowMs, time.elapsedMs)
      out.usage = used / windowMs
      out.remaining = wholeUnits(limit * windowMs - used, windowMs)
    }
    const restMs = time.lagMs + windowMs - time.elapsedMs
    out.resetMs = 0
    if (out.view0 > 0) out.resetMs = Math.ceil(restMs + windowMs)
    else if (out.view1 > 0) out.resetMs = Math.ceil(restMs)
    out.retryAfterMs = 0
    if (declined) findRetry(out, windowMs, limit, cost, time)
  },

  adjust(state, at, _rule, time, delta) {
    align(state, at, time)
    const windowsAgo = windowsSince(state, at, time)
    const current = state.words[at + CURRENT] as number
    const previous = state.words[at + PREVIOUS] as number
    const adjusted = (windowsAgo === 0 ? current : 0) + delta
    state.doubles[at >>> 1] = time.nowMs
    state.words[at + CURRENT] = Math.min(Math.max(0, adjusted), wordMax)
    if (windowsAgo > 0) state.words[at + PREVIOUS] = windowsAgo === 1 ? current : 0
    else state.words[at + PREVIOUS] = previous
  },

  refund({ words, doubles }, at, rule, takenAtMs, taken) {
    const { windowMs } = rule
    const lastStartMs = startOf(doubles[at >>> 1] as number, windowMs)
    const windowsAgo = (lastStartMs - startOf(takenAtMs, windowMs)) / windowMs
    if (windowsAgo !== 0 && windowsAgo !== 1) return
    const counter = at + (windowsAgo === 0 ? CURRENT : PREVIOUS)
    words[counter] = Math.max(0, (words[counter] as number) - taken)
  },

  isExpired(state, at, _rule, time) {
    align(state, at, time)
    const windowsAgo = windowsSince(state, at, time)
    if (windowsAgo === 2) return true
    if ((state.words[at + CURRENT] as number) > 0) return false
    return windowsAgo === 1 || (state.words[at + PREVIOUS] as number) === 0
  },

  release: releaseNothing,
}

function align({ words, doubles }: KeyState, at: number, time: RuleTime): void {
  if (words[at + CURRENT] === 0 && words[at + PREVIOUS] === 0) time.alignToClock()
  else time.alignTo(doubles[at >>> 1] as number)
}

/** How many windows ago a key's last attempt was: 0, 1, or 2 for any more, or for a time still ahead. */
function windowsSince({ doubles }: KeyState, at: number, time: RuleTime): 0 | 1 | 2 {
  const lastMs = doubles[at >>> 1] as number
  if (lastMs > time.nowMs) return 2
  if (lastMs >= time.startMs) return 0
  return lastMs >= time.startMs - time.windowMs ? 1 : 2
}

/** Goes over to the key's own time and fills the view: the two counters as they stand then. */
function look(state: KeyState, at: number, time: RuleTime, out: Measure): void {
  const { words } = state
  align(state, at, time)
  const current = words[at + CURRENT] as number
  const windowsAgo = windowsSince(state, at, time)
  if (windowsAgo === 0) {
    out.view0 = current
    out.view1 = words[at + PREVIOUS] as number
  } else {
    out.view0 = 0
    out.view1 = windowsAgo === 1 ? current : 0
  }
}

/** Usage times W. */
function scaledUsage(out: Measure, windowMs: number, elapsedMs: number): number {
  return out.view0 * windowMs + out.view1 * (windowMs - elapsedMs)
}

/**
 * The least whole d ≥ 1 such that the attempt fits d ms from now, if none comes between; 0 if it fits now.
 * In this window usage falls by `previous` / W a millisecond, in the next by `current` / W. The estimate is
 * moved by the comparison that will be made then, because a quotient may be off in its last bit. Into
 * `retryAfterMs`.
 */
function findRetry(
  out: Measure,
  windowMs: number,
  limit: number,
  cost: number,
  time: RuleTime,
): void {
  if (cost > limit) {
    out.retryAfterMs = Infinity
    return
  }
  const room = (limit - cost) * windowMs
  const excess = scaledUsage(out, windowMs, time.elapsedMs) - room
  if (excess <= 0) return
  const restMs = windowMs - time.elapsedMs
  const inThis = out.view0 * windowMs <= room ? excess / out.view1 : Infinity
  const inNext = restMs + (out.view0 > 0 ? windowMs - room / out.view0 : 0)
  let waitMs = Math.max(1, Math.ceil(time.lagMs + Math.min(inThis, Math.max(inNext, restMs))))
  for (let step = 1; !fitsAfter(out, windowMs, room, time, waitMs); step *= 2) waitMs += step
  for (let tries = 0; tries < 4 && waitMs > 1; tries++) {
    if (!fitsAfter(out, windowMs, room, time, waitMs - 1)) break
    waitMs--
  }
  out.retryAfterMs = waitMs
}

function fitsAfter(
  out: Measure,
  windowMs: number,
  room: number,
  time: RuleTime,
  waitMs: number,
): boolean {
  const elapsedMs = time.elapsedMs + Math.max(0, waitMs - time.lagMs)
  if (elapsedMs < windowMs) {
    return out.view0 * windowMs + out.view1 * (windowMs - elapsedMs) <= room
  }
  return elapsedMs >= 2 * windowMs || out.view0 * (2 * windowMs - elapsedMs) <= room
}

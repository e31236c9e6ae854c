/*
 * Sliding window by two counters. Windows start at multiples of W since the epoch.
 *
 *   usage = current + previous · (W − elapsed) / W         allowed iff usage + cost ≤ L
 *
 * State, three words and a half:  [ stamp | current | previous ]  [ stamp's upper half ]
 *   stamp     time of the latest counted attempt, see window-stamp.ts
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
import { readStamp, windowsSince, writeStamp } from './window-stamp.js'

const WORDS = 3
const CURRENT = 1
const PREVIOUS = 2
const wordMax = 2 ** 32 - 1

export const slidingWindow: Algorithm = {
  name: 'sliding-window',
  wordCount: WORDS,
  hasHalf: true,
  keepsEntries: false,

  align(state, slot, time) {
    time.alignTo(readStamp(state, slot, slot * WORDS))
  },

  judge(state, slot, rule, time, cost, out) {
    look(state, slot, time, out)
    const { windowMs } = rule
    const used = scaledUsage(out, windowMs, time.elapsedMs)
    out.allowed = used + cost * windowMs <= rule.limit * windowMs
    out.usage = used / windowMs
    out.usageWith = out.usage + cost
  },

  settle(state, slot, rule, time, cost, counted, declined, out) {
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted) {
      const current = Math.min(out.view0 + cost, wordMax)
      out.taken = current - out.view0
      out.view0 = current
      write(state, slot, time, out.view0, out.view1)
    }
    const { windowMs, limit } = rule
    const used = scaledUsage(out, windowMs, time.elapsedMs)
    out.usage = used / windowMs
    out.remaining = wholeUnits(limit * windowMs - used, windowMs)
    const restMs = time.lagMs + windowMs - time.elapsedMs
    out.resetMs = 0
    if (out.view0 > 0) out.resetMs = Math.ceil(restMs + windowMs)
    else if (out.view1 > 0) out.resetMs = Math.ceil(restMs)
    out.retryAfterMs = 0
    if (declined) findRetry(out, windowMs, limit, cost, time)
  },

  adjust(state, slot, _rule, time, delta) {
    const windowsAgo = windowsSince(state, slot, slot * WORDS, time)
    const { current, previous } = countersAt(state, slot, windowsAgo)
    const adjusted = Math.min(Math.max(0, current + delta), wordMax)
    write(state, slot, time, adjusted, previous)
  },

  refund(state, slot, rule, takenAtMs, taken) {
    const at = slot * WORDS
    const { windowMs } = rule
    const lastStartMs = startOf(readStamp(state, slot, at), windowMs)
    const windowsAgo = (lastStartMs - startOf(takenAtMs, windowMs)) / windowMs
    if (windowsAgo !== 0 && windowsAgo !== 1) return
    const counter = at + (windowsAgo === 0 ? CURRENT : PREVIOUS)
    state.words[counter] = Math.max(0, (state.words[counter] as number) - taken)
  },

  isExpired(state, slot, _rule, time) {
    const at = slot * WORDS
    const windowsAgo = windowsSince(state, slot, at, time)
    if (windowsAgo === 2) return true
    if ((state.words[at + CURRENT] as number) > 0) return false
    return windowsAgo === 1 || (state.words[at + PREVIOUS] as number) === 0
  },

  release: releaseNothing,
}

/** Fills the view: the two counters as they stand at the key's own time. */
function look(state: KeyState, slot: number, time: RuleTime, out: Measure): void {
  const at = slot * WORDS
  const { words } = state
  const windowsAgo = windowsSince(state, slot, at, time)
  if (windowsAgo === 0) {
    out.view0 = words[at + CURRENT] as number
    out.view1 = words[at + PREVIOUS] as number
  } else {
    out.view0 = 0
    out.view1 = windowsAgo === 1 ? (words[at + CURRENT] as number) : 0
  }
}

function countersAt(
  { words }: KeyState,
  slot: number,
  windowsAgo: 0 | 1 | 2,
): { current: number; previous: number } {
  const current = words[slot * WORDS + CURRENT] as number
  if (windowsAgo === 0) return { current, previous: words[slot * WORDS + PREVIOUS] as number }
  return { current: 0, previous: windowsAgo === 1 ? current : 0 }
}

function write(
  state: KeyState,
  slot: number,
  time: RuleTime,
  current: number,
  previous: number,
): void {
  const at = slot * WORDS
  writeStamp(state, slot, at, time)
  state.words[at + CURRENT] = current
  state.words[at + PREVIOUS] = previous
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

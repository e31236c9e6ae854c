/*
 * Fixed window by one counter. Windows start at multiples of W since the epoch.
 *
 *   usage = current                                        allowed iff usage + cost ≤ L
 *
 * State, three of four words:  [ last · · | current | – ]
 *   last      double: time of the latest counted attempt; says nothing while the counter is 0
 *   current   cost counted in the window of that time, at most 2^32 − 1
 *
 * All numbers are whole, so nothing is rounded. A window that lies ahead, after the clock was set back,
 * counts for nothing. Source: the oldest of all, a counter that is set to 0 when the period turns.
 *
 * View between the steps: view0 current, as of now.
 */
import { releaseNothing, type Algorithm, type KeyState } from '../algorithm.js'
import { startOf, type RuleTime } from '../rule-time.js'

const CURRENT = 2
const wordMax = 2 ** 32 - 1

export const fixedWindow: Algorithm = {
  name: 'fixed-window',
  wordCount: 4,
  keepsEntries: false,

  align,

  judge(state, at, rule, time, cost, out) {
    align(state, at, time)
    out.view0 = currentOf(state, at, time)
    out.usage = out.view0
    out.usageWith = out.view0 + cost
    out.allowed = out.usageWith <= rule.limit
  },

  settle(state, at, rule, time, cost, counted, declined, out) {
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted) {
      const current = Math.min(out.view0 + cost, wordMax)
      out.taken = current - out.view0
      out.view0 = current
      write(state, at, time, current)
    }
    const restMs = Math.ceil(time.lagMs + rule.windowMs - time.elapsedMs)
    out.usage = out.view0
    out.remaining = Math.max(0, rule.limit - out.view0)
    out.resetMs = out.view0 > 0 ? restMs : 0
    out.retryAfterMs = 0
    if (!declined || out.view0 + cost <= rule.limit) return
    out.retryAfterMs = cost > rule.limit ? Infinity : restMs
  },

  adjust(state, at, _rule, time, delta) {
    align(state, at, time)
    const adjusted = currentOf(state, at, time) + delta
    write(state, at, time, Math.min(Math.max(0, adjusted), wordMax))
  },

  refund(state, at, rule, takenAtMs, taken) {
    const lastMs = state.doubles[at >>> 1] as number
    if (startOf(lastMs, rule.windowMs) !== startOf(takenAtMs, rule.windowMs)) return
    state.words[at + CURRENT] = Math.max(0, (state.words[at + CURRENT] as number) - taken)
  },

  isExpired(state, at, _rule, time) {
    align(state, at, time)
    return currentOf(state, at, time) === 0
  },

  release: releaseNothing,
}

function align({ words, doubles }: KeyState, at: number, time: RuleTime): void {
  if (words[at + CURRENT] === 0) time.alignToClock()
  else time.alignTo(doubles[at >>> 1] as number)
}

function currentOf({ words, doubles }: KeyState, at: number, time: RuleTime): number {
  const lastMs = doubles[at >>> 1] as number
  return lastMs >= time.startMs && lastMs <= time.nowMs ? (words[at + CURRENT] as number) : 0
}

function write({ words, doubles }: KeyState, at: number, time: RuleTime, current: number): void {
  doubles[at >>> 1] = time.nowMs
  words[at + CURRENT] = current
}

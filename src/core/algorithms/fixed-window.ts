/*
 * Fixed window by one counter. Windows start at multiples of W since the epoch.
 *
 *   usage = current                                        allowed iff usage + cost ≤ L
 *
 * State, two words and a half:  [ stamp | current ]  [ stamp's upper half ]
 *   stamp     time of the latest counted attempt, see window-stamp.ts
 *   current   cost counted in the window of that time, at most 2^32 − 1
 *
 * All numbers are whole, so nothing is rounded. A window that lies ahead, after the clock was set back,
 * counts for nothing. Source: the oldest of all, a counter that is set to 0 when the period turns.
 *
 * View between the steps: view0 current, as of now.
 */
import { releaseNothing, type Algorithm, type KeyState } from '../algorithm.js'
import { startOf, type RuleTime } from '../rule-time.js'
import { readStamp, windowsSince, writeStamp } from './window-stamp.js'

const WORDS = 2
const CURRENT = 1
const wordMax = 2 ** 32 - 1

export const fixedWindow: Algorithm = {
  name: 'fixed-window',
  wordCount: WORDS,
  hasHalf: true,
  keepsEntries: false,

  align(state, slot, time) {
    time.alignTo(readStamp(state, slot, slot * WORDS))
  },

  judge(state, slot, rule, time, cost, out) {
    out.view0 = currentOf(state, slot, time)
    out.usage = out.view0
    out.usageWith = out.view0 + cost
    out.allowed = out.usageWith <= rule.limit
  },

  settle(state, slot, rule, time, cost, counted, declined, out) {
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted) {
      const current = Math.min(out.view0 + cost, wordMax)
      out.taken = current - out.view0
      out.view0 = current
      write(state, slot, time, current)
    }
    const restMs = Math.ceil(time.lagMs + rule.windowMs - time.elapsedMs)
    out.usage = out.view0
    out.remaining = Math.max(0, rule.limit - out.view0)
    out.resetMs = out.view0 > 0 ? restMs : 0
    out.retryAfterMs = 0
    if (!declined || out.view0 + cost <= rule.limit) return
    out.retryAfterMs = cost > rule.limit ? Infinity : restMs
  },

  adjust(state, slot, _rule, time, delta) {
    const adjusted = currentOf(state, slot, time) + delta
    write(state, slot, time, Math.min(Math.max(0, adjusted), wordMax))
  },

  refund(state, slot, rule, takenAtMs, taken) {
    const at = slot * WORDS
    const lastMs = readStamp(state, slot, at)
    if (startOf(lastMs, rule.windowMs) !== startOf(takenAtMs, rule.windowMs)) return
    state.words[at + CURRENT] = Math.max(0, (state.words[at + CURRENT] as number) - taken)
  },

  isExpired(state, slot, _rule, time) {
    return currentOf(state, slot, time) === 0
  },

  release: releaseNothing,
}

function currentOf(state: KeyState, slot: number, time: RuleTime): number {
  const at = slot * WORDS
  if (windowsSince(state, slot, at, time) !== 0) return 0
  return state.words[at + CURRENT] as number
}

function write(state: KeyState, slot: number, time: RuleTime, current: number): void {
  const at = slot * WORDS
  writeStamp(state, slot, at, time)
  state.words[at + CURRENT] = current
}

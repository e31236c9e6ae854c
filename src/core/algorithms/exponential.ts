/*
 * Finch's exponentially weighted moving average, of a rate in cost units per W. With i = (now − last) / W,
 *
 *   rate′ = max(c, c · (1 − e^−i) / i + rate · e^−i)       allowed iff rate′ ≤ L, or one part in 10^9 above
 *   usage = rate · e^−i                                    (1 − e^−i) / i is 1 at i = 0
 *
 * State, two doubles in four words:  [ last | rate ]
 *   last   when `rate` was recorded, in milliseconds since the epoch
 *   rate   the average then; of an allowed attempt at most L, of a strict rule's declined ones any
 *
 * Leaky (the default): a declined attempt leaves the record alone. Strict: every attempt updates it.
 * Below 2^−20, beyond `maxAge`, or from ahead, after the clock was set back, a record counts for nothing.
 * Source: T. Finch, "Exponential rate limiting", 2024; the Exim ratelimit facility before it.
 *
 * View between the steps: view0 last, view1 rate, as they are in the state.
 */
import { releaseNothing, type Algorithm, type KeyState, type Measure } from '../algorithm.js'
import type { CompiledRule } from '../rule.js'
import type { RuleTime } from '../rule-time.js'

const LAST = 0
const RATE = 1
const negligible = 2 ** -20
const tolerance = 1 + 1e-9
/** A rate no higher than this keeps every sum finite, whatever costs a strict rule is asked for. */
const rateMax = 2 ** 53
const newtonStepsMax = 24

export const exponential: Algorithm = {
  name: 'exponential',
  wordCount: 4,
  keepsEntries: false,

  align,

  judge(state, at, rule, time, cost, out) {
    align(state, at, time)
    const { doubles } = state
    out.view0 = doubles[(at >>> 1) + LAST] as number
    out.view1 = doubles[(at >>> 1) + RATE] as number
    out.takenAtMs = time.nowMs
    out.allowed = fitsThen(out, rule, cost)
  },

  settle({ doubles }, at, rule, time, cost, counted, declined, out) {
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted) {
      const rate = Math.min(out.usageWith, out.allowed ? rule.limit : rateMax)
      out.taken = Math.max(0, rate - out.usage)
      out.usage = rate
      out.view0 = time.nowMs
      out.view1 = rate
      doubles[(at >>> 1) + LAST] = time.nowMs
      doubles[(at >>> 1) + RATE] = rate
    }
    out.remaining = Math.max(0, Math.floor(rule.capacity - out.usage))
    out.resetMs = 0
    if (out.usage >= 1) findReset(out, rule, time)
    out.retryAfterMs = 0
    if (declined) findRetry(out, rule, cost, time)
  },

  /** A penalty is recorded now; a relief leaves `last`, or the next attempt would weigh more for it. */
  adjust(state, at, rule, time, delta) {
    align(state, at, time)
    const { doubles } = state
    const last = doubles[(at >>> 1) + LAST] as number
    const usage = usageAt(last, doubles[(at >>> 1) + RATE] as number, rule, time.nowMs)
    const adjusted = Math.min(Math.max(0, usage + delta), rateMax)
    const isKept = delta < 0 && adjusted > 0
    doubles[(at >>> 1) + LAST] = isKept ? last : time.nowMs
    doubles[(at >>> 1) + RATE] = isKept
      ? adjusted * Math.exp((time.nowMs - last) / rule.windowMs)
      : adjusted
  },

  refund({ doubles }, at, rule, takenAtMs, taken) {
    const sinceMs = (doubles[(at >>> 1) + LAST] as number) - takenAtMs
    if (sinceMs < 0) return
    const rate = doubles[(at >>> 1) + RATE] as number
    doubles[(at >>> 1) + RATE] = Math.max(0, rate - taken * Math.exp(-sinceMs / rule.windowMs))
  },

  isExpired(state, at, rule, time) {
    align(state, at, time)
    const { doubles } = state
    const last = doubles[(at >>> 1) + LAST] as number
    return usageAt(last, doubles[(at >>> 1) + RATE] as number, rule, time.nowMs) < negligible
  },

  release: releaseNothing,
}

function align({ doubles }: KeyState, at: number, time: RuleTime): void {
  // A blank record has no time of its own.
  if (doubles[(at >>> 1) + RATE] === 0) time.alignToClock()
  else time.alignTo(doubles[(at >>> 1) + LAST] as number)
}

/** What a record weighs at a time. */
function usageAt(last: number, rate: number, rule: CompiledRule, timeMs: number): number {
  const sinceMs = timeMs - last
  if (sinceMs < 0 || sinceMs > rule.maxAgeMs) return 0
  return rate * Math.exp(-sinceMs / rule.windowMs)
}

/*
 * Below, times and rates go in and out by `out`, and the formulas stand where they are used: a double handed
 * to a function, or back, is put on the heap unless the compiler happens to merge the two.
 */

/** Weighs the viewed record at `takenAtMs`, into `usage` and `usageWith`: would the attempt fit then? */
function fitsThen(out: Measure, rule: CompiledRule, cost: number): boolean {
  const sinceMs = out.takenAtMs - out.view0
  const i = sinceMs / rule.windowMs
  const isForgotten = sinceMs < 0 || sinceMs > rule.maxAgeMs
  out.usage = isForgotten ? 0 : out.view1 * Math.exp(-i)
  out.usageWith = cost
  if (out.usage >= negligible) {
    // 1 − exp(−i) would lose all digits near 0.
    const share = i > 0 ? -Math.expm1(-i) / i : 1
    out.usageWith = Math.max(cost, cost * share + out.usage)
  }
  return cost <= rule.limit && out.usageWith <= rule.limit * tolerance
}

/** The least whole d such that usage is below 1 d ms from now, into `resetMs`. */
function findReset(out: Measure, rule: CompiledRule, time: RuleTime): void {
  const forgottenMs = rule.maxAgeMs - (time.nowMs - out.view0)
  const decayMs = Math.min(rule.windowMs * Math.log(out.usage), forgottenMs)
  out.resetMs = Math.max(1, Math.ceil(time.lagMs + decayMs))
  const sinceMs = time.nowMs - time.lagMs + out.resetMs - out.view0
  const isForgotten = sinceMs > rule.maxAgeMs
  if (!isForgotten && out.view1 * Math.exp(-sinceMs / rule.windowMs) >= 1) out.resetMs++
}

/**
 * The least whole d ≥ 1 such that the average is down to L d ms from now, if none comes between, to within
 * 1 ms; 0 if the attempt fits now. The last digits come from the comparison that will be made then, whose
 * tolerance lets in up to 2 · W / 10^9 sooner: 1 ms at a window of six days. Into `retryAfterMs`.
 */
function findRetry(out: Measure, rule: CompiledRule, cost: number, time: RuleTime): void {
  const { usage, usageWith } = out
  const clockMs = time.nowMs - time.lagMs
  if (cost > rule.limit) {
    out.retryAfterMs = Infinity
  } else if (!fitsThen(out, rule, cost)) {
    aimAtFit(out, rule, cost)
    let waitMs = Math.max(1, Math.ceil(out.takenAtMs - clockMs))
    out.takenAtMs = Math.max(time.nowMs, clockMs + waitMs)
    for (let step = 1; !fitsThen(out, rule, cost); step *= 2) {
      waitMs += step
      out.takenAtMs = Math.max(time.nowMs, clockMs + waitMs)
    }
    out.takenAtMs = Math.max(time.nowMs, clockMs + waitMs - 1)
    if (waitMs > 1 && fitsThen(out, rule, cost)) waitMs--
    out.retryAfterMs = waitMs
  }
  out.takenAtMs = time.nowMs
  out.usage = usage
  out.usageWith = usageWith
}

/**
 * Moves `takenAtMs` to when rate′ has fallen to L, or the record is forgotten. It is convex and falls in i, so that Newton's steps from
 * the left never pass the root; rate · e^−i alone reaches L at ln(rate / L), which is left of it.
 */
function aimAtFit(out: Measure, rule: CompiledRule, cost: number): void {
  const { view0: last, view1: rate } = out
  const { limit, windowMs, maxAgeMs } = rule
  let i = Math.max((out.takenAtMs - last) / windowMs, Math.log(rate / limit))
  for (let step = 0; step < newtonStepsMax; step++) {
    const decay = Math.exp(-i)
    const share = i > 0 ? -Math.expm1(-i) / i : 1
    const excess = cost * share + rate * decay - limit
    if (excess <= 1e-14 * limit) break
    // The slope of (1 − e^−i) / i cancels near 0; its series is right there to ten digits.
    const shareSlope = i > 1e-4 ? (decay - share) / i : i / 3 - 0.5
    i += excess / (rate * decay - cost * shareSlope)
  }
  out.takenAtMs = last + Math.min(windowMs * i, maxAgeMs)
}

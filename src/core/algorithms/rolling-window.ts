/*
 * Rolling window by an exact log: each attempt counts for W from its own time, to the millisecond.
 *
 *   usage = cost counted in (now − W, now]                 allowed iff usage + cost ≤ L
 *                                                          and now − last ≥ minInterval
 * State, six words:  [ head | tail | sum · · | last · · ]      head → entry → … → tail, oldest first
 *   head, tail  entries of the pool, each a time and a cost; attempts of one time share an entry
 *   sum         double: cost of all linked entries, those not freed yet included
 *   last        double: time of the last counted attempt, 0 for never
 *
 * `judge` passes over expired entries from the head, `settle` frees them when it writes: each entry is freed
 * once, but an attempt that counts nothing meets them again, at most L of them. Whatever is counted, only
 * the newest entries that reach L are kept: while they last everything is declined whatever came before.
 * If the newest entry lies ahead, after the clock was set back, none counts. Source: the textbook log.
 *
 * View between the steps: view0 live cost, view1 the oldest live entry or none.
 */
import { type Algorithm, type KeyState, type Measure } from '../algorithm.js'
import { noEntry, type EntryPool } from '../entry-pool.js'
import type { CompiledRule } from '../rule.js'
import type { RuleTime } from '../rule-time.js'

const HEAD = 0
const TAIL = 1
const SUM = 1
const LAST = 2
const costMax = 2 ** 32 - 1

export const rollingWindow: Algorithm = {
  name: 'rolling-window',
  wordCount: 6,
  keepsEntries: true,

  align,

  judge(state, at, rule, time, cost, out) {
    align(state, at, time)
    view(state, at, rule, time, out)
    out.usage = reported(out.view0, rule)
    out.usageWith = out.view0 + cost
    out.allowed = out.usageWith <= rule.limit && isInTime(state, at, rule, time)
  },

  settle(state, at, rule, time, cost, counted, declined, out) {
    out.takenAtMs = time.nowMs
    out.taken = 0
    if (counted) {
      freeUntil(state, at, out.view1)
      append(state, at, rule, time, cost)
      state.doubles[(at >>> 1) + LAST] = asLast(time.nowMs)
      out.taken = cost
      out.view0 = state.doubles[(at >>> 1) + SUM] as number
      out.view1 = state.words[at + HEAD] as number
    }
    out.usage = reported(out.view0, rule)
    out.remaining = Math.max(0, rule.limit - out.view0)
    out.resetMs = 0
    if (out.view1 !== noEntry) findReset(state, at, rule, time, out)
    out.retryAfterMs = 0
    if (declined) findRetry(state, at, rule, cost, time, out)
  },

  adjust(state, at, rule, time, delta) {
    align(state, at, time)
    freeUntil(state, at, firstLive(state, at, rule, time))
    if (delta > 0) append(state, at, rule, time, delta)
    else takeOffNewest(state, at, -delta)
  },

  refund(state, at, _rule, takenAtMs, taken) {
    const entries = state.entries as EntryPool
    const { words, doubles } = state
    let before = noEntry
    let entry = words[at + HEAD] as number
    while (entry !== noEntry && entries.timeOf(entry) < takenAtMs) {
      before = entry
      entry = entries.nextOf(entry)
    }
    if (entry === noEntry || entries.timeOf(entry) !== takenAtMs) return
    const cost = entries.costOf(entry)
    const given = Math.min(taken, cost)
    doubles[(at >>> 1) + SUM] = (doubles[(at >>> 1) + SUM] as number) - given
    if (given < cost) entries.setCost(entry, cost - given)
    else unlink(state, at, before, entry)
  },

  isExpired(state, at, rule, time) {
    align(state, at, time)
    if (firstLive(state, at, rule, time) !== noEntry) return false
    return isInTime(state, at, rule, time)
  },

  release(state, at) {
    freeUntil(state, at, noEntry)
  },
}

function align({ words, doubles, entries }: KeyState, at: number, time: RuleTime): void {
  const tail = words[at + TAIL] as number
  const last = doubles[(at >>> 1) + LAST] as number
  const newestMs = tail === noEntry ? -Infinity : (entries as EntryPool).timeOf(tail)
  time.alignTo(last === 0 ? newestMs : Math.max(newestMs, last))
}

/** The live cost and the oldest live entry, into the views. */
function view(state: KeyState, at: number, rule: CompiledRule, time: RuleTime, out: Measure): void {
  const entries = state.entries as EntryPool
  out.view0 = 0
  out.view1 = firstLive(state, at, rule, time)
  if (out.view1 === noEntry) return
  out.view0 = state.doubles[(at >>> 1) + SUM] as number
  let entry = state.words[at + HEAD] as number
  for (; entry !== out.view1; entry = entries.nextOf(entry)) out.view0 -= entries.costOf(entry)
}

function firstLive({ words, entries }: KeyState, at: number, rule: CompiledRule, time: RuleTime) {
  const pool = entries as EntryPool
  const tail = words[at + TAIL] as number
  if (tail === noEntry) return noEntry
  const newestMs = pool.timeOf(tail)
  if (newestMs > time.nowMs || time.nowMs - newestMs >= rule.windowMs) return noEntry
  let entry = words[at + HEAD] as number
  while (time.nowMs - pool.timeOf(entry) >= rule.windowMs) entry = pool.nextOf(entry)
  return entry
}

/** Strict: what a key asked for beyond its limit is not told apart. */
function reported(live: number, rule: CompiledRule): number {
  return rule.strict ? Math.min(live, rule.limit) : live
}

/** Whether `minInterval` has passed since the last counted attempt. */
function isInTime(state: KeyState, at: number, rule: CompiledRule, time: RuleTime): boolean {
  const last = state.doubles[(at >>> 1) + LAST] as number
  return last === 0 || last > time.nowMs || time.nowMs - last >= rule.minIntervalMs
}

/** Frees entries from the head up to, and without, the one given; all if it is none. */
function freeUntil({ words, doubles, entries }: KeyState, at: number, first: number): void {
  const pool = entries as EntryPool
  let entry = words[at + HEAD] as number
  if (entry === first) return
  let sum = doubles[(at >>> 1) + SUM] as number
  while (entry !== first) {
    const next = pool.nextOf(entry)
    sum -= pool.costOf(entry)
    pool.free(entry)
    entry = next
  }
  words[at + HEAD] = first
  if (first === noEntry) words[at + TAIL] = noEntry
  doubles[(at >>> 1) + SUM] = sum
}

/** Adds cost at the newest end, and frees first what is not needed to reach L with it. */
function append(
  state: KeyState,
  at: number,
  rule: CompiledRule,
  time: RuleTime,
  cost: number,
): void {
  if (rule.limit === 0) return freeUntil(state, at, noEntry)
  const { words, doubles } = state
  const entries = state.entries as EntryPool
  const sumBefore = doubles[(at >>> 1) + SUM] as number
  let first = words[at + HEAD] as number
  for (let rest = sumBefore + cost; first !== noEntry; first = entries.nextOf(first)) {
    rest -= entries.costOf(first)
    if (rest < rule.limit) break
  }
  freeUntil(state, at, first)
  const tail = words[at + TAIL] as number
  const isSameTime = tail !== noEntry && entries.timeOf(tail) === time.nowMs
  const merged = isSameTime ? entries.costOf(tail) : 0
  const added = Math.min(cost, costMax - merged)
  doubles[(at >>> 1) + SUM] = (doubles[(at >>> 1) + SUM] as number) + added
  if (isSameTime) {
    entries.setCost(tail, merged + added)
    return
  }
  const entry = entries.add(time.nowMs, added)
  words[at + TAIL] = entry
  if (tail === noEntry) words[at + HEAD] = entry
  else entries.setNext(tail, entry)
}

/** Takes cost off the newest entries: what is left is the oldest of it. */
function takeOffNewest(state: KeyState, at: number, cost: number): void {
  const { words, doubles } = state
  const entries = state.entries as EntryPool
  const left = (doubles[(at >>> 1) + SUM] as number) - cost
  if (left <= 0) return freeUntil(state, at, noEntry)
  let entry = words[at + HEAD] as number
  let kept = entries.costOf(entry)
  while (kept < left) {
    entry = entries.nextOf(entry)
    kept += entries.costOf(entry)
  }
  entries.setCost(entry, entries.costOf(entry) - (kept - left))
  let rest = entries.nextOf(entry)
  while (rest !== noEntry) {
    const next = entries.nextOf(rest)
    entries.free(rest)
    rest = next
  }
  entries.setNext(entry, noEntry)
  words[at + TAIL] = entry
  doubles[(at >>> 1) + SUM] = left
}

/** Takes an emptied entry out; if it held the last attempt, the newest left does now. */
function unlink({ words, doubles, entries }: KeyState, at: number, before: number, entry: number) {
  const pool = entries as EntryPool
  const next = pool.nextOf(entry)
  if (before === noEntry) words[at + HEAD] = next
  else pool.setNext(before, next)
  if (next === noEntry) {
    words[at + TAIL] = before
    const isLast = doubles[(at >>> 1) + LAST] === asLast(pool.timeOf(entry))
    if (isLast) doubles[(at >>> 1) + LAST] = before === noEntry ? 0 : asLast(pool.timeOf(before))
  }
  pool.free(entry)
}

/** A time as `last` keeps it: 0 says never there, so the epoch itself is the double just before it. */
function asLast(timeMs: number): number {
  return timeMs === 0 ? -Number.MIN_VALUE : timeMs
}

/*
 * The waits below go out by `out`: a double handed back is put on the heap unless the compiler happens to
 * merge the functions.
 */

/** The least whole d such that nothing counts d ms from now, into `resetMs`. */
function findReset(
  { words, entries }: KeyState,
  at: number,
  rule: CompiledRule,
  time: RuleTime,
  out: Measure,
): void {
  const newestMs = (entries as EntryPool).timeOf(words[at + TAIL] as number)
  out.resetMs = Math.ceil(time.lagMs + rule.windowMs - (time.nowMs - newestMs))
}

/**
 * The least whole d ≥ 1 such that the attempt fits d ms from now, if none comes between; 0 if it fits now.
 * Into `retryAfterMs`.
 */
function findRetry(
  state: KeyState,
  at: number,
  rule: CompiledRule,
  cost: number,
  time: RuleTime,
  out: Measure,
): void {
  if (cost > rule.limit) {
    out.retryAfterMs = Infinity
    return
  }
  const entries = state.entries as EntryPool
  let restMs = 0
  if (!isInTime(state, at, rule, time)) {
    restMs = rule.minIntervalMs - (time.nowMs - (state.doubles[(at >>> 1) + LAST] as number))
  }
  let entry = out.view1
  let live = out.view0
  let leavesMs = -Infinity
  while (live + cost > rule.limit) {
    live -= entries.costOf(entry)
    leavesMs = entries.timeOf(entry) + rule.windowMs
    entry = entries.nextOf(entry)
  }
  restMs = Math.max(restMs, leavesMs - time.nowMs)
  if (restMs > 0) out.retryAfterMs = Math.ceil(time.lagMs + restMs)
}

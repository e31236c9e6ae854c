/*
 * The statistics of one rule: how it is set up now, its verdicts in the calendar windows, and what is known
 * of its keys in its own current window and the last one.
 */
import type { Mode } from '../core/decision.js'
import { shownLimit } from '../core/plans.js'
import type { CompiledRule } from '../core/rule.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { HeavyKey } from '../metrics/heavy-keys.js'
import type { DemandQuantiles } from '../metrics/key-demand.js'
import type { Recorder } from '../metrics/recorder.js'
import type { TallySlots } from '../tally/slots.js'
import type { TallyView } from '../tally/tally.js'
import {
  totalsOf,
  verdictCounts,
  windowsOf,
  type VerdictCounts,
  type Windows,
} from './shown-counts.js'

export interface CandidateStatistics {
  limit: number
  windowMs: number
  algorithm: string
  /** Attempts that it would have declined, in the rule's current and last window. */
  over: number
  /** Different keys that made them: exact up to 512 in a window, beyond that to some 2 %. */
  keysOver: number
}

export interface RuleStatistics {
  name: string
  function: string | null
  /** `global`, `ip`, `session`, `header:NAME`, `function`, or several with + between. */
  key: string
  algorithm: string
  /** Where the limit is a function, the greatest that it gave since the process began. */
  limit: number
  windowMs: number
  mode: Mode
  strict: boolean
  trackedKeys: number
  /** Keys that had to go although they still counted, because the table was full. */
  evictedKeys: number
  /** Highest usage of any key as a share of the limit, in the current or the last window of the rule. */
  peakUtilization: number
  totals: VerdictCounts
  windows: Windows<VerdictCounts>
  /** What its keys asked for in a window, declined attempts included; of the current and the last one. */
  demand: DemandQuantiles
  candidates: CandidateStatistics[]
  /** The keys that made the most attempts; none where all count as one. */
  topKeys: HeavyKey[]
}

export interface RuleStatisticsParts {
  readonly limiter: RuleLimiter
  readonly slots: TallySlots
  readonly recorder: Recorder
}

const topKeysMax = 10

/** @param nowMs the rules' clock. */
export function ruleStatistics(
  rule: CompiledRule,
  view: TallyView,
  { limiter, slots, recorder }: RuleStatisticsParts,
  nowMs: number,
): RuleStatistics {
  const keys = limiter.keyCounts(rule)
  return {
    name: rule.name,
    function: rule.function,
    key: rule.key,
    algorithm: rule.algorithm.name,
    limit: shownLimit(rule),
    windowMs: rule.windowMs,
    mode: rule.mode,
    strict: rule.strict,
    trackedKeys: keys.tracked,
    evictedKeys: keys.evictedLive,
    peakUtilization: recorder.utilization(rule, nowMs),
    totals: verdictCounts(totalsOf(view), rule, slots),
    windows: windowsOf(view, (row) => verdictCounts(row, rule, slots)),
    demand: recorder.demand(rule).quantiles(rule.windowMs, nowMs),
    candidates: rule.candidates.map((candidate) => ({
      limit: candidate.limit,
      windowMs: candidate.windowMs,
      algorithm: candidate.algorithm.name,
      ...recorder.declines(candidate, rule.windowMs, nowMs),
    })),
    topKeys: recorder.heavyKeys(rule)?.heaviest(nowMs, topKeysMax) ?? [],
  }
}

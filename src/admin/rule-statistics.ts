/*
 * The statistics of one rule: how it is set up now, its verdicts in the calendar windows, and what is known
 * of its keys in its own current window and the last one.
 */
import type { Mode } from '../core/decision.js'
import type { CompiledRule } from '../core/rule.js'
import { noDeclines } from '../metrics/declined-keys.js'
import type { HeavyKey } from '../metrics/heavy-keys.js'
import { quantilesOf, type DemandQuantiles } from '../metrics/key-demand.js'
import type { TallySlots } from '../tally/slots.js'
import type { Figures, RuleFigures } from './figures.js'
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

export function ruleStatistics(
  rule: CompiledRule,
  { view, rules }: Figures,
  slots: TallySlots,
): RuleStatistics {
  const figures = rules[rule.index] ?? noFigures
  return {
    name: rule.name,
    function: rule.function,
    key: rule.key,
    algorithm: rule.algorithm.name,
    limit: rule.plans === null ? rule.limit : figures.limit,
    windowMs: rule.windowMs,
    mode: rule.mode,
    strict: rule.strict,
    trackedKeys: figures.trackedKeys,
    evictedKeys: figures.evictedKeys,
    peakUtilization: figures.peakUtilization,
    totals: verdictCounts(totalsOf(view), rule, slots),
    windows: windowsOf(view, (row) => verdictCounts(row, rule, slots)),
    demand: quantilesOf(figures.demand),
    candidates: rule.candidates.map((candidate, index) => ({
      limit: candidate.limit,
      windowMs: candidate.windowMs,
      algorithm: candidate.algorithm.name,
      ...(figures.candidates[index] ?? noDeclines),
    })),
    topKeys: [...figures.topKeys.keys],
  }
}

const noFigures: RuleFigures = {
  trackedKeys: 0,
  evictedKeys: 0,
  peakUtilization: 0,
  limit: 0,
  demand: { keys: [], max: 0 },
  candidates: [],
  topKeys: { keys: [], unlistedMax: 0 },
}

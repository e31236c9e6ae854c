/*
 * What the statistics are made of, apart from how they are shown: the figures of this process, or of all
 * workers of a cluster, as of one instant. Both come in the same shape.
 */
import type { RuleReport } from '../cluster/report.js'
import type { Clock } from '../core/clock.js'
import { shownLimit } from '../core/plans.js'
import type { CompiledRule } from '../core/rule.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { Recorder } from '../metrics/recorder.js'
import type { Tally, TallyView } from '../tally/tally.js'

export interface Figures {
  readonly scope: 'instance' | 'cluster'
  readonly sinceMs: number
  readonly view: TallyView
  /** By the index of the rule. */
  readonly rules: readonly RuleFigures[]
  readonly lastFlushAtMs: number | null
  /** Requests that are not in the database yet. */
  readonly pending: number
  /** Flushes that failed. */
  readonly failures: number
  /** Requests that a minute or an hour lacks. */
  readonly lost: number
}

export interface RuleFigures extends RuleReport {
  /** Keys that had to go although they still counted. */
  readonly evictedKeys: number
}

export interface FigureParts {
  readonly limiter: RuleLimiter
  readonly recorder: Recorder
  readonly tally: Tally
  readonly clock: Clock
}

export const topKeysShown = 10

/** Of this process. */
export function ownFigures(parts: FigureParts): Figures {
  const { limiter, tally, clock } = parts
  const view = tally.view()
  const nowMs = clock.monotonicMs()
  const { lastFlushAtMs, failedCount } = tally.health()
  return {
    scope: 'instance',
    sinceMs: tally.archive.sinceMs,
    view,
    rules: limiter.rules.map((rule) => ruleFigures(rule, parts, nowMs)),
    lastFlushAtMs,
    pending: tally.pendingRequests(),
    failures: failedCount,
    lost: tally.lostRequests,
  }
}

/** @param nowMs the rules' clock. @param keyCount how many of the heaviest keys. */
export function ruleFigures(
  rule: CompiledRule,
  { limiter, recorder }: Pick<FigureParts, 'limiter' | 'recorder'>,
  nowMs: number,
  keyCount = topKeysShown,
): RuleFigures {
  const { tracked, evictedLive } = limiter.keyCounts(rule)
  const { keys, max } = recorder.demand(rule).recent(rule.windowMs, nowMs)
  return {
    trackedKeys: tracked,
    evictedKeys: evictedLive,
    peakUtilization: recorder.utilization(rule, nowMs),
    limit: shownLimit(rule),
    demand: { keys: Array.from(keys), max },
    candidates: rule.candidates.map((candidate) =>
      recorder.declines(candidate, rule.windowMs, nowMs),
    ),
    topKeys: recorder.heavyKeys(rule)?.listed(nowMs, keyCount) ?? { keys: [], unlistedMax: 0 },
  }
}

/*
 * Where the values of the gate's metrics come from: for each row of the table, how to read it now. Every
 * series is there from the first scrape, at 0 where nothing has happened.
 */
import { addressKinds } from '../core/address-kind.js'
import type { Clock } from '../core/clock.js'
import { stepDirections, type ClockSteps } from '../core/clock-steps.js'
import { outcomes, verdicts } from '../core/decision.js'
import { shownCapacity, shownLimit } from '../core/plans.js'
import type { CompiledRule } from '../core/rule.js'
import { warningCodes, type Warnings } from '../core/warnings.js'
import { windowKinds } from '../core/windows.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import { histogramSamples, type Histogram, type Sample } from '../metrics/histogram.js'
import type { MetricSources } from '../metrics/prometheus.js'
import type { Recorder } from '../metrics/recorder.js'
import { labelValues, metrics } from '../metrics/table.js'
import type { Tally, TallyView } from '../tally/tally.js'

export interface SourceParts {
  readonly limiter: RuleLimiter
  readonly recorder: Recorder
  readonly tally: Tally
  readonly warnings: Warnings
  readonly flushDuration: Histogram
  readonly clockSteps: ClockSteps
  readonly clock: Clock
  readonly startedAtMs: number
  readonly utilizationOf: (rule: CompiledRule) => number
  readonly wrongTokenCount: () => number
  /** How often a rule was changed while it ran. */
  readonly changeCountOf: (rule: CompiledRule) => number
  readonly version: string
}

export function metricSources(parts: SourceParts): MetricSources {
  return {
    ...requestSources(parts),
    ...clientSources(parts),
    ...ruleSources(parts),
    ...keySources(parts),
    ...tallySources(parts),
  }
}

function requestSources({
  recorder,
  clockSteps,
  wrongTokenCount,
  version,
}: SourceParts): MetricSources {
  return {
    requests: () =>
      outcomes.map((outcome, index) => ({
        labels: { outcome },
        value: recorder.requests[index] ?? 0,
      })),
    clockSteps: () =>
      stepDirections.map((direction, index) => ({
        labels: { direction },
        value: clockSteps.count(index),
      })),
    adminAuthFailures: () => one(wrongTokenCount()),
    buildInfo: () => [{ labels: { version, node: process.version }, value: 1 }],
  }
}

function clientSources({ recorder, warnings }: SourceParts): MetricSources {
  return {
    clientIdentity: () =>
      addressKinds.map((kind, index) => ({
        labels: { kind },
        value: recorder.identities[index] ?? 0,
      })),
    untrustedForwards: () => one(recorder.untrustedForwardCount),
    warnings: () =>
      warningCodes.map((code) => ({ labels: { code }, value: warnings.countOf(code) })),
  }
}

function ruleSources({
  limiter,
  recorder,
  utilizationOf,
  changeCountOf,
}: SourceParts): MetricSources {
  const each = byRule(limiter)
  return {
    ruleDecisions: () =>
      limiter.rules.flatMap((rule) =>
        labelValues.mode.flatMap((mode, modeIndex) =>
          verdicts.map((verdict, index) => ({
            labels: { rule: rule.name, mode, verdict },
            value: recorder.decisions(rule.index, modeIndex, index),
          })),
        ),
      ),
    candidateDecisions: () =>
      limiter.rules.flatMap(({ name, candidates }) =>
        candidates.flatMap(({ index, label }) =>
          verdicts.map((verdict, position) => ({
            labels: { rule: name, candidate: label, verdict },
            value: recorder.decisions(index, 1, position),
          })),
        ),
      ),
    ruleLimit: each(shownLimit),
    ruleBurst: each(shownCapacity),
    ruleWindowSeconds: each((rule) => rule.windowMs / 1000),
    ruleInfo: () =>
      limiter.rules.map(({ name, algorithm, key, mode }) => ({
        labels: { rule: name, algorithm: algorithm.name, key, mode },
        value: 1,
      })),
    ruleUtilization: each(utilizationOf),
    configurationChanges: each(changeCountOf),
  }
}

function keySources({ limiter, recorder, clock }: SourceParts): MetricSources {
  const each = byRule(limiter)
  return {
    ruleLargestKey: () =>
      limiter.rules.flatMap((rule) => {
        const heavyKeys = recorder.heavyKeys(rule)
        if (heavyKeys === null) return []
        const value = heavyKeys.largestRatio(clock.monotonicMs())
        return [{ labels: { rule: rule.name }, value }]
      }),
    keyWindowDemand: () => {
      const { name, buckets } = metrics.keyWindowDemand
      return limiter.rules.flatMap((rule) => {
        const totals = recorder.demand(rule).totals(rule.windowMs, clock.monotonicMs())
        return histogramSamples(name, { rule: rule.name }, buckets, totals.bucketKeys, totals.sum)
      })
    },
    ruleKeys: each((rule) => limiter.keyCounts(rule).tracked),
    ruleKeysMax: each((rule) => rule.maxKeys),
    ruleDeclinedKeys: each(
      (rule) => recorder.declines(rule, rule.windowMs, clock.monotonicMs()).keysOver,
    ),
    ruleEvictions: () =>
      limiter.rules.flatMap((rule) => {
        const { evictedExpired, evictedLive } = limiter.keyCounts(rule)
        return [
          { labels: { rule: rule.name, state: 'expired' }, value: evictedExpired },
          { labels: { rule: rule.name, state: 'live' }, value: evictedLive },
        ]
      }),
  }
}

function tallySources({ tally, flushDuration, startedAtMs }: SourceParts): MetricSources {
  return {
    windowRequests: () => windowSamples(tally.view(), tally.archive.id),
    tallyFlushDuration: () => flushDuration.samples(metrics.tallyFlushDuration.name),
    tallyFlushes: () => {
      const { okCount, failedCount } = tally.health()
      return [
        { labels: { result: 'ok' }, value: okCount },
        { labels: { result: 'failed' }, value: failedCount },
      ]
    },
    tallyPending: () => one(tally.pendingRequests()),
    tallyLost: () => one(tally.lostRequests),
    tallyLastFlush: () => one((tally.health().lastFlushAtMs ?? startedAtMs) / 1000),
    databaseSize: () => one(tally.archive.sizeBytes),
    databaseUp: () => one(tally.health().failure === null ? 1 : 0),
  }
}

/** @param database an id of where these counts are kept. */
export function windowSamples(view: TallyView, database: string): Sample[] {
  return windowKinds.flatMap((window) =>
    labelValues.period.flatMap((period) =>
      outcomes.map((outcome, index) => ({
        labels: { database, window, period, outcome },
        value: view.windows[window][period].counts[index] ?? 0,
      })),
    ),
  )
}

/** One sample for each rule, read when asked. */
function byRule({ rules }: RuleLimiter) {
  return (read: (rule: CompiledRule) => number) => (): Sample[] =>
    rules.map((rule) => ({ labels: { rule: rule.name }, value: read(rule) }))
}

function one(value: number): Sample[] {
  return [{ labels: {}, value }]
}

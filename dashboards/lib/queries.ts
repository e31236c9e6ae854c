/*
 * Every question that the boards put to Prometheus, as a named function. Metric names come from
 * the metric table, so a renamed metric is a compile error here and not an empty panel at night.
 *
 * Two rules hold throughout. A figure without traffic is 0, never NaN. A figure without an
 * instance is absent: no query falls back on a constant, which would show a calm 0 for an app
 * that is down.
 */
import { metrics } from '../../src/metrics/table.js'
import { aggregate, increase, indent, rate, select } from './promql.js'

const sum = (inner: string, by = ''): string => aggregate('sum', by, inner)
const max = (inner: string, by = ''): string => aggregate('max', by, inner)

/** Requests per second, by what became of them. */
export function requestRateByOutcome(): string {
  return sum(rate(select(metrics.requests)), 'outcome')
}

/**
 * Declined among the judged requests. Exempt ones are left out: they would hide a decline of all.
 */
export function declinedShare(): string {
  const declined = sum(rate(select(metrics.requests, 'outcome="declined"')))
  const judged = sum(rate(select(metrics.requests, 'outcome!="exempt"')))
  return `${declined}\n/ (${judged} > 0)\nor ${judged}`
}

/** Declines per second by rules whose key is shared by everyone, or by the others. */
export function declineRateByReach(reach: 'everyone' | 'one client'): string {
  const key = reach === 'everyone' ? 'key="global"' : 'key!="global"'
  const declines = rate(select(metrics.ruleDecisions, 'mode="enforce",verdict="over"'))
  const rules = max(select(metrics.ruleInfo, key), 'job, instance, rule')
  const matched = sum(`${declines}\n* on (job, instance, rule) group_left ()\n${rules}`)
  // A configuration may have no rule of that reach; then nothing is declined by one.
  return `${matched}\nor 0 * ${sum(rate(select(metrics.requests)))}`
}

/** Declines per second that each enforced rule is a reason for. */
export function declineRateByRule(): string {
  return sum(rate(select(metrics.ruleDecisions, 'mode="enforce",verdict="over"')), 'rule')
}

/**
 * Attempts per second that each rule judged to be `verdict`, whether it is enforced or in shadow.
 */
export function verdictRateByRule(verdict: 'within' | 'near' | 'over'): string {
  return sum(rate(select(metrics.ruleDecisions, `verdict="${verdict}"`)), 'rule')
}

/** Highest share of its limit that any key of a rule has used. */
export function utilizationByRule(): string {
  return max(select(metrics.ruleUtilization), 'rule')
}

/** The one rule that is closest to its limit. */
export function closestRule(): string {
  return `topk(1, ${utilizationByRule()})`
}

/**
 * Requests in one calendar window. Instances that share a database all report its counts: `max by
 * (database, …)` counts each database once, and the sum adds different databases up.
 */
export function windowRequests(window: string, period: 'current' | 'previous'): string {
  const matchers = `window="${window}",period="${period}",outcome!="exempt"`
  const once = max(select(metrics.windowRequests, matchers), 'database, window, period, outcome')
  return sum(once, 'outcome')
}

export function ruleInfo(): string {
  return max(select(metrics.ruleInfo), 'rule, algorithm, key, mode')
}

export function ruleLimit(): string {
  return max(select(metrics.ruleLimit), 'rule')
}

export function ruleWindow(): string {
  return max(select(metrics.ruleWindowSeconds), 'rule')
}

export function keysByRule(): string {
  return sum(select(metrics.ruleKeys), 'rule')
}

/** How full the key tables are: at 1 a rule begins to forget live keys. */
export function keyTableShareByRule(): string {
  return max(`${select(metrics.ruleKeys)}\n/ ${select(metrics.ruleKeysMax)}`, 'rule')
}

/** Keys that were dropped before their time, because a table was full, over the time shown. */
export function liveEvictions(): string {
  return sum(increase(select(metrics.ruleEvictions, 'state="live"')))
}

/** A quantile of the time to answer; 0 while nothing is answered. */
export function latencyQuantile(quantile: number): string {
  return quantileOf(quantile, metrics.httpRequestDuration, '')
}

/** The routes that take longest, by p99; 0 for a route that nobody asks. */
export function slowestRoutes(count: number): string {
  return `topk(${count},\n${indent(quantileOf(0.99, metrics.httpRequestDuration, 'route'))}\n)`
}

export function responseRateByCode(): string {
  return sum(rate(select(metrics.httpRequestDuration, '', '_count')), 'code')
}

/** 1 if the last flush of every instance succeeded. */
export function databaseUp(): string {
  return aggregate('min', '', select(metrics.databaseUp))
}

/** Seconds since the instance that is furthest behind last wrote its counts down. */
export function flushAge(): string {
  return max(`time() - ${select(metrics.tallyLastFlush)}`)
}

export function pendingRequests(): string {
  return sum(select(metrics.tallyPending))
}

export function failedFlushes(): string {
  return sum(increase(select(metrics.tallyFlushes, 'result="failed"')))
}

export function flushRateByResult(): string {
  return sum(rate(select(metrics.tallyFlushes)), 'result')
}

export function flushQuantile(quantile: number): string {
  return quantileOf(quantile, metrics.tallyFlushDuration, '')
}

/** One file may be shared by several instances, so sizes are not added up. */
export function databaseSize(): string {
  return max(select(metrics.databaseSize))
}

export function sessions(): string {
  return max(select(metrics.sessions))
}

export function adminAuthFailures(): string {
  return sum(increase(select(metrics.adminAuthFailures)))
}

/**
 * A quantile of a histogram, by `label` or over all. Without observations it would be NaN: the
 * comparison drops that, and the count's rate, 0 then, stands in for it.
 */
function quantileOf(quantile: number, metric: { readonly name: string }, label: string): string {
  const buckets = sum(
    rate(select(metric, '', '_bucket')),
    ['le', label].filter((part) => part !== '').join(', '),
  )
  const count = sum(rate(select(metric, '', '_count')), label)
  return `histogram_quantile(${quantile}, ${buckets}) > 0\nor 0 * ${count}`
}

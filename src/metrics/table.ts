/*
 * Every metric that tallygate exposes, once: name, type, help, unit, labels with their closed sets of
 * values, buckets, and how to add it up over processes. The recorder, the exposition, the boards and
 * the docs draw on this table, so a name is spelt here and nowhere else.
 *
 * Adding a metric: a row here, a source for it in `gate/metric-sources.ts`, a line in CHANGELOG.md.
 */
import { addressKinds } from '../core/address-kind.js'
import { stepDirections } from '../core/clock-steps.js'
import { outcomes, verdicts } from '../core/decision.js'
import { warningCodes } from '../core/warnings.js'
import { windowKinds } from '../core/windows.js'
import { fetchFailureReasons, parseResults } from '../url/observer.js'

export type MetricType = 'counter' | 'gauge' | 'histogram'

/** Base units only, as Prometheus asks. `one` is a plain count, `ratio` is 0 to 1. */
export type Unit = 'one' | 'seconds' | 'bytes' | 'ratio' | 'timestamp'

/**
 * How the series of several processes make one figure: `sum` them; take the `max` (a figure that each
 * process reads from the same place); or show each `one` for itself. The workers of one node:cluster, which
 * have one answer, show the least of these: the oldest flush, the database that is down.
 */
export type Aggregate = 'sum' | 'max' | 'one'

export interface MetricRow {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly unit: Unit
  readonly labels: readonly string[]
  /** Closed sets of values that a label has in this metric alone. */
  readonly values?: Readonly<Record<string, readonly string[]>>
  readonly aggregate: Aggregate
  /** Upper bounds of a histogram's buckets, in its unit, without +Inf. */
  readonly buckets?: readonly number[]
}

/** The values of the labels whose set is closed and the same everywhere; other labels take rule names or route templates. */
export const labelValues = {
  outcome: outcomes,
  verdict: verdicts,
  mode: ['enforce', 'shadow'],
  window: windowKinds,
  period: ['current', 'previous'],
  state: ['expired', 'live'],
  direction: stepDirections,
} as const

const durationBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const demandBuckets = [1, 10, 100, 1_000, 10_000, 100_000].flatMap((power) =>
  [1, 2, 3, 5, 7].map((step) => step * power),
)
const fetchBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const flushBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

export const metrics = {
  requests: {
    name: 'tallygate_requests_total',
    type: 'counter',
    help: 'Requests that the gate has seen to their end, by what became of them.',
    unit: 'one',
    labels: ['outcome'],
    aggregate: 'sum',
  },
  ruleDecisions: {
    name: 'tallygate_rule_decisions_total',
    type: 'counter',
    help: 'Attempts that a rule has judged, by its verdict: within, near or over its limit.',
    unit: 'one',
    labels: ['rule', 'mode', 'verdict'],
    aggregate: 'sum',
  },
  candidateDecisions: {
    name: 'tallygate_candidate_decisions_total',
    type: 'counter',
    help: 'Attempts that a candidate of a rule has judged, as if it alone decided, by its verdict.',
    unit: 'one',
    labels: ['rule', 'candidate', 'verdict'],
    aggregate: 'sum',
  },
  ruleLimit: {
    name: 'tallygate_rule_limit',
    type: 'gauge',
    help: 'Limit of a rule, in cost units a window; where it is a function, the greatest it gave so far.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'max',
  },
  ruleBurst: {
    name: 'tallygate_rule_burst',
    type: 'gauge',
    help: 'Size of the bucket of a token-bucket rule; the limit of any other.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'max',
  },
  ruleWindowSeconds: {
    name: 'tallygate_rule_window_seconds',
    type: 'gauge',
    help: 'Window of a rule.',
    unit: 'seconds',
    labels: ['rule'],
    aggregate: 'max',
  },
  ruleInfo: {
    name: 'tallygate_rule_info',
    type: 'gauge',
    help: 'How a rule is set up; the value is always 1.',
    unit: 'one',
    labels: ['rule', 'algorithm', 'key', 'mode'],
    aggregate: 'max',
  },
  ruleUtilization: {
    name: 'tallygate_rule_utilization_ratio',
    type: 'gauge',
    help: 'Highest usage of any key as a share of the limit, in the current or the last window.',
    unit: 'ratio',
    labels: ['rule'],
    aggregate: 'max',
  },
  ruleLargestKey: {
    name: 'tallygate_rule_largest_key_ratio',
    type: 'gauge',
    help: 'Share of the attempts in the last window that one key made, at least; not for rules that count all as one.',
    unit: 'ratio',
    labels: ['rule'],
    aggregate: 'max',
  },
  keyWindowDemand: {
    name: 'tallygate_key_window_demand',
    type: 'histogram',
    help: 'Cost that a key asked for in a closed window of its rule, declined attempts included: one observation for each key and window.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'sum',
    buckets: [...demandBuckets, 1_000_000],
  },
  ruleKeys: {
    name: 'tallygate_rule_keys',
    type: 'gauge',
    help: 'Keys that a rule tracks now.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'sum',
  },
  ruleKeysMax: {
    name: 'tallygate_rule_keys_max',
    type: 'gauge',
    help: 'Most keys that a rule may track at once.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'sum',
  },
  ruleDeclinedKeys: {
    name: 'tallygate_rule_declined_keys',
    type: 'gauge',
    help: 'Keys that a rule was over for, in the current or the last window; beyond 512 estimated, to some 2 %.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'sum',
  },
  ruleEvictions: {
    name: 'tallygate_rule_evictions_total',
    type: 'counter',
    help: 'Keys dropped: expired ones as a matter of course, live ones because the table was full.',
    unit: 'one',
    labels: ['rule', 'state'],
    aggregate: 'sum',
  },
  windowRequests: {
    name: 'tallygate_window_requests',
    type: 'gauge',
    help: 'Requests in a calendar window, the current or the previous one, as kept in the database.',
    unit: 'one',
    labels: ['database', 'window', 'period', 'outcome'],
    aggregate: 'max',
  },
  tallyFlushDuration: {
    name: 'tallygate_tally_flush_duration_seconds',
    type: 'histogram',
    help: 'Time that a flush of the tallies took.',
    unit: 'seconds',
    labels: [],
    aggregate: 'sum',
    buckets: flushBuckets,
  },
  tallyFlushes: {
    name: 'tallygate_tally_flushes_total',
    type: 'counter',
    help: 'Flushes of the tallies, by result.',
    unit: 'one',
    labels: ['result'],
    values: { result: ['ok', 'failed'] },
    aggregate: 'sum',
  },
  tallyPending: {
    name: 'tallygate_tally_pending_requests',
    type: 'gauge',
    help: 'Requests counted in memory and not yet in the database.',
    unit: 'one',
    labels: [],
    aggregate: 'sum',
  },
  tallyLost: {
    name: 'tallygate_tally_lost_requests_total',
    type: 'counter',
    help: 'Requests left out of a minute or an hour, because too much waited for a database that failed; larger windows have them.',
    unit: 'one',
    labels: [],
    aggregate: 'sum',
  },
  tallyLastFlush: {
    name: 'tallygate_tally_last_flush_timestamp_seconds',
    type: 'gauge',
    help: 'Time of the last flush that succeeded; the start time until the first.',
    unit: 'timestamp',
    labels: [],
    aggregate: 'one',
  },
  databaseSize: {
    name: 'tallygate_database_size_bytes',
    type: 'gauge',
    help: 'Size of the SQLite file and its write-ahead log; 0 for tallies kept in memory.',
    unit: 'bytes',
    labels: [],
    aggregate: 'max',
  },
  databaseUp: {
    name: 'tallygate_database_up',
    type: 'gauge',
    help: '1 if the last flush succeeded, else 0.',
    unit: 'one',
    labels: [],
    aggregate: 'one',
  },
  clockSteps: {
    name: 'tallygate_clock_steps_total',
    type: 'counter',
    help: 'Times that the system clock was set, by direction. Rules do not mind; a minute of the tallies came twice or never.',
    unit: 'one',
    labels: ['direction'],
    aggregate: 'sum',
  },
  configurationChanges: {
    name: 'tallygate_configuration_changes_total',
    type: 'counter',
    help: 'Changes of a rule that this process has taken over while it ran, of its own or of another process.',
    unit: 'one',
    labels: ['rule'],
    aggregate: 'sum',
  },
  clientIdentity: {
    name: 'tallygate_client_identity_total',
    type: 'counter',
    help: 'Requests by where the address lies that they are counted under.',
    unit: 'one',
    labels: ['kind'],
    values: { kind: addressKinds },
    aggregate: 'sum',
  },
  untrustedForwards: {
    name: 'tallygate_untrusted_forward_total',
    type: 'counter',
    help: 'Requests with a forwarding header that was not read, because trust proxy is off.',
    unit: 'one',
    labels: [],
    aggregate: 'sum',
  },
  warnings: {
    name: 'tallygate_warnings_total',
    type: 'counter',
    help: 'Occurrences of what a warning is about; each kind is logged once.',
    unit: 'one',
    labels: ['code'],
    values: { code: warningCodes },
    aggregate: 'sum',
  },
  adminAuthFailures: {
    name: 'tallygate_admin_auth_failures_total',
    type: 'counter',
    help: 'Requests to the admin routes that carried a wrong token.',
    unit: 'one',
    labels: [],
    aggregate: 'sum',
  },
  httpRequestDuration: {
    name: 'tallygate_http_request_duration_seconds',
    type: 'histogram',
    help: 'Time from a request to the end of its response, in the bundled app.',
    unit: 'seconds',
    labels: ['method', 'route', 'code'],
    aggregate: 'sum',
    buckets: durationBuckets,
  },
  urlParseRequests: {
    name: 'tallygate_url_parse_requests_total',
    type: 'counter',
    help: 'Pages asked for: out of the cache, fetched, shared with another fetch, declined one by a limit, or not to be had.',
    unit: 'one',
    labels: ['result'],
    values: { result: parseResults },
    aggregate: 'sum',
  },
  urlFetchDuration: {
    name: 'tallygate_url_fetch_duration_seconds',
    type: 'histogram',
    help: 'Time from the beginning of a fetch to the end of the page, or to its failure.',
    unit: 'seconds',
    labels: [],
    aggregate: 'sum',
    buckets: fetchBuckets,
  },
  urlFetchFailures: {
    name: 'tallygate_url_fetch_failures_total',
    type: 'counter',
    help: 'Fetches that brought no page, by why; a URL that is refused by its text is not fetched.',
    unit: 'one',
    labels: ['reason'],
    values: { reason: fetchFailureReasons },
    aggregate: 'sum',
  },
  urlCacheEntries: {
    name: 'tallygate_url_cache_entries',
    type: 'gauge',
    help: 'Pages of the last day in the cache, as kept in the database.',
    unit: 'one',
    labels: [],
    aggregate: 'max',
  },
  sessions: {
    name: 'tallygate_sessions',
    type: 'gauge',
    help: 'Sessions in the session store of the bundled app that have not expired.',
    unit: 'one',
    labels: [],
    aggregate: 'max',
  },
  buildInfo: {
    name: 'tallygate_build_info',
    type: 'gauge',
    help: 'Version of tallygate and of Node.js; the value is always 1.',
    unit: 'one',
    labels: ['version', 'node'],
    aggregate: 'one',
  },
} as const satisfies Record<string, MetricRow>

export type MetricId = keyof typeof metrics

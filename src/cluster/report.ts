/*
 * What a worker tells of one gate, and what all of them together come to: plain data that survives JSON,
 * with lists by the index of the rule. Two parts: what outlives the worker, counters and tallies that are
 * in no database, which the primary adds up when it has ended; and what is true of it only while it lives.
 *
 * NaN and infinities, which JSON does not know, pass as texts.
 */
import type { WindowKind } from '../core/windows.js'
import type { Aggregate } from '../metrics/table.js'

export type MetricKind = 'counter' | 'gauge' | 'histogram' | 'summary'

export interface ReportedSeries {
  /** Where it is not the metric's own name: `…_bucket`, `…_sum`, `…_count`. */
  readonly name?: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number | string
}

export interface ReportedMetric {
  readonly name: string
  readonly help: string
  readonly type: MetricKind
  readonly aggregate: Aggregate
  readonly series: readonly ReportedSeries[]
}

/** Counts by slot, as `TallySlots` lays them out, and the digits of those that a double does not hold. */
export interface Row {
  readonly counts: readonly number[]
  readonly large?: readonly (readonly [slot: number, digits: string])[]
}

export interface WindowReport extends Row {
  readonly window: WindowKind
  /** Milliseconds since the epoch. */
  readonly startMs: number
}

export interface TallyReport {
  /** When counting began. */
  readonly sinceMs: number
  readonly totals: Row
  /** Only windows that somebody may want to see: the current and the previous one of each kind. */
  readonly windows: readonly WindowReport[]
}

/** Counts that the shared database may lack: it has them once it has this writer's batch of that number. */
export interface UnsavedReport {
  readonly writer: string
  readonly sequence: number
  readonly requests: number
  readonly tally: TallyReport
}

/** A key as statistics list it. */
export interface KeyReport {
  readonly id: string
  readonly key: string | null
  readonly requests: number
  readonly over: number
  readonly countErrorMax: number
}

export interface TopKeys {
  readonly keys: readonly KeyReport[]
  /** The most attempts that a key can have made without being listed. */
  readonly unlistedMax: number
}

export interface RuleReport {
  readonly trackedKeys: number
  /** Highest usage of any key as a share of the limit. */
  readonly peakUtilization: number
  readonly limit: number
  /** How many keys asked for how much, by bucket, and the most that one did. */
  readonly demand: { readonly keys: readonly number[]; readonly max: number }
  readonly candidates: readonly { readonly over: number; readonly keysOver: number }[]
  readonly topKeys: TopKeys
}

/** What outlives the worker. It only ever grows. */
export interface Lasting {
  readonly metrics: readonly ReportedMetric[]
  /** null where a database keeps the tallies. */
  readonly tally: TallyReport | null
  /** Flushes that failed. */
  readonly failures: number
  /** Requests that a minute or an hour lacks. */
  readonly lost: number
  /** Of each rule, keys that had to go although they still counted. */
  readonly evictedKeys: readonly number[]
}

/** What ends with the worker. */
export interface Passing {
  readonly metrics: readonly ReportedMetric[]
  /** The same in processes whose hashes of keys, and so their ids, are the same. */
  readonly keySpace: string
  readonly rules: readonly RuleReport[]
  readonly unsaved: readonly UnsavedReport[]
  readonly lastFlushAtMs: number | null
  /** Requests that wait in a process that has no shared database. */
  readonly pending: number
}

/** `passing` is null of workers that are gone, or have told no more yet. */
export interface Report {
  readonly lasting: Lasting
  readonly passing: Passing | null
}

/** All workers, the dead included, as one. */
export interface Merged extends Lasting {
  /** Live workers that take part. */
  readonly workerCount: number
  readonly rules: readonly RuleReport[]
  readonly unsaved: readonly UnsavedReport[]
  readonly lastFlushAtMs: number | null
  readonly pending: number
}

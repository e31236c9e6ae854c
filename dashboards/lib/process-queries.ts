/*
 * Questions about the processes that tallygate runs in. The names are prom-client's defaults, and
 * other programs have metrics of the same names, Prometheus itself among them: each query here
 * keeps only the instances that also report tallygate's build, or "All" would draw strangers.
 */
import { metrics } from '../../src/metrics/table.js'
import { rate, select } from './promql.js'

/** The names of prom-client that are used. */
const names = {
  startTime: { name: 'process_start_time_seconds' },
  residentMemory: { name: 'process_resident_memory_bytes' },
  heapUsed: { name: 'nodejs_heap_size_used_bytes' },
  cpu: { name: 'process_cpu_seconds_total' },
  lagP50: { name: 'nodejs_eventloop_lag_p50_seconds' },
  lagP99: { name: 'nodejs_eventloop_lag_p99_seconds' },
} as const

export function residentMemory(): string {
  return ours(select(names.residentMemory))
}

export function heapUsed(): string {
  return ours(select(names.heapUsed))
}

/** Share of one processor. */
export function processorShare(): string {
  return ours(rate(select(names.cpu)))
}

export function eventLoopLag(quantile: 'p50' | 'p99'): string {
  return ours(select(quantile === 'p50' ? names.lagP50 : names.lagP99))
}

/** Seconds since each process started, labelled with what it runs. */
export function uptimeByVersion(): string {
  const age = `(time() - ${select(names.startTime)})`
  return `${age}\n* on (job, instance) group_left (version, node)\n${select(metrics.buildInfo)}`
}

/** A sample wherever a process has started anew. */
export function restarts(): string {
  return ours(`changes(${select(names.startTime)}[$__rate_interval]) > 0`)
}

function ours(query: string): string {
  return `${query}\nand on (job, instance)\n${select(metrics.buildInfo)}`
}

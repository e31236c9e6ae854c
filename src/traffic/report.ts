/*
 * What came of a run. Every request that was sent is counted once when it was answered or has failed, so
 * that in a report sent = answered + failed, to the last one. It also judges, from what the answers say of
 * the rule `ip`, whether the app saw the clients' own addresses.
 */
import type { Client } from './client.js'
import type { Exchange } from './exchange.js'
import { Latency } from './latency.js'

export type StopReason = 'end' | 'signal' | 'failures'

export interface Progress {
  readonly elapsedMs: number
  readonly sent: number
  readonly answered: number
  readonly failed: number
  /** Requests by HTTP status. */
  readonly statuses: Readonly<Record<string, number>>
}

export interface TrafficReport extends Progress {
  readonly url: string
  readonly seed: number
  readonly stoppedBy: StopReason
  /** Declined requests by the rules that declined; a request counts for each of them. */
  readonly declinedBy: Readonly<Record<string, number>>
  readonly sessions: { readonly begun: number; readonly ended: number }
  /** Clients that sent anything. */
  readonly clientCount: number
  readonly latencyMs: { readonly p50: number | null; readonly p99: number | null }
  /** Whether all clients seem to be one address to the app; null where its answers do not tell. */
  readonly isAddressShared: boolean | null
}

/** A light client that sent this few cannot have used this much of `ip` by itself. */
const fewRequests = 10
const muchUsage = 50
const witnessesNeeded = 3
/** A foreign server may name any number of rules. */
const ruleNamesMax = 100

export class ReportCounts {
  failedInRow = 0
  #sent = 0
  #failed = 0
  #answered = 0
  #begun = 0
  #ended = 0
  readonly #statuses = new Map<string, number>()
  readonly #declinedBy = new Map<string, number>()
  readonly #latency = new Latency()
  readonly #senders = new Set<Client>()
  readonly #sharers = new Set<Client>()
  #isAddressTold = false

  countSent(client: Client): void {
    this.#sent++
    client.sentCount++
    this.#senders.add(client)
  }

  countDone(client: Client, method: string, done: Exchange): void {
    if (!done.isAnswered) {
      this.#failed++
      this.failedInRow++
      return
    }
    this.#answered++
    this.failedInRow = 0
    this.#latency.observe(done.latencyMs)
    increment(this.#statuses, String(done.status))
    for (const rule of done.declinedBy) {
      if (this.#declinedBy.has(rule) || this.#declinedBy.size < ruleNamesMax) {
        increment(this.#declinedBy, rule)
      }
    }
    if (method === 'POST' && done.status === 201) this.#begun++
    if (method === 'DELETE' && done.status === 204) this.#ended++
    this.#judgeAddress(client, done.headers)
  }

  progress(elapsedMs: number): Progress {
    return {
      elapsedMs,
      sent: this.#sent,
      answered: this.#answered,
      failed: this.#failed,
      statuses: sorted(this.#statuses),
    }
  }

  report(run: Pick<TrafficReport, 'url' | 'seed' | 'stoppedBy' | 'elapsedMs'>): TrafficReport {
    return {
      ...this.progress(run.elapsedMs),
      url: run.url,
      seed: run.seed,
      stoppedBy: run.stoppedBy,
      declinedBy: sorted(this.#declinedBy),
      sessions: { begun: this.#begun, ended: this.#ended },
      clientCount: this.#senders.size,
      latencyMs: { p50: this.#latency.quantileMs(0.5), p99: this.#latency.quantileMs(0.99) },
      isAddressShared: this.#isAddressTold ? this.#sharers.size >= witnessesNeeded : null,
    }
  }

  #judgeAddress(client: Client, headers: Headers): void {
    const limit = /"ip";q=(\d+)/.exec(headers.get('RateLimit-Policy') ?? '')?.[1]
    const remaining = /"ip";r=(\d+)/.exec(headers.get('RateLimit') ?? '')?.[1]
    if (limit === undefined || remaining === undefined) return
    this.#isAddressTold = true
    if (!client.isLight || client.sentCount > fewRequests) return
    if (Number(limit) - Number(remaining) >= muchUsage) this.#sharers.add(client)
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function sorted(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].toSorted(([a], [b]) => a.localeCompare(b)))
}

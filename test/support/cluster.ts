/*
 * A real cluster: a primary that forks workers behind one port, each also reachable by a port of its own.
 */
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Statistics } from '../../src/admin/statistics.js'
import { parseExposition, valueOf, type SeriesValue } from './exposition.js'
import { root, run, temporaryFolder, until } from './processes.js'

export interface ClusterWorker {
  readonly id: number
  readonly pid: number
  /** The port of all, as a base address. */
  readonly shared: string
  /** Its own. */
  readonly own: string
}

export interface Cluster {
  /** Those that live, by id. */
  workers(): ClusterWorker[]
  /** One more, once it listens. */
  fork(): Promise<ClusterWorker>
  /** Sends a signal to a worker and waits until the primary knows of its end. */
  end(worker: ClusterWorker, signal: NodeJS.Signals): Promise<void>
  metricsText(worker: ClusterWorker, gate?: number): Promise<string>
  metrics(worker: ClusterWorker, gate?: number): Promise<SeriesValue[]>
  stats(worker: ClusterWorker, gate?: number): Promise<Statistics>
  stderr(): string
  /** Stops the primary, or lets it go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
}

const adminToken = 'c0ffee00c0ffee11c0ffee22c0ffee33'
const program = join(root, 'test/cluster/programs/cluster.mjs')

/** @param onEnd takes what ends it; after the test unless said. */
export async function startCluster(
  env: Record<string, string> = {},
  onEnd: (end: () => Promise<void>) => void = onTestFinished,
): Promise<Cluster> {
  const primary = run(process.execPath, [program], { PORT: '0', ADMIN_TOKEN: adminToken, ...env })
  onEnd(async () => void (await primary.end()))
  const lines = () =>
    primary
      .stdout()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, number | string>)
  const started = () => lines().filter(({ pid }) => pid !== undefined)
  const ended = () =>
    new Set(lines().flatMap(({ id, ended: how }) => (how === undefined ? [] : [id])))
  const workers = () =>
    started()
      .filter(({ id }) => !ended().has(id))
      .map(({ id, pid, shared, own }) => ({
        id: Number(id),
        pid: Number(pid),
        shared: `http://127.0.0.1:${shared}`,
        own: `http://127.0.0.1:${own}`,
      }))
      .toSorted((a, b) => a.id - b.id)
  const count = Number(env['WORKERS'] ?? 3)
  await until(async () => workers().length === count, `${count} workers: ${primary.stderr()}`)
  const metricsText = async ({ own }: ClusterWorker, gate = 0) => {
    const answer = await fetch(`${own}/${gate}/metrics`)
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`)
    return answer.text()
  }
  return {
    workers,
    metricsText,
    stderr: () => primary.stderr(),
    signal: (signal) => void primary.child.kill(signal),
    async fork() {
      const before = started().length
      primary.child.stdin?.write('fork\n')
      await until(async () => started().length > before, 'a new worker')
      return workers().at(-1) as ClusterWorker
    },
    async end({ id, pid }, signal) {
      process.kill(pid, signal)
      await until(async () => ended().has(id), `the end of worker ${id}`)
    },
    metrics: async (worker, gate) => parseExposition(await metricsText(worker, gate)),
    async stats({ own }, gate = 0) {
      const headers = { authorization: `Bearer ${adminToken}` }
      return (await (await fetch(`${own}/${gate}/admin/stats`, { headers })).json()) as Statistics
    },
  }
}

export const inDatabase = () => ({ DATABASE: join(temporaryFolder(), 'tallygate.db') })

export interface Seen {
  allowed: number
  declined: number
}

/** Sends requests, some at once, each of one of five clients, and counts what they see. */
export async function send(
  address: string,
  count: number,
  seen: Seen = { allowed: 0, declined: 0 },
) {
  let left = count
  const client = async () => {
    while (left > 0) {
      const name = `198.51.100.${left-- % 5}`
      const answer = await fetch(address, {
        headers: { 'x-forwarded-for': name, connection: 'close' },
      })
      await answer.arrayBuffer()
      seen[answer.status === 429 ? 'declined' : 'allowed']++
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  return seen
}

export const requestsIn = (series: readonly SeriesValue[], outcome: string) =>
  valueOf(series, 'tallygate_requests_total', { outcome })

export const first = (cluster: Cluster) => cluster.workers()[0] as ClusterWorker

/** A response ends for its client before its server has counted it. */
export const settled = (cluster: Cluster, requests: number) =>
  until(async () => {
    const { totals } = await cluster.stats(first(cluster))
    return totals.requests === requests
  }, `${requests} requests`)

/*
 * Real workers in less happy hours, and what their answers are made of: a database that is locked, a worker
 * that hangs, a primary that is silent, several gates, the metrics of processes.
 */
import { spawnSync } from 'node:child_process'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  first,
  inDatabase,
  requestsIn,
  send,
  settled,
  startCluster,
  type Cluster,
  type ClusterWorker,
} from '../support/cluster.js'
import { valueOf, type SeriesValue } from '../support/exposition.js'
import { until } from '../support/processes.js'
import { describeWith, findTool } from '../support/tools.js'

describe('a database that is locked', () => {
  it('loses nothing of the answer and doubles nothing, then and while what waits is written', async () => {
    const env = inDatabase()
    const cluster = await startCluster(env)
    const totals = async () => {
      const all = await Promise.all(cluster.workers().map((worker) => cluster.stats(worker)))
      return all.map(({ totals: { requests }, persistence }) => [requests, persistence.pending])
    }
    const lock = new Database(env.DATABASE)
    lock.exec('BEGIN IMMEDIATE')
    for (const { own } of cluster.workers()) await send(`${own}/0/app/x`, 20)
    await until(async () => (await totals()).every(([requests]) => requests === 60), 'all 60')
    expect(await totals()).toEqual([0, 1, 2].map(() => [60, 60]))
    lock.exec('COMMIT')
    lock.close()
    await until(async () => {
      const found = await totals()
      for (const [requests] of found) expect(requests).toBe(60)
      return found.every(([, pending]) => pending === 0)
    }, 'all to be written')
    const series = await cluster.metrics(first(cluster))
    const week = { window: 'week', period: 'current', outcome: 'allowed' }
    expect(valueOf(series, 'tallygate_window_requests', week)).toBe(60)
  })
})

describe('a worker that hangs', () => {
  it('delays an answer by half a second, once, and its counters stay', async () => {
    const cluster = await startCluster(inDatabase())
    const [one, two, three] = cluster.workers() as [ClusterWorker, ClusterWorker, ClusterWorker]
    const seen = await send(`${one.own}/0/app/x`, 50)
    await settled(cluster, 50)
    await (await fetch(`${one.own}/hang?ms=4000`)).text()
    const timed = async (worker: ClusterWorker) => {
      const startMs = performance.now()
      const series = await cluster.metrics(worker)
      return { ms: performance.now() - startMs, allowed: requestsIn(series, 'allowed') }
    }
    const [earlier, meanwhile] = await Promise.all([timed(two), timed(three)])
    const later = [await timed(three), await timed(two), await timed(three)]
    for (const { allowed } of [earlier, meanwhile, ...later]) expect(allowed).toBe(seen.allowed)
    expect(earlier.ms).toBeGreaterThan(400)
    expect(Math.max(earlier.ms, meanwhile.ms)).toBeLessThan(1_200)
    // The quickest: a busy machine is slow by itself.
    expect(Math.min(...later.map(({ ms }) => ms))).toBeLessThan(400)
    // Once it is well again it takes part again.
    await until(async () => (await timed(one)).allowed === seen.allowed, 'it to answer')
  })
})

describe('gates of a cluster', () => {
  it('two in one worker are two', async () => {
    const cluster = await startCluster({ ...inDatabase(), GATES: '2' })
    await send(`${first(cluster).shared}/1/app/x`, 30)
    await until(
      async () => requestsIn(await cluster.metrics(first(cluster), 1), 'allowed') === 30,
      'all to be counted',
    )
    for (const worker of cluster.workers()) {
      expect(requestsIn(await cluster.metrics(worker, 0), 'allowed')).toBe(0)
      expect(requestsIn(await cluster.metrics(worker, 1), 'allowed')).toBe(30)
    }
  })

  it('answer for themselves where the primary does not collect', async () => {
    const cluster = await startCluster({ COLLECT: 'no' })
    const [one, two] = cluster.workers() as [ClusterWorker, ClusterWorker]
    await send(`${one.own}/0/app/x`, 20)
    await until(async () => (await cluster.stats(one)).totals.requests === 20, 'all to be counted')
    expect(await cluster.stats(two)).toMatchObject({ scope: 'instance', totals: { requests: 0 } })
    expect(requestsIn(await cluster.metrics(two), 'allowed')).toBe(0)
  })

  it('answer no metrics while the primary is silent, and statistics that say whose they are', async () => {
    const cluster = await startCluster({ WORKERS: '2' })
    const [one, two] = cluster.workers() as [ClusterWorker, ClusterWorker]
    await send(`${one.own}/0/app/x`, 10)
    await settled(cluster, 10)
    cluster.signal('SIGSTOP')
    const [metrics, stats] = await Promise.all([
      fetch(`${two.own}/0/metrics`),
      cluster.stats(two),
    ]).finally(() => cluster.signal('SIGCONT'))
    expect(metrics.status).toBe(503)
    expect(stats).toMatchObject({ scope: 'instance', totals: { requests: 0 } })
    await until(async () => (await cluster.stats(two)).totals.requests === 10, 'an answer of all')
  })
})

describe('the workers of a cluster', () => {
  let cluster: Cluster
  const ends: (() => Promise<void>)[] = []
  beforeAll(async () => {
    cluster = await startCluster({}, (end) => ends.push(end))
  })
  afterAll(async () => {
    for (const end of ends) await end()
  })

  it('list the keys of all, and add up what they hold', async () => {
    for (const { own } of cluster.workers()) await send(`${own}/0/app/x`, 25)
    await settled(cluster, 75)
    const [ip, again] = await Promise.all(
      [0, 2].map(async (index) => {
        const stats = await cluster.stats(cluster.workers()[index] as ClusterWorker)
        return stats.rules.find(({ name }) => name === 'ip')
      }),
    )
    expect(again?.topKeys).toEqual(ip?.topKeys)
    expect(ip?.topKeys.map(({ key, requests }) => [key, requests]).toSorted()).toEqual(
      [0, 1, 2, 3, 4].map((last) => [`198.51.100.${last}`, 15]),
    )
    // Limits are of each process: a key asked each for five.
    expect(ip).toMatchObject({
      trackedKeys: 15,
      peakUtilization: 5 / 25,
      demand: { p50: 5, max: 5 },
      candidates: [{ limit: 5, over: 0, keysOver: 0 }],
    })
  })

  it('add up what each has of its own, but for the earliest start', async () => {
    const series = await cluster.metrics(first(cluster))
    const startSeconds = valueOf(series, 'process_start_time_seconds')
    expect(Date.now() / 1000 - startSeconds).toBeLessThan(60)
    expect(valueOf(series, 'nodejs_version_info')).toBe(1)
    expect(valueOf(series, 'tallygate_build_info')).toBe(1)
    expect(valueOf(series, 'tallygate_database_up')).toBe(1)
    const megabytes = valueOf(series, 'process_resident_memory_bytes') / 1_048_576
    expect(megabytes).toBeGreaterThan(3 * 40)
    expect(valueOf(series, 'tallygate_rule_keys_max', { rule: 'ip' })).toBe(3_000_000)
    expect(valueOf(series, 'tallygate_rule_limit', { rule: 'ip' })).toBe(25)
  })

  it('disturb nobody who uses the messages of the cluster', async () => {
    const { own } = first(cluster)
    const { process: listeners } = (await (await fetch(`${own}/listeners`)).json()) as {
      process: number
    }
    // The one of Node's own worker object; one of ours would keep a worker alive.
    expect(listeners).toBe(1)
    expect(cluster.stderr()).toBe('')
  })
})

describe('the metrics of a cluster', () => {
  it('have the series of a single process, each once', async () => {
    const cluster = await startCluster(inDatabase())
    const alone = await startCluster({ ...inDatabase(), COLLECT: 'no', WORKERS: '1' })
    const [all, one] = await Promise.all([
      cluster.metrics(first(cluster)),
      alone.metrics(first(alone)),
    ])
    const names = (series: readonly SeriesValue[]) =>
      series.map(({ name, labels }) => JSON.stringify([name, { ...labels, database: '' }]))
    expect(new Set(names(all)).size).toBe(all.length)
    // What each process has of its own may differ by what happened in it.
    const ofAll = (series: readonly SeriesValue[]) =>
      names(series).filter((name) => !name.includes('nodejs_active_resources'))
    expect(ofAll(all)).toEqual(ofAll(one))
  })

  describeWith(['promtool'], 'promtool', () => {
    it('finds nothing in them', async () => {
      const cluster = await startCluster(inDatabase())
      await send(`${first(cluster).shared}/0/app/x`, 30)
      await cluster.end(first(cluster), 'SIGTERM')
      const input = await cluster.metricsText(first(cluster))
      const checked = spawnSync(findTool('promtool') ?? '', ['check', 'metrics'], { input })
      expect([checked.status, String(checked.stdout), String(checked.stderr)]).toEqual([0, '', ''])
    })
  })
})

/*
 * Workers of node:cluster as one: real processes on the built package. Whichever worker is asked, the answer
 * is what the clients of all saw; what ended workers counted stays.
 */
import { describe, expect, it } from 'vitest'
import {
  first,
  inDatabase,
  requestsIn,
  send,
  settled,
  startCluster,
  type Cluster,
  type ClusterWorker,
  type Seen,
} from '../support/cluster.js'
import { valueOf, type SeriesValue } from '../support/exposition.js'

/** All counters, by name and labels. */
const countersOf = (series: readonly SeriesValue[]) =>
  new Map(
    series
      .filter(({ name }) => /_(total|count|sum|bucket)$/.test(name))
      .map(({ name, labels, value }) => [JSON.stringify([name, labels]), value]),
  )

const fallen = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) =>
  [...before].filter(([name, value]) => !((after.get(name) ?? -1) >= value))

/** What every worker answers, which must be the same. */
async function expectEverywhere(cluster: Cluster, { allowed, declined }: Seen) {
  for (const worker of cluster.workers()) {
    const stats = await cluster.stats(worker)
    const counts = { requests: allowed + declined, allowed, declined, exempt: 0 }
    expect(stats).toMatchObject({ scope: 'cluster', totals: counts })
    const { current, previous } = stats.windows.week
    expect(Number(current.allowed) + Number(previous.allowed)).toBe(allowed)
    const ip = stats.rules.find(({ name }) => name === 'ip')
    expect(Number(ip?.totals.within) + Number(ip?.totals.near)).toBe(allowed)
    expect(ip?.totals.over).toBe(declined)
    const series = await cluster.metrics(worker)
    expect(requestsIn(series, 'allowed')).toBe(allowed)
    expect(requestsIn(series, 'declined')).toBe(declined)
    const verdicts = series.filter(
      ({ name, labels }) => name === 'tallygate_rule_decisions_total' && labels['rule'] === 'ip',
    )
    expect(verdicts.reduce((sum, { value }) => sum + value, 0)).toBe(allowed + declined)
    const week = { window: 'week', period: 'current', outcome: 'declined' }
    expect(valueOf(series, 'tallygate_window_requests', week)).toBe(declined)
  }
}

describe.each([
  ['on one database', inDatabase],
  ['without a database', () => ({})],
])('three workers %s', (_title, env: () => Record<string, string>) => {
  it('give one answer, to the last request, whichever is asked, and under load none that falls', async () => {
    const cluster = await startCluster(env())
    const { shared } = first(cluster)
    const seen: Seen = { allowed: 0, declined: 0 }
    const load = send(`${shared}/0/app/x`, 500, seen)
    const loading = { isOver: false }
    void load.finally(() => (loading.isOver = true))
    let before = new Map<string, number>()
    let answers = 0
    while (!loading.isOver) {
      for (const worker of cluster.workers()) {
        const after = countersOf(await cluster.metrics(worker))
        expect(fallen(before, after)).toEqual([])
        before = after
        answers++
      }
    }
    await load
    expect(answers).toBeGreaterThan(3)
    expect(seen.declined).toBeGreaterThan(0)
    await settled(cluster, 500)
    await expectEverywhere(cluster, seen)
  })

  it('keep what a killed one counted, and count on with its successor', async () => {
    const cluster = await startCluster(env())
    const { shared } = first(cluster)
    const seen = await send(`${shared}/0/app/x`, 300)
    // Nobody has asked: it is written and reported by itself, at the latest after a second.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    await cluster.end(first(cluster), 'SIGKILL')
    const before = countersOf(await cluster.metrics(first(cluster)))
    expect(cluster.workers()).toHaveLength(2)
    await expectEverywhere(cluster, seen)
    await cluster.fork()
    await send(`${shared}/0/app/x`, 60, seen)
    await settled(cluster, 360)
    await expectEverywhere(cluster, seen)
    expect(fallen(before, countersOf(await cluster.metrics(first(cluster))))).toEqual([])
  })

  it('lose nothing of one that is told to end', async () => {
    const cluster = await startCluster(env())
    const [one, two] = cluster.workers() as [ClusterWorker, ClusterWorker]
    const seen = await send(`${one.own}/0/app/x`, 100)
    expect(seen.allowed + seen.declined).toBe(100)
    // Nobody has asked, and no second has passed.
    await cluster.end(one, 'SIGTERM')
    await expectEverywhere(cluster, seen)
    await cluster.end(two, 'SIGTERM')
    await expectEverywhere(cluster, seen)
  })
})

/*
 * A gate as one of several, in the workers of a node:cluster whose primary collects: its answers are those
 * of all of them. Statistics that the primary does not answer for are this process's own, and say so; of
 * metrics there is no answer then, because counters that fall for a moment would look like a restart.
 */
import { createHash } from 'node:crypto'
import { topKeysShown, type Figures } from '../admin/figures.js'
import { findCollector, type Channel } from '../cluster/channel.js'
import { Membership } from '../cluster/membership.js'
import type { Merged, ReportedMetric } from '../cluster/report.js'
import { metrics } from '../metrics/table.js'
import { clusterTally } from './cluster-tally.js'
import { lastingOf, reportOf, type ClusterReportParts } from './cluster-report.js'
import { windowSamples } from './metric-sources.js'

/** The primary does not answer. */
class ClusterSilent extends Error {
  override readonly name = 'ClusterSilent'
  readonly status = 503
}

interface Answer {
  readonly merged: Merged
  readonly figures: Figures
}

/** null where this process answers for itself. */
export function joinCluster(parts: ClusterReportParts): ClusterMember | null {
  const collector = findCollector()
  return collector === null ? null : new ClusterMember(parts, collector)
}

export class ClusterMember {
  readonly #parts: ClusterReportParts
  readonly #identity: string
  readonly #membership: Membership

  constructor(parts: ClusterReportParts, channel: Channel) {
    this.#parts = parts
    this.#identity = identityOf(parts)
    this.#membership = new Membership({
      channel,
      identity: this.#identity,
      lasting: () => lastingOf(parts),
      report: () => reportOf(parts),
    })
  }

  get contentType(): string {
    return this.#parts.exposition.contentType
  }

  /** null where the primary does not answer. */
  async figures(): Promise<Figures | null> {
    return (await this.#ask())?.figures ?? null
  }

  /** The metrics of all workers, in the text format. */
  async text(): Promise<string> {
    const { exposition } = this.#parts
    const answer = await this.#ask()
    if (answer === null) throw new ClusterSilent('The primary of the cluster does not answer.')
    const places = new Map(exposition.names().map((name, index) => [name, index]))
    const placeOf = ({ name }: ReportedMetric) => places.get(name) ?? places.size
    const all = answer.merged.metrics.toSorted((a, b) => placeOf(a) - placeOf(b))
    const windows = metrics.windowRequests.name
    return exposition.textOf(
      all.map((metric) =>
        metric.name === windows ? { ...metric, series: this.#windowSeries(answer) } : metric,
      ),
    )
  }

  /** Tells the primary what is to last; to be called about once a second. */
  tick(): void {
    void this.#membership.tick()
  }

  /** Tells it for the last time. */
  close(): Promise<void> {
    return this.#membership.close()
  }

  async #ask(): Promise<Answer | null> {
    const merged = await this.#membership.ask()
    if (merged === null) return null
    const { counting, calendar, clock } = this.#parts
    const tally = await clusterTally(merged, { ...counting, calendar }, clock.wallMs())
    const rules = merged.rules.map((rule, index) => ({
      ...rule,
      evictedKeys: merged.evictedKeys[index] ?? 0,
      topKeys: { ...rule.topKeys, keys: rule.topKeys.keys.slice(0, topKeysShown) },
    }))
    const { lastFlushAtMs, failures, lost } = merged
    return { merged, figures: { scope: 'cluster', ...tally, rules, lastFlushAtMs, failures, lost } }
  }

  /** Without a database each worker has an id of its own: all together have one that they agree on. */
  #windowSeries({ figures }: Answer) {
    const { archive } = this.#parts.counting.tally
    const id = archive.path === null ? `memory-${this.#identity.slice(0, 8)}` : archive.id
    return windowSamples(figures.view, id)
  }
}

/** Gates that keep the same counts for the same rules: these are one in all workers. */
function identityOf({ counting: { tally }, limiter, calendar }: ClusterReportParts): string {
  const { timeZone, weekStartsOn } = calendar
  const rules = limiter.rules.map(({ name, candidates }) => [
    name,
    ...candidates.map(({ label }) => label),
  ])
  const said = JSON.stringify([tally.archive.path, timeZone, weekStartsOn, rules])
  return createHash('sha256').update(said).digest('hex')
}

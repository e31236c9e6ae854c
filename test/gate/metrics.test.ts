/*
 * What a gate exposes at its first scrape and after attempts: every row of the table that it serves, at 0;
 * names that promtool accepts; a number of series that follows from the rules alone.
 */
import { spawnSync } from 'node:child_process'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { outcomes, verdicts } from '../../src/core/decision.js'
import type { RuleOptions } from '../../src/core/rule.js'
import { windowKinds } from '../../src/core/windows.js'
import { createGate } from '../../src/gate/gate.js'
import type { GateOptions } from '../../src/gate/options.js'
import { labelValues, metrics, type MetricId, type MetricRow } from '../../src/metrics/table.js'
import { manualClock } from '../../src/testing/index.js'
import { guarded, statuses } from '../support/server.js'
import { epochMs, ipRule } from '../support/units/limits.js'

/** Rows that only the bundled app has a source for. */
const ofTheApp = new Set<MetricId>([
  'httpRequestDuration',
  'sessions',
  'urlParseRequests',
  'urlFetchDuration',
  'urlFetchFailures',
  'urlCacheEntries',
])
const served = (Object.entries(metrics) as [MetricId, MetricRow][]).filter(
  ([id]) => !ofTheApp.has(id),
)

const threeRules: RuleOptions[] = [
  { name: 'global', key: 'global', limit: 100, window: '1m' },
  ipRule({ candidates: [{ limit: 3 }, { limit: 3, algorithm: 'token-bucket' }] }),
  ipRule({ name: 'off', mode: 'disabled' }),
]

function gateOf(options: Partial<GateOptions> = {}) {
  const gate = createGate({ rules: threeRules, clock: manualClock(epochMs), ...options })
  onTestFinished(() => gate.close())
  return gate
}

interface Line {
  name: string
  labels: string
  value: string
}

function linesOf(text: string): Line[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const { name, labels, value } =
        /^(?<name>\w+)(?:\{(?<labels>.*)\})? (?<value>\S+)$/.exec(line)?.groups ?? {}
      return { name: name ?? line, labels: labels ?? '', value: value ?? '' }
    })
}

const own = (lines: readonly Line[]) => lines.filter(({ name }) => name.startsWith('tallygate_'))

describe('the first scrape', () => {
  it('MET-03: has every row that the gate serves, with its type and its help', async () => {
    const text = await gateOf().exposition.text()
    for (const [, row] of served) {
      expect(text).toContain(`# HELP ${row.name} ${row.help}\n`)
      expect(text).toContain(`# TYPE ${row.name} ${row.type}\n`)
    }
    const names = [...text.matchAll(/^# TYPE (tallygate_\w+)/gm)].map(([, name]) => name)
    expect(new Set(names)).toEqual(new Set(served.map(([, { name }]) => name)))
  })

  it('MET-03: has every counter and histogram at 0, for every rule and every value of a closed label', async () => {
    const lines = own(linesOf(await gateOf().exposition.text()))
    const counting = served.filter(([, { type }]) => type !== 'gauge').map(([, { name }]) => name)
    for (const name of counting) {
      const series = lines.filter((line) => line.name.startsWith(name))
      expect(series.length).toBeGreaterThan(0)
      expect(series.filter(({ value }) => value !== '0')).toEqual([])
    }
    for (const { name } of threeRules) {
      for (const mode of labelValues.mode) {
        for (const verdict of verdicts) {
          expect(lines).toContainEqual({
            name: 'tallygate_rule_decisions_total',
            labels: `rule="${name}",mode="${mode}",verdict="${verdict}"`,
            value: '0',
          })
        }
      }
    }
    for (const candidate of ['3/1m', '3/1m/token-bucket']) {
      for (const verdict of verdicts) {
        expect(lines).toContainEqual({
          name: 'tallygate_candidate_decisions_total',
          labels: `rule="ip",candidate="${candidate}",verdict="${verdict}"`,
          value: '0',
        })
      }
    }
    for (const outcome of outcomes) {
      expect(lines).toContainEqual({
        name: 'tallygate_requests_total',
        labels: `outcome="${outcome}"`,
        value: '0',
      })
    }
  })

  it('has no label that the table does not name', async () => {
    const lines = own(linesOf(await gateOf().exposition.text()))
    for (const [, row] of served) {
      for (const { labels } of lines.filter(({ name }) => name === row.name)) {
        const names = [...labels.matchAll(/(\w+)="/g)].map(([, name]) => name)
        expect(new Set(names)).toEqual(new Set(row.labels))
      }
    }
  })

  it('has as many series as follow from the rules', async () => {
    const rules = threeRules.length
    const fixed: Partial<Record<MetricId, number>> = {
      requests: outcomes.length,
      candidateDecisions: 2 * verdicts.length,
      ruleDecisions: rules * labelValues.mode.length * verdicts.length,
      clientIdentity: metrics.clientIdentity.values.kind.length,
      warnings: metrics.warnings.values.code.length,
      ruleEvictions: rules * labelValues.state.length,
      // Each bucket, the one above all bounds, sum and count.
      keyWindowDemand: rules * (metrics.keyWindowDemand.buckets.length + 3),
      ruleLargestKey: threeRules.filter(({ key }) => key !== 'global').length,
      windowRequests: windowKinds.length * labelValues.period.length * outcomes.length,
      tallyFlushDuration: metrics.tallyFlushDuration.buckets.length + 3,
      tallyFlushes: metrics.tallyFlushes.values.result.length,
      clockSteps: labelValues.direction.length,
    }
    const expected = served.reduce(
      (sum, [id, row]) =>
        sum + (fixed[id] ?? ((row.labels as string[]).includes('rule') ? rules : 1)),
      0,
    )
    const gate = gateOf()
    expect(own(linesOf(await gate.exposition.text())).length).toBe(expected)
    expect(expected).toBeLessThan(300)
  })

  it('MET-10: is text 0.0.4 that begins with # HELP and ends with a newline', async () => {
    const { exposition } = gateOf()
    const text = await exposition.text()
    expect(exposition.contentType).toContain('version=0.0.4')
    expect(text.startsWith('# HELP ')).toBe(true)
    expect(text.endsWith('\n')).toBe(true)
  })

  it('MET-11: calls the requests of calendar windows a gauge', async () => {
    const text = await gateOf().exposition.text()
    expect(text).toContain('# TYPE tallygate_window_requests gauge')
  })

  it('has no gauge whose name ends in _total', async () => {
    const text = await gateOf().exposition.text()
    const types = [...text.matchAll(/^# TYPE (\w+) (\w+)/gm)]
    expect(
      types.filter(([, name, type]) => name?.endsWith('_total') && type !== 'counter'),
    ).toEqual([])
    expect(text).toContain('process_cpu_seconds_total')
  })
})

describe('candidates', () => {
  it('are counted by label beside their rule, which they never decline for', async () => {
    const { gate, ask } = await guarded({ rules: threeRules })
    expect(await statuses(7, () => ask())).toEqual([200, 200, 200, 200, 200, 429, 429])
    const lines = linesOf(await gate.exposition.text())
    const counted = (name: string, labels: string) =>
      verdicts.map((verdict) =>
        Number(
          lines.find(
            (line) => line.name === name && line.labels === `${labels},verdict="${verdict}"`,
          )?.value,
        ),
      )
    expect(counted('tallygate_rule_decisions_total', 'rule="ip",mode="enforce"')).toEqual([4, 1, 2])
    expect(counted('tallygate_rule_decisions_total', 'rule="ip",mode="shadow"')).toEqual([0, 0, 0])
    for (const candidate of ['3/1m', '3/1m/token-bucket']) {
      const labels = `rule="ip",candidate="${candidate}"`
      expect(counted('tallygate_candidate_decisions_total', labels)).toEqual([2, 1, 4])
    }
  })

  it('a bucket shows its burst, any other rule its limit', async () => {
    const rules = [
      ipRule({ limit: 60, algorithm: 'token-bucket', burst: 9 }),
      ipRule({ name: 'b' }),
    ]
    const lines = linesOf(await gateOf({ rules }).exposition.text())
    const bursts = lines.filter(({ name }) => name === 'tallygate_rule_burst')
    expect(bursts.map(({ labels, value }) => `${labels} ${value}`)).toEqual([
      'rule="ip" 9',
      'rule="b" 5',
    ])
  })
})

describe('promtool', () => {
  const found = spawnSync('promtool', ['--version']).status === 0
  if (!found && process.env['CI'] !== 'true') {
    process.stderr.write('SKIPPED: promtool is not on PATH, the metrics are not checked by it\n')
  }

  it.skipIf(!found && process.env['CI'] !== 'true')('finds nothing to say', async () => {
    const input = await gateOf().exposition.text()
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input,
      encoding: 'utf8',
    })
    expect({ status, said: `${stdout}${stderr}` }).toEqual({ status: 0, said: '' })
  })
})

describe('several gates in one process', () => {
  it('MET-04: do not clash, with each other or with whoever registers default metrics', async () => {
    const theirs = new Registry()
    collectDefaultMetrics({ register: theirs })
    const gates = [gateOf(), gateOf(), gateOf()]
    const texts = await Promise.all(gates.map(({ exposition }) => exposition.text()))
    for (const text of texts)
      expect(text).toContain('tallygate_requests_total{outcome="allowed"} 0')
    expect(await theirs.metrics()).not.toContain('tallygate_')
  })

  it('a registry that is handed in gets the metrics, and keeps its own', async () => {
    const registry = new Registry()
    const { exposition } = gateOf({ registry })
    expect(await registry.metrics()).toBe(await exposition.text())
    expect(await registry.metrics()).toContain('tallygate_requests_total')
    expect(await registry.metrics()).not.toContain('process_cpu')
    expect(() => createGate({ rules: threeRules, registry })).toThrow(
      'registry must be one that no other gate uses: received one that has tallygate_requests_total',
    )
  })
})

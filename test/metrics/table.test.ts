/*
 * The table of metrics against the naming rules of Prometheus, row by row.
 */
import { describe, expect, it } from 'vitest'
import { labelValues, metrics, type MetricRow } from '../../src/metrics/table.js'

const rows: [string, MetricRow][] = Object.entries(metrics)

describe.each(rows)('%s', (_, row) => {
  it('is in snake case, with the prefix', () => {
    expect(row.name).toMatch(/^tallygate(_[a-z][a-z0-9]*)+$/)
  })

  it('ends in _total if and only if it is a counter', () => {
    expect(row.name.endsWith('_total')).toBe(row.type === 'counter')
  })

  it('has a base unit, and says so at the end of its name', () => {
    const ending = {
      seconds: '_seconds',
      bytes: '_bytes',
      ratio: '_ratio',
      timestamp: '_timestamp_seconds',
    }
    expect(row.name).not.toMatch(/(milli|micro|nano|minute|hour|day|_ms|kilo|mega|percent|_kb|_mb)/)
    expect(/(_seconds|_bytes|_ratio)(_total)?$/.test(row.name)).toBe(row.unit !== 'one')
    const suffix = row.unit === 'one' ? '' : ending[row.unit]
    expect(row.name.replace(/_total$/, '').endsWith(suffix)).toBe(true)
  })

  it('does not end like a series of a histogram or an older type', () => {
    expect(row.name).not.toMatch(/(_bucket|_count|_sum|_created|_histogram|_gauge|_counter)$/)
  })

  it('has a help that is one sentence in one line and ends with a period', () => {
    expect(row.help).toMatch(/^[A-Z0-9][^\n]+\.$/)
  })

  it('has labels in snake case, none of them reserved', () => {
    for (const label of row.labels) {
      expect(label).toMatch(/^[a-z][a-z0-9_]*$/)
      expect(['le', 'quantile', 'job', 'instance']).not.toContain(label)
    }
    expect(new Set(row.labels).size).toBe(row.labels.length)
  })

  it('has closed sets of values only for labels of its own', () => {
    for (const [label, values] of Object.entries(row.values ?? {})) {
      expect(row.labels).toContain(label)
      expect(Object.keys(labelValues)).not.toContain(label)
      expect(values.every((value) => /^\w+$/.test(value))).toBe(true)
      expect(new Set(values).size).toBe(values.length)
    }
  })

  it('has ascending buckets if and only if it is a histogram', () => {
    expect(row.buckets !== undefined).toBe(row.type === 'histogram')
    const bounds = row.buckets ?? []
    expect([...bounds]).toEqual([...new Set(bounds)].toSorted((a, b) => a - b))
    expect(bounds.every((bound) => Number.isFinite(bound) && bound > 0)).toBe(true)
  })

  it('is summed over processes if it only grows', () => {
    expect(row.type === 'gauge' || row.aggregate === 'sum').toBe(true)
  })
})

describe('the table', () => {
  it('has no name twice, nor one that is a series of another', () => {
    const names = rows.map(([, { name }]) => name)
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) {
      for (const suffix of ['_bucket', '_sum', '_count']) expect(names).not.toContain(name + suffix)
    }
  })

  it('MET-11: has what is read from the database as gauges', () => {
    expect(metrics.windowRequests.type).toBe('gauge')
    expect(metrics.sessions.type).toBe('gauge')
    expect(metrics.databaseSize.type).toBe('gauge')
  })

  it('closes the sets of its labels', () => {
    for (const values of Object.values(labelValues)) {
      expect(values.every((value) => /^[a-z]+$/.test(value))).toBe(true)
      expect(new Set(values).size).toBe(values.length)
    }
  })
})

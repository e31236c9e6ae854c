/*
 * What holds for every board, and what the Overview promises: the rules of Grafana's provisioning
 * (cases GRF-*), and those of a reader who sees the board for the first time. A failure lists the
 * offenders.
 */
import { describe, expect, it } from 'vitest'
import { config } from '../../dashboards/config.js'
import {
  allPanels,
  boardNames,
  boards,
  boardText,
  expressions,
  type Panel,
} from './board-reader.js'

const every = boards()
const drawn = every.flatMap((board) => allPanels(board).filter(({ type }) => type !== 'row'))
const queries = every.flatMap(expressions)

describe('boards', () => {
  it('the Overview has the uid by which other pages link to it', () => {
    expect(every.map(({ uid, title }) => [uid, title])).toContainEqual([
      'tallygate-overview',
      'tallygate / Overview',
    ])
  })

  it('each panel has a title, a description, a unit and a query', () => {
    expect(drawn.length).toBeGreaterThan(0)
    expect(drawn.filter((panel) => !isComplete(panel)).map(({ id }) => id)).toEqual([])
  })

  it('panel ids are whole numbers and unique on their board', () => {
    for (const board of every) {
      const ids = allPanels(board).map(({ id }) => id)
      expect(ids.filter((id) => !Number.isInteger(id))).toEqual([])
      expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
    }
  })

  it('a panel id begins with the hundred of its row', () => {
    for (const board of every) {
      const panels = allPanels(board)
      const rowBefore = (index: number): number | undefined =>
        panels.slice(0, index + 1).findLast(({ type }) => type === 'row')?.id
      const strays = panels.filter(({ id }, index) => id - (id % 100) !== rowBefore(index))
      expect(strays.map(({ id }) => id)).toEqual([])
    }
  })

  it('panels stay within 24 columns and do not overlap', () => {
    for (const board of every) {
      const cells = allPanels(board).flatMap(({ gridPos: { x, y, w, h } }) =>
        Array.from({ length: w * h }, (_, n) => ({ x: x + (n % w), y: y + Math.floor(n / w) })),
      )
      expect(cells.filter(({ x }) => x < 0 || x >= 24)).toEqual([])
      expect(new Set(cells.map(({ x, y }) => `${x}:${y}`)).size).toBe(cells.length)
    }
  })

  it('nothing can be edited where the edit would be lost', () => {
    expect(every.filter(({ editable }) => editable).map(({ uid }) => uid)).toEqual([])
  })

  it.each([
    ['allowed', config.colours.allowed, config.colours.declined],
    ['declined', config.colours.declined, config.colours.allowed],
  ])('%s is %s wherever it is named, and never %s', (outcome, colour, other) => {
    const looks = drawn
      .flatMap(({ fieldConfig }) => fieldConfig.overrides)
      .filter(({ matcher }) => matcher.options.includes(outcome))
      .map(({ properties }) => JSON.stringify(properties))
    expect(looks.length).toBeGreaterThan(0)
    expect(looks.filter((look) => !look.includes(`"${colour}"`))).toEqual([])
    expect(looks.filter((look) => look.includes(`"${other}"`))).toEqual([])
  })
})

describe('Grafana provisioning', () => {
  it('GRF-01: no board holds a placeholder of an export for sharing', () => {
    const marks = boardNames().flatMap((name) =>
      [...boardText(name).matchAll(/\$\{DS_|__inputs|__requires/g)].map(([mark]) => mark),
    )
    expect(marks).toEqual([])
  })

  it('GRF-01, GRF-02: every data source on every board is the datasource variable', () => {
    const uids = boardNames().flatMap((name) => dataSourceUids(JSON.parse(boardText(name))))
    expect(uids.length).toBeGreaterThan(drawn.length)
    expect(uids.filter((uid) => uid !== '${datasource}')).toEqual([])
  })

  it('GRF-01: every board has the variables datasource, job and instance', () => {
    for (const { templating } of every) {
      expect(templating.list.map(({ name, type }) => `${name}: ${type}`)).toEqual([
        'datasource: datasource',
        'job: query',
        'instance: query',
      ])
    }
  })

  it('GRF-04: every rate is over $__rate_interval, every increase over the time shown', () => {
    const calls = queries.flatMap(({ where, expr }) =>
      [...expr.matchAll(/(\w+)\([^[\]()]*\[([^\]]*)\]/g)].map(([, name = '', range = '']) => ({
        where,
        call: `${name} over ${range}`,
      })),
    )
    const wanted = [
      'rate over $__rate_interval',
      'changes over $__rate_interval',
      'increase over $__range',
    ]
    expect(new Set(calls.map(({ call }) => call))).toEqual(new Set(wanted))
    // Each range was seen above, so none stands in a form that the pattern misses.
    expect(calls).toHaveLength(queries.flatMap(({ expr }) => expr.match(/\[/g) ?? []).length)
  })
})

function isComplete({ title, description, fieldConfig, targets }: Panel): boolean {
  const texts = [title, description, fieldConfig.defaults.unit]
  return texts.every((text) => text.trim() !== '') && targets.length > 0
}

/** Every uid under a key `datasource`, wherever it lies. */
function dataSourceUids(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    if (key !== 'datasource') return dataSourceUids(inner)
    return [typeof inner === 'object' && inner !== null && 'uid' in inner ? inner.uid : inner]
  })
}

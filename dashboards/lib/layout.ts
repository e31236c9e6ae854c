/*
 * Where panels lie. A board is a list of rows; a row holds lines of panels that share its width
 * equally. All positions are computed from that order, so that a panel is added or moved by
 * editing one list. Grafana's grid has 24 columns; a unit of height is 30 pixels and a gap.
 */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import type { Panel, RowPanel } from '@grafana/grafana-foundation-sdk/dashboard'

const columns = 24

export interface Line {
  readonly height: number
  readonly panels: readonly Builder<Panel>[]
}

export interface Row {
  readonly id: number
  readonly title: string
  /** Closed until someone opens it, and not queried until then. */
  readonly collapsed: boolean
  readonly lines: readonly Line[]
}

/** Panels with their positions, in the form that a dashboard holds them. */
export function layOut(rows: readonly Row[]): (Panel | RowPanel)[] {
  const placed: (Panel | RowPanel)[] = []
  let y = 0
  for (const row of rows) {
    const panels = placeLines(row.lines, y + 1)
    const header: RowPanel = {
      type: 'row',
      id: row.id,
      title: row.title,
      collapsed: row.collapsed,
      gridPos: { x: 0, y, w: columns, h: 1 },
      panels: row.collapsed ? panels : [],
    }
    placed.push(header, ...(row.collapsed ? [] : panels))
    y += 1 + row.lines.reduce((sum, line) => sum + line.height, 0)
  }
  return placed
}

function placeLines(lines: readonly Line[], top: number): Panel[] {
  const placed: Panel[] = []
  let y = top
  for (const { height, panels } of lines) {
    const width = columns / panels.length
    if (!Number.isInteger(width)) {
      throw new RangeError(
        `a line cannot hold ${panels.length} panels: 24 columns do not divide so`,
      )
    }
    panels.forEach((panel, index) => {
      placed.push({ ...panel.build(), gridPos: { x: index * width, y, w: width, h: height } })
    })
    y += height
  }
  return placed
}

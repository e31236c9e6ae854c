/*
 * Reads boards for the tests as Grafana would: the committed JSON, not the sources, checked for
 * its shape. Panels of collapsed rows are panels like others. An expression comes with the place
 * it was found in, so that a failure names the panel.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const panel = z.object({
  id: z.number(),
  type: z.string(),
  title: z.string().default(''),
  description: z.string().default(''),
  gridPos: z.object({ x: z.number(), y: z.number(), w: z.number(), h: z.number() }),
  get panels() {
    return z.array(panel).default([])
  },
  targets: z.array(z.object({ refId: z.string(), expr: z.string() })).default([]),
  fieldConfig: z
    .object({
      defaults: z.object({ unit: z.string().default('') }),
      overrides: z.array(
        z.object({ matcher: z.object({ options: z.string() }), properties: z.array(z.unknown()) }),
      ),
    })
    .default({ defaults: { unit: '' }, overrides: [] }),
})

const boardShape = z.object({
  uid: z.string(),
  title: z.string(),
  editable: z.boolean(),
  panels: z.array(panel),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  annotations: z.object({ list: z.array(z.object({ name: z.string(), expr: z.string() })) }),
})

export type Panel = z.infer<typeof panel>
export type Board = z.infer<typeof boardShape>

export const folder = join('dashboards', 'json')

export function boardNames(): string[] {
  return readdirSync(folder).toSorted()
}

export function boardText(name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}

export function boards(): Board[] {
  return boardNames().map((name) => boardShape.parse(JSON.parse(boardText(name))))
}

/** Rows among them, and what lies in collapsed ones. */
export function allPanels(board: Board): Panel[] {
  return board.panels.flatMap((each) => [each, ...each.panels])
}

export interface Expression {
  readonly where: string
  readonly expr: string
}

export function expressions(board: Board): Expression[] {
  const inPanels = allPanels(board).flatMap(({ id, targets }) =>
    targets.map(({ refId, expr }) => ({ where: `${board.uid}, panel ${id} ${refId}`, expr })),
  )
  const inAnnotations = board.annotations.list.map(({ name, expr }) => ({
    where: `${board.uid}, annotation ${name}`,
    expr,
  }))
  return [...inPanels, ...inAnnotations]
}

/** Each metric of an expression with the labels by which it is selected, in order. */
export function selectors(expr: string): { metric: string; labels: string[] }[] {
  return [...expr.matchAll(/([a-z_][a-z0-9_]*)\s*\{([^}]*)\}/g)].map(
    ([, metric = '', inner = '']) => ({
      metric,
      labels: [...inner.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
    }),
  )
}

/** What is named in an expression, without functions, labels and keywords: its metrics. */
export function metricNames(expr: string): string[] {
  const bare = expr
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g, ' ')
    .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
  const words = [...bare.matchAll(/\b[a-z_][a-z0-9_]*\b(?!\s*\()/g)].map(([word]) => word)
  const keywords = new Set(['and', 'or', 'unless', 'bool', 'offset', 'sum', 'max', 'min'])
  return words.filter((word) => !keywords.has(word))
}

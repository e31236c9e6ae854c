/*
 * A figure: one question, its answer as a table, and how it was measured. Scripts hand figures to the
 * report as JSON on standard output, or print them when a person runs them.
 */
import { format } from 'prettier'

export interface Figure {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** One line each: conditions, configurations, what was left out and why. */
  readonly notes: readonly string[]
}

export function markdownOf({ title, columns, rows, notes }: Figure): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rule = columns.map((_, index) => (index === 0 ? '---' : '--:'))
  const table = [columns, rule, ...rows].map(line).join('\n')
  return `## ${title}\n\n${table}\n\n${notes.map((note) => `- ${note}`).join('\n')}\n`
}

/** Markdown as the repository's formatter would leave it. */
export function formatMarkdown(text: string): Promise<string> {
  return format(text, { parser: 'markdown' })
}

export const isQuick = process.argv.includes('--quick')

/** Prints figures for a person, or for the report with `--json`. */
export async function printFigures(figures: readonly Figure[]): Promise<void> {
  const text = process.argv.includes('--json')
    ? JSON.stringify(figures)
    : await formatMarkdown(figures.map(markdownOf).join('\n'))
  process.stdout.write(text)
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export function shownCount(value: number): string {
  return whole.format(value)
}

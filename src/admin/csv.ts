/*
 * Tables as CSV (RFC 4180): a row of names first, lines that end with CR LF. A text that a spreadsheet would
 * take for a formula is kept from it by an apostrophe.
 */
import type { Count } from '../tally/large-counts.js'

export function csvOf(names: readonly string[], rows: readonly (readonly Count[])[]): string {
  return [names, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}

function cell(value: Count): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Whether an Accept header wants CSV rather than JSON: named, and not after or below it. */
export function prefersCsv(accept = ''): boolean {
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) || 0 }
  })
  const csv = ranges.findIndex(({ type }) => type === 'text/csv')
  const json = ranges.findIndex(({ type }) => type === 'application/json')
  const csvQuality = ranges[csv]?.quality ?? 0
  const jsonQuality = ranges[json]?.quality ?? 0
  if (csvQuality === 0 || csvQuality < jsonQuality) return false
  return csvQuality > jsonQuality || csv < json
}

/*
 * Reads Prometheus's text format, as far as a test needs it.
 */

export interface SeriesValue {
  name: string
  labels: Record<string, string>
  value: number
}

/** Every sample of an exposition; throws at a line that is none. */
export function parseExposition(text: string): SeriesValue[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
      if (match === null) throw new Error(`No sample: ${line}`)
      const labels: Record<string, string> = {}
      for (const [, name = '', value = ''] of (match[2] ?? '').matchAll(
        /(\w+)="((?:[^"\\]|\\.)*)"/g,
      )) {
        labels[name] = value.replaceAll(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char))
      }
      const value = match[3] === '+Inf' ? Infinity : Number(match[3])
      return { name: match[1] ?? '', labels, value }
    })
}

/** The value of the one series with these labels, others aside. */
export function valueOf(
  series: readonly SeriesValue[],
  name: string,
  labels: Record<string, string> = {},
): number {
  const found = series.filter(
    (one) =>
      one.name === name &&
      Object.entries(labels).every(([label, value]) => one.labels[label] === value),
  )
  if (found.length !== 1) {
    throw new Error(`${found.length} series of ${name} ${JSON.stringify(labels)}, not 1`)
  }
  return found[0]?.value ?? NaN
}

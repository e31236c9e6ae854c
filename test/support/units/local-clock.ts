/*
 * What the clock on the wall shows in a zone, read from the digits that Intl writes: another way than the
 * calendar's own, which asks for offsets. Slow and plain, for judging windows by their definition.
 */

const quarterMs = 15 * 60_000
export const dayMs = 86_400_000

export interface LocalClock {
  /** What UTC's clock would show at the same reading, in milliseconds. */
  readonly at: (timeMs: number) => number
  /** The date that is shown, as a count of days since 1970-01-01. */
  readonly dateAt: (timeMs: number) => number
  /** The dates shown in a span: at its start, at each quarter of an hour, and at its last millisecond. */
  readonly datesIn: (fromMs: number, toMs: number) => number[]
  /** Instants within a span at which the clock is shifted. */
  readonly shiftsIn: (fromMs: number, toMs: number) => number[]
}

export function localClock(timeZone: string): LocalClock {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  })
  const at = (timeMs: number) => {
    const wholeMs = Math.floor(timeMs / 1_000) * 1_000
    const digits = (format.format(wholeMs).match(/\d+/g) ?? []).map(Number)
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = digits
    return Date.UTC(year, month - 1, day, hour, minute, second) + (timeMs - wholeMs)
  }
  const dateAt = (timeMs: number) => Math.floor(at(timeMs) / dayMs)
  const datesIn = (fromMs: number, toMs: number) => {
    const dates = [dateAt(fromMs), dateAt(toMs - 1)]
    for (let ms = Math.ceil(fromMs / quarterMs) * quarterMs; ms < toMs; ms += quarterMs) {
      dates.push(dateAt(ms))
    }
    return dates
  }
  const offsetAt = (timeMs: number) => at(timeMs) - timeMs
  const shiftsIn = (fromMs: number, toMs: number) => {
    const found: number[] = []
    for (let lowMs = fromMs; lowMs < toMs; lowMs += dayMs / 2) {
      let [beforeMs, afterMs] = [lowMs, lowMs + dayMs / 2]
      if (offsetAt(beforeMs) === offsetAt(afterMs)) continue
      while (afterMs - beforeMs > 1) {
        const middleMs = Math.floor((beforeMs + afterMs) / 2)
        if (offsetAt(middleMs) === offsetAt(lowMs)) beforeMs = middleMs
        else afterMs = middleMs
      }
      found.push(afterMs)
    }
    return found
  }
  return { at, dateAt, datesIn, shiftsIn }
}

/*
 * What the local clock of a time zone shows, and when it is shifted: daylight saving, and whatever else a
 * country decides. Intl tells the offset at an instant but not its shifts; they are found by looking at the
 * offset every two days, and halving between two looks that differ. Since 1970 no zone of the time zone
 * database has had two shifts within 167 hours of each other, so that none hides between two looks.
 *
 * Times are whole milliseconds since the epoch; an offset is what the local clock is ahead of UTC, whole
 * seconds in milliseconds. A look costs a microsecond, a shift twenty; both are kept for the days asked
 * about last.
 */

/** From `atMs` on, the local clock is ahead of UTC by `offsetMs`, which it was not just before. */
export interface Shift {
  readonly atMs: number
  readonly offsetMs: number
}

export interface Zone {
  readonly name: string
  offsetAt(timeMs: number): number
  /** Shifts after one time and before another, in order. */
  shiftsBetween(afterMs: number, beforeMs: number): readonly Shift[]
}

/** No local clock has ever been further from UTC; Manila and Alaska were near it before 1867. */
export const offsetMsMax = 16 * 3_600_000

const none: readonly Shift[] = Object.freeze([])

/** A zone whose clock shows UTC, at no cost. */
export function steadyZone(name: string): Zone {
  return { name, offsetAt: () => 0, shiftsBetween: () => none }
}

/** Two days from a multiple of two days: the offset at its start, and shifts after that, up to its end. */
interface Cell {
  readonly offsetMs: number
  readonly shifts: readonly Shift[]
}

const secondMs = 1_000
const cellMs = 2 * 86_400_000
const cellsMax = 128

export class ShiftingZone implements Zone {
  readonly name: string
  readonly #offsets: OffsetReader
  /** By number, oldest first. */
  readonly #cells = new Map<number, Cell>()

  /** @throws RangeError where Intl does not know the zone. */
  constructor(name: string) {
    this.name = name
    this.#offsets = offsetReader(name)
  }

  offsetAt(timeMs: number): number {
    const { offsetMs, shifts } = this.#cell(Math.floor(timeMs / cellMs))
    return shifts.findLast(({ atMs }) => atMs <= timeMs)?.offsetMs ?? offsetMs
  }

  shiftsBetween(afterMs: number, beforeMs: number): readonly Shift[] {
    let found = none
    for (let cell = Math.floor(afterMs / cellMs); cell * cellMs < beforeMs; cell++) {
      const { shifts } = this.#cell(cell)
      if (shifts.length === 0) continue
      found = [...found, ...shifts.filter(({ atMs }) => atMs > afterMs && atMs < beforeMs)]
    }
    return found
  }

  #cell(number: number): Cell {
    const known = this.#cells.get(number)
    if (known !== undefined) return known
    const [startMs, endMs] = [number * cellMs, (number + 1) * cellMs]
    const shifts: Shift[] = []
    const offsetMs = this.#offsets(startMs)
    this.#gather(startMs, offsetMs, endMs, this.#offsets(endMs), shifts)
    const cell = { offsetMs, shifts: shifts.length === 0 ? none : shifts }
    const [oldest = number] = this.#cells.keys()
    if (this.#cells.size >= cellsMax) this.#cells.delete(oldest)
    this.#cells.set(number, cell)
    return cell
  }

  /** Finds the shifts after one time, up to and including another, to the second. */
  #gather(fromMs: number, fromOffsetMs: number, toMs: number, toOffsetMs: number, into: Shift[]) {
    if (fromOffsetMs === toOffsetMs) return
    if (toMs - fromMs <= secondMs) {
      into.push({ atMs: toMs, offsetMs: toOffsetMs })
      return
    }
    const middleMs = fromMs + Math.floor((toMs - fromMs) / 2 / secondMs) * secondMs
    const middleOffsetMs = this.#offsets(middleMs)
    this.#gather(fromMs, fromOffsetMs, middleMs, middleOffsetMs, into)
    this.#gather(middleMs, middleOffsetMs, toMs, toOffsetMs, into)
  }
}

type OffsetReader = (timeMs: number) => number

/**
 * Of the forms that Intl writes, this one gives the offset itself, with the seconds of older times. Of
 * times that no Date can hold Intl does not speak at all.
 */
function offsetReader(timeZone: string): OffsetReader {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  return (timeMs) => {
    const text = format.format(timeMs)
    const parts = /GMT(?:(?<sign>[-+\u2212])(?<h>\d\d):(?<m>\d\d)(?::(?<s>\d\d))?)?$/.exec(text)
    if (parts === null) throw new Error(`Intl gives no offset of ${timeZone}: ${text}`)
    const { sign = '+', h = '0', m = '0', s = '0' } = parts.groups ?? {}
    const secondsAhead = Number(h) * 3_600 + Number(m) * 60 + Number(s)
    // Zero is never negative, so that bounds are not either.
    return secondsAhead === 0 ? 0 : secondsAhead * (sign === '+' ? secondMs : -secondMs)
  }
}

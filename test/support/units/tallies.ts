/*
 * Parts for the tests of tallies: slots of two rules, a clock whose two readings move apart, and an
 * archive that fails when it is told to, and answers when it is told to.
 */
import type {
  StoredCounts,
  TallyArchive,
  WindowDelta,
  WindowRef,
} from '../../../src/tally/archive.js'
import { createCalendar } from '../../../src/tally/calendar.js'
import { MemoryArchive } from '../../../src/tally/memory-archive.js'
import { TallySlots } from '../../../src/tally/slots.js'
import { Tally, type TallyParts } from '../../../src/tally/tally.js'
import { manualClock, type ManualClock } from '../../../src/testing/index.js'

/** Monday 2025-06-16, 00:00 UTC: the start of a minute, an hour, a day and a week. */
export const mondayMs = Date.parse('2025-06-16T00:00:00Z')

export const slots = new TallySlots(['ip', 'global'])
export const allowed = 0
export const declined = 1
export const exempt = 2

/** An archive that passes everything on, unless `failure` is set; each `add` waits while `held` is. */
export class FaultyArchive implements TallyArchive {
  failure: Error | null = null
  held: Promise<void> | null = null
  addCount = 0
  readonly #inner: TallyArchive

  constructor(inner: TallyArchive) {
    this.#inner = inner
  }

  get path(): string | null {
    return this.#inner.path
  }

  get id(): string {
    return this.#inner.id
  }

  get sinceMs(): number {
    return this.#inner.sinceMs
  }

  read(wanted: readonly WindowRef[]): StoredCounts {
    return this.#inner.read(wanted)
  }

  async add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts> {
    this.addCount++
    await this.held
    if (this.failure !== null) throw this.failure
    return this.#inner.add(deltas, wanted)
  }

  sizeBytes(): number {
    return this.#inner.sizeBytes()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}

export interface TallyBench {
  readonly clock: ManualClock
  readonly archive: FaultyArchive
  readonly tally: Tally
  readonly count: (slot: number, times?: number) => void
}

export function tallyBench(
  startMs = mondayMs,
  inner?: TallyArchive,
  onFlush?: TallyParts['onFlush'],
): TallyBench {
  const clock = manualClock(startMs)
  const archive = new FaultyArchive(inner ?? new MemoryArchive(slots, startMs))
  const tally = new Tally({
    slots,
    calendar: createCalendar(),
    archive,
    clock,
    ...(onFlush === undefined ? {} : { onFlush }),
  })
  return {
    clock,
    archive,
    tally,
    count(slot, times = 1) {
      tally.reach(clock.monotonicMs())
      for (let turn = 0; turn < times; turn++) tally.add(slot)
    },
  }
}

/*
 * Parts for the tests of tallies: slots of two rules, a clock whose two readings move apart, and an
 * archive that fails when it is told to, and answers when it is told to.
 */
import type { WindowKind } from '../../../src/core/windows.js'
import type {
  StoredCounts,
  StoredWindow,
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

/** One count of an allowed request, which the first rule judged `within`. */
export function deltaOf(window: WindowKind, startMs: number, count = 1): WindowDelta {
  const counts = slots.blank()
  counts[allowed] = count
  counts[slots.ofVerdict(0, 0)] = count
  return { window, startMs, counts }
}

/**
 * An archive that passes everything on, unless `failure` is set, or `readFailure` for what is only read;
 * each `add` waits while `held` is.
 */
export class FaultyArchive implements TallyArchive {
  failure: Error | null = null
  readFailure: Error | null = null
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

  get sizeBytes(): number {
    return this.#inner.sizeBytes
  }

  get movedAside(): string | null {
    return this.#inner.movedAside
  }

  /** What is kept by now, whatever `add` does. */
  stored(wanted: readonly WindowRef[] = []): Promise<StoredCounts> {
    return this.#inner.add([], wanted)
  }

  async add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts> {
    this.addCount++
    await this.held
    if (this.failure !== null) throw this.failure
    return this.#inner.add(deltas, wanted)
  }

  async history(window: WindowKind, fromMs: number, toMs: number): Promise<StoredWindow[]> {
    if (this.readFailure !== null) throw this.readFailure
    return this.#inner.history(window, fromMs, toMs)
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

/** Makes every `add` wait until the answer is called. */
export function hold(archive: FaultyArchive): () => void {
  const { promise, resolve } = withResolvers()
  archive.held = promise
  return resolve
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: (() => void) | undefined
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve: () => resolve?.() }
}

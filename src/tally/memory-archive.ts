/*
 * Tallies that live as long as the process: the archive of a gate without a database.
 */
import { randomUUID } from 'node:crypto'
import type { StoredCounts, TallyArchive, WindowDelta, WindowRef } from './archive.js'
import { addInto, type TallySlots } from './slots.js'

export class MemoryArchive implements TallyArchive {
  readonly path = null
  readonly id = `memory-${randomUUID().slice(0, 8)}`
  readonly sinceMs: number
  readonly #slots: TallySlots
  readonly #totals: Float64Array
  readonly #windows = new Map<string, WindowDelta>()

  constructor(slots: TallySlots, sinceMs: number) {
    this.#slots = slots
    this.#totals = slots.blank()
    this.sinceMs = sinceMs
  }

  read(wanted: readonly WindowRef[]): StoredCounts {
    const windows = wanted.map(
      (ref) => this.#windows.get(nameOf(ref))?.counts ?? this.#slots.blank(),
    )
    return { totals: this.#totals.slice(), windows: windows.map((counts) => counts.slice()) }
  }

  add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts> {
    for (const delta of deltas) {
      const { window, startMs } = delta
      const known = this.#windows.get(nameOf(delta))
      const kept = known ?? { window, startMs, counts: this.#slots.blank() }
      addInto(kept.counts, delta.counts)
      this.#windows.set(nameOf(delta), kept)
      // Every request lies in exactly one week.
      if (delta.window === 'week') addInto(this.#totals, delta.counts)
    }
    this.#forgetBefore(wanted)
    return Promise.resolve(this.read(wanted))
  }

  /** Later windows stay: a wall clock that went back comes to them again. */
  #forgetBefore(wanted: readonly WindowRef[]): void {
    for (const [name, { window, startMs }] of this.#windows) {
      const starts = wanted.filter((ref) => ref.window === window).map((ref) => ref.startMs)
      if (startMs < Math.min(...starts)) this.#windows.delete(name)
    }
  }

  sizeBytes(): number {
    return 0
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function nameOf(ref: WindowRef): string {
  return `${ref.window} ${ref.startMs}`
}

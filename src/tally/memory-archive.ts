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
  #windows = new Map<string, Float64Array>()

  constructor(slots: TallySlots, sinceMs: number) {
    this.#slots = slots
    this.#totals = slots.blank()
    this.sinceMs = sinceMs
  }

  read(wanted: readonly WindowRef[]): StoredCounts {
    const windows = wanted.map((ref) => this.#windows.get(nameOf(ref)) ?? this.#slots.blank())
    return { totals: this.#totals.slice(), windows: windows.map((counts) => counts.slice()) }
  }

  add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts> {
    for (const delta of deltas) {
      const counts = this.#windows.get(nameOf(delta)) ?? this.#slots.blank()
      addInto(counts, delta.counts)
      this.#windows.set(nameOf(delta), counts)
      // Every request lies in exactly one week.
      if (delta.window === 'week') addInto(this.#totals, delta.counts)
    }
    const kept = new Set(wanted.map(nameOf))
    this.#windows = new Map([...this.#windows].filter(([name]) => kept.has(name)))
    return Promise.resolve(this.read(wanted))
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

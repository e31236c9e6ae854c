/*
 * Tallies that live as long as the process: the archive of a gate without a database.
 */
import { randomUUID } from 'node:crypto'
import type { WindowKind } from '../core/windows.js'
import type { StoredCounts, StoredWindow, TallyArchive, WindowDelta, WindowRef } from './archive.js'
import { retentionMs } from './retention.js'
import { addInto, type TallySlots } from './slots.js'

export class MemoryArchive implements TallyArchive {
  readonly path = null
  readonly sizeBytes = 0
  readonly movedAside = null
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
    const windows = wanted.map(
      (ref) => this.#windows.get(nameOf(ref))?.counts.slice() ?? this.#slots.blank(),
    )
    return Promise.resolve({ totals: this.#totals.slice(), windows })
  }

  history(window: WindowKind, fromMs: number, toMs: number): Promise<StoredWindow[]> {
    const found = [...this.#windows.values()].filter(
      (kept) => kept.window === window && kept.startMs >= fromMs && kept.startMs < toMs,
    )
    return Promise.resolve(
      found
        .toSorted((a, b) => a.startMs - b.startMs)
        .map(({ startMs, counts }) => ({ startMs, counts: counts.slice() })),
    )
  }

  /** What has outlived its retention, by the oldest window that is still shown. */
  #forgetBefore(wanted: readonly WindowRef[]): void {
    for (const { window, startMs } of wanted) {
      const oldestMs = startMs - retentionMs[window]
      // They were added in the order of time, but for steps of the clock.
      for (const [name, kept] of this.#windows) {
        if (kept.window !== window) continue
        if (kept.startMs >= oldestMs) break
        this.#windows.delete(name)
      }
    }
  }
}

function nameOf(ref: WindowRef): string {
  return `${ref.window} ${ref.startMs}`
}

/*
 * Counts requests by outcome and attempts by verdict in minutes, hours, days and weeks. On the request
 * path a count is two comparisons and one addition to a slot; the four windows are brought up to date when
 * the minute ends, when somebody looks, and when the counts go to the archive, about once a second.
 *
 * Invariant: a window's figure = what the archive held last + what is on its way there + what is pending.
 * A flush that fails puts what was on its way back among the pending, so a count is never lost nor doubled.
 * What a failing archive makes wait is bounded: by how long a window is kept at all, and in number.
 */
import type { Clock } from '../core/clock.js'
import { windowKinds, type WindowKind } from '../core/windows.js'
import type { StoredCounts, StoredWindow, TallyArchive, WindowDelta, WindowRef } from './archive.js'
import type { Calendar, Span } from './calendar.js'
import { retentionMs } from './retention.js'
import { sumOf, type ExactRow, type LargeCounts } from './large-counts.js'
import { addInto, type TallySlots } from './slots.js'

export interface WindowCounts extends Span, ExactRow {}

/** Every figure of the tallies as of one instant. */
export interface TallyView {
  readonly atMs: number
  /** Since the archive began. */
  readonly totals: Float64Array
  /** Those of the totals that a double does not hold. */
  readonly largeTotals: LargeCounts | undefined
  readonly windows: Readonly<Record<WindowKind, { current: WindowCounts; previous: WindowCounts }>>
}

export interface FlushHealth {
  readonly okCount: number
  readonly failedCount: number
  /** null until the first flush has succeeded. */
  readonly lastFlushAtMs: number | null
  /** Why the latest flush failed; null if it succeeded. */
  readonly failure: Error | null
}

export interface TallyParts {
  readonly slots: TallySlots
  readonly calendar: Calendar
  readonly archive: TallyArchive
  readonly clock: Clock
  /** What the archive held at the start, in the windows of `shownWindows`; nothing unless said. */
  readonly initial?: StoredCounts
  /** Told of each flush: how long it took, and the failure if it failed. */
  readonly onFlush?: (seconds: number, failure: Error | null) => void
}

/** A step of the wall clock is noticed after this at the latest. */
const anchoredForMs = 1_000
/** Most windows that wait for a failing archive: half a week of minutes, with their hours, days and weeks. */
const pendingWindowsMax = 5_200

export class Tally {
  readonly archive: TallyArchive
  readonly #parts: TallyParts
  /** Counted in the minute of `#minute` and not yet added to the windows. */
  readonly #fresh: Float64Array
  #hasFresh = false
  #minute: Span
  /** From when and until when, by the monotonic clock, it is known to be `#minute`. */
  #anchoredMs = Infinity
  #anchoredUntilMs = -Infinity
  #pending = new Map<string, WindowDelta>()
  #sending = new Map<string, WindowDelta>()
  #stored: StoredCounts
  #storedRefs: readonly WindowRef[]
  /** The work on the archive that was begun last: one at a time. */
  #running: Promise<unknown> = Promise.resolve()
  #lostRequests = 0
  #health: FlushHealth = { okCount: 0, failedCount: 0, lastFlushAtMs: null, failure: null }

  constructor(parts: TallyParts) {
    this.#parts = parts
    this.archive = parts.archive
    this.#fresh = parts.slots.blank()
    const nowMs = parts.clock.wallMs()
    this.#minute = parts.calendar.spanOf('minute', nowMs)
    this.#storedRefs = shownWindows(parts.calendar, nowMs)
    this.#stored = parts.initial ?? this.#nothing()
  }

  /**
   * Goes over to the minute that it is now, for what is counted next.
   *
   * @param monotonicMs a reading that the caller has at hand. The wall clock is asked once a second, and when
   * a minute ends: a reading costs more than everything that an attempt counts.
   */
  reach(monotonicMs: number): void {
    if (!(monotonicMs >= this.#anchoredMs && monotonicMs < this.#anchoredUntilMs)) {
      this.#anchor(monotonicMs)
    }
  }

  /** Counts one in a slot, in the minute that was reached last. */
  add(slot: number): void {
    this.#fresh[slot] = (this.#fresh[slot] as number) + 1
    this.#hasFresh = true
  }

  /** Asks the wall clock which minute it is, and for how long that is sure to hold. */
  #anchor(monotonicMs: number): void {
    const nowMs = this.#parts.clock.wallMs()
    if (nowMs >= this.#minute.endMs || nowMs < this.#minute.startMs) {
      this.#fold()
      this.#minute = this.#parts.calendar.spanOf('minute', nowMs)
    }
    this.#anchoredMs = monotonicMs
    this.#anchoredUntilMs = monotonicMs + Math.min(anchoredForMs, this.#minute.endMs - nowMs)
  }

  /** Requests counted here that the archive does not hold yet. */
  pendingRequests(): number {
    this.#fold()
    const weeks = [...this.#pending.values(), ...this.#sending.values()].filter(
      (delta) => delta.window === 'week',
    )
    return weeks.reduce((sum, delta) => sum + this.#parts.slots.requestsIn(delta.counts), 0)
  }

  /** What the archive may lack: what is on its way there, and what waits. */
  unsaved(): { sending: readonly WindowDelta[]; pending: readonly WindowDelta[] } {
    this.#fold()
    return { sending: [...this.#sending.values()], pending: [...this.#pending.values()] }
  }

  /** What the archive held when it last answered, in the windows that were shown then. */
  get stored(): { readonly counts: StoredCounts; readonly refs: readonly WindowRef[] } {
    return { counts: this.#stored, refs: this.#storedRefs }
  }

  /** Requests that had to be left out of a minute or an hour, for want of room; larger windows have them. */
  get lostRequests(): number {
    return this.#lostRequests
  }

  health(): FlushHealth {
    return this.#health
  }

  /**
   * The windows of a kind that begin in [fromMs, toMs) and in which something was counted, in order: what is
   * stored, and what waits to be. Rejects where the archive cannot be read.
   */
  history(window: WindowKind, fromMs: number, toMs: number): Promise<StoredWindow[]> {
    return this.#inTurn(async () => {
      await this.#exchange()
      const stored = await this.#parts.archive.history(window, fromMs, toMs)
      const found = new Map(stored.map((each) => [each.startMs, each]))
      this.#fold()
      for (const { window: kind, startMs, counts } of this.#pending.values()) {
        if (kind !== window || startMs < fromMs || startMs >= toMs) continue
        const known = found.get(startMs) ?? { counts: this.#parts.slots.blank() }
        found.set(startMs, { startMs, ...sumOf(known, counts) })
      }
      return [...found.values()].toSorted((a, b) => a.startMs - b.startMs)
    })
  }

  /** All figures as of one instant. */
  view(): TallyView {
    this.#fold()
    const atMs = this.#parts.clock.wallMs()
    const weeks = [...this.#sending.values(), ...this.#pending.values()].filter(
      ({ window }) => window === 'week',
    )
    const { totals, large } = this.#stored
    const sum = sumOf({ counts: totals, large: large?.[0] }, ...weeks.map(({ counts }) => counts))
    const windows = Object.fromEntries(
      windowKinds.map((kind) => {
        const current = this.#parts.calendar.spanOf(kind, atMs)
        const previous = this.#parts.calendar.spanOf(kind, current.startMs - 1)
        return [
          kind,
          { current: this.#counted(kind, current), previous: this.#counted(kind, previous) },
        ]
      }),
    ) as unknown as TallyView['windows']
    return { atMs, totals: sum.counts, largeTotals: sum.large, windows }
  }

  /** Hands what is pending to the archive; never rejects. A call during a flush waits for that, then flushes. */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#exchange())
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#running.then(work)
    this.#running = done.catch(() => undefined)
    return done
  }

  async #exchange(): Promise<void> {
    const { archive, clock } = this.#parts
    this.#fold()
    this.#sending = this.#pending
    this.#pending = new Map()
    const startedMs = clock.monotonicMs()
    const refs = shownWindows(this.#parts.calendar, clock.wallMs())
    let failure: Error | null = null
    try {
      this.#stored = await archive.add([...this.#sending.values()], refs)
      this.#storedRefs = refs
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
      this.#takeBack()
      this.#dropOutlived(clock.wallMs())
      this.#dropBeyondBound()
    }
    this.#sending = new Map()
    this.#health = {
      okCount: this.#health.okCount + (failure === null ? 1 : 0),
      failedCount: this.#health.failedCount + (failure === null ? 0 : 1),
      lastFlushAtMs: failure === null ? clock.wallMs() : this.#health.lastFlushAtMs,
      failure,
    }
    this.#parts.onFlush?.((clock.monotonicMs() - startedMs) / 1000, failure)
  }

  /** Adds the fresh counts to the four windows that their minute lies in. */
  #fold(): void {
    if (!this.#hasFresh) return
    for (const kind of windowKinds) {
      const { startMs } = this.#parts.calendar.spanOf(kind, this.#minute.startMs)
      this.#addPending({ window: kind, startMs }, this.#fresh)
    }
    this.#fresh.fill(0)
    this.#hasFresh = false
  }

  #addPending(ref: WindowRef, counts: Float64Array): void {
    const name = nameOf(ref)
    const delta = this.#pending.get(name) ?? {
      window: ref.window,
      startMs: ref.startMs,
      counts: this.#parts.slots.blank(),
    }
    addInto(delta.counts, counts)
    this.#pending.set(name, delta)
  }

  /** What was on its way goes before what came to wait meanwhile: it is older. */
  #takeBack(): void {
    const newer = this.#pending
    this.#pending = this.#sending
    this.#sending = new Map()
    for (const delta of newer.values()) this.#addPending(delta, delta.counts)
  }

  /** Forgets waiting windows that the archive would delete at once: their counts are in the larger ones. */
  #dropOutlived(nowMs: number): void {
    for (const [name, delta] of this.#pending) {
      if (delta.startMs < nowMs - retentionMs[delta.window]) this.#pending.delete(name)
    }
  }

  /** The smallest windows first, and of those the oldest: their counts are in the larger ones. */
  #dropBeyondBound(): void {
    for (const kind of windowKinds) {
      for (const [name, delta] of this.#pending) {
        if (this.#pending.size <= pendingWindowsMax) return
        if (delta.window !== kind) continue
        this.#lostRequests += this.#parts.slots.requestsIn(delta.counts)
        this.#pending.delete(name)
      }
    }
  }

  #nothing(): StoredCounts {
    const { slots } = this.#parts
    return { totals: slots.blank(), windows: this.#storedRefs.map(() => slots.blank()) }
  }

  #counted(kind: WindowKind, span: Span): WindowCounts {
    const name = nameOf({ window: kind, startMs: span.startMs })
    const index = this.#storedRefs.findIndex((known) => nameOf(known) === name)
    const { windows, large } = this.#stored
    const row = {
      counts: windows[index] ?? this.#parts.slots.blank(),
      large: index === -1 ? undefined : large?.[index + 1],
    }
    const waiting = [this.#sending, this.#pending].flatMap((each) => each.get(name)?.counts ?? [])
    return { startMs: span.startMs, endMs: span.endMs, ...sumOf(row, ...waiting) }
  }
}

/** The windows that are shown at a time: the current and the previous one of each kind. */
export function shownWindows(calendar: Calendar, nowMs: number): WindowRef[] {
  return windowKinds.flatMap((kind) => {
    const { startMs } = calendar.spanOf(kind, nowMs)
    const before = calendar.spanOf(kind, startMs - 1)
    return [
      { window: kind, startMs },
      { window: kind, startMs: before.startMs },
    ]
  })
}

function nameOf(ref: WindowRef): string {
  return `${ref.window} ${ref.startMs}`
}

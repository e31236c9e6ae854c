/*
 * The contract between the tallies and what keeps them. The tallies hand over what was counted since last
 * time, and get back what is stored by now, other processes' counts included. All counts of one window are
 * one row of slots, as `TallySlots` lays them out.
 */
import type { WindowKind } from '../core/windows.js'
import type { ExactRow, LargeCounts } from './large-counts.js'

export interface WindowRef {
  readonly window: WindowKind
  /** Milliseconds since the epoch. */
  readonly startMs: number
}

/** What was counted in one window since it was last handed over. */
export interface WindowDelta extends WindowRef {
  readonly counts: Float64Array
}

/** What is stored: since the archive began, and in each window that was asked for, in that order. */
export interface StoredCounts {
  readonly totals: Float64Array
  readonly windows: readonly Float64Array[]
  /** Of the totals first, then of each window; left out where no count is large. */
  readonly large?: readonly (LargeCounts | undefined)[]
}

/** One window of a kind, as it is stored. */
export interface StoredWindow extends ExactRow {
  readonly startMs: number
}

/** What an archive that several processes write to knows of them. */
export interface SharedArchive {
  /** This process, to the archive. */
  readonly writer: string
  /** Number of the batch that was handed over last; they are numbered from 1. */
  readonly sequence: number
  /** What is stored, and the number of the last batch in it of each of these writers, 0 where there is none. */
  readWith(wanted: readonly WindowRef[], writers: readonly string[]): Promise<SharedCounts>
}

export interface SharedCounts {
  readonly stored: StoredCounts
  readonly sequences: readonly number[]
}

export interface TallyArchive {
  /** Where it is kept; null for memory. */
  readonly path: string | null
  /** An id that stays with the stored counts, wherever they are opened. */
  readonly id: string
  /** When counting began. */
  readonly sinceMs: number
  readonly sizeBytes: number
  /** Where a damaged file has been moved since the start; null where there was none. */
  readonly movedAside: string | null
  /** Left out where no other process writes to it. */
  readonly shared?: SharedArchive
  /** Adds everything or, where it rejects, nothing; then reads. */
  add(deltas: readonly WindowDelta[], wanted: readonly WindowRef[]): Promise<StoredCounts>
  /** The stored windows of a kind that begin in [fromMs, toMs), in order; empty ones are left out. */
  history(window: WindowKind, fromMs: number, toMs: number): Promise<StoredWindow[]>
}

/*
 * The tallies of several workers on one archive: what is stored, and of what each reported exactly that
 * which is not stored when it is read, whatever has been written between.
 */
import { describe, expect, it } from 'vitest'
import { mergeReports } from '../../src/cluster/merge.js'
import type { Lasting, Passing, TallyReport, UnsavedReport } from '../../src/cluster/report.js'
import { clusterTally } from '../../src/gate/cluster-tally.js'
import type { SharedArchive, TallyArchive } from '../../src/tally/archive.js'
import { createCalendar } from '../../src/tally/calendar.js'
import { MemoryArchive } from '../../src/tally/memory-archive.js'
import { TallySlots } from '../../src/tally/slots.js'
import { shownWindows, Tally } from '../../src/tally/tally.js'
import { manualClock } from '../../src/testing/index.js'

const nowMs = Date.parse('2025-06-16T00:00:30Z')
const slots = new TallySlots(['ip'])
const calendar = createCalendar('UTC', 'monday')
const refs = shownWindows(calendar, nowMs)
const [minute] = refs

const allowed = (count: number) => {
  const counts = slots.blank()
  counts[0] = count
  return counts
}

const tallyOf = (count: number): TallyReport => ({
  sinceMs: 0,
  totals: { counts: [...allowed(count)] },
  windows: refs.slice(0, 1).map((ref) => ({ ...ref, counts: [...allowed(count)] })),
})

const unsaved = (writer: string, sequence: number, count: number): UnsavedReport => ({
  writer,
  sequence,
  requests: count,
  tally: tallyOf(count),
})

const lasting: Lasting = { metrics: [], tally: null, failures: 0, lost: 0, evictedKeys: [] }
const passing: Passing = {
  metrics: [],
  keySpace: '',
  rules: [],
  unsaved: [],
  lastFlushAtMs: null,
  pending: 0,
}

/** An archive with 100 requests, in which each writer has got as far as `sequences` say. */
function archiveWith(sequences: Record<string, number>, readWith?: SharedArchive['readWith']) {
  const memory = new MemoryArchive(slots, 0)
  const shared: SharedArchive = {
    writer: 'own',
    sequence: 0,
    readWith:
      readWith ??
      (async (wanted, writers) => ({
        stored: {
          totals: allowed(100),
          windows: wanted.map(({ startMs }) => allowed(startMs === minute?.startMs ? 100 : 0)),
        },
        sequences: writers.map((writer) => sequences[writer] ?? 0),
      })),
  }
  const archive: TallyArchive = {
    path: '/data/x.db',
    id: 'x',
    sinceMs: 5,
    sizeBytes: 0,
    movedAside: null,
    add: (deltas, wanted) => memory.add(deltas, wanted),
    history: (window, fromMs, toMs) => memory.history(window, fromMs, toMs),
    shared,
  }
  const tally = new Tally({ slots, calendar, archive, clock: manualClock(nowMs) })
  return { tally, slots, calendar }
}

const read = async (
  parts: ReturnType<typeof archiveWith>,
  reports: readonly (readonly UnsavedReport[])[],
) => {
  const merged = mergeReports(
    reports.map((each) => ({ lasting, passing: { ...passing, unsaved: each } })),
    null,
  )
  const { view, pending, sinceMs } = await clusterTally(merged, parts, nowMs)
  return {
    totals: view.totals[0],
    minute: view.windows.minute.current.counts[0],
    pending,
    sinceMs,
  }
}

describe('tallies of several workers on one archive', () => {
  it('are what is stored and what each has not stored', async () => {
    const parts = archiveWith({ a: 3, b: 7 })
    expect(await read(parts, [[unsaved('a', 4, 10)], [unsaved('b', 8, 20)]])).toEqual({
      totals: 130,
      minute: 130,
      pending: 30,
      sinceMs: 5,
    })
  })

  it('leave out what was written after it was reported', async () => {
    const parts = archiveWith({ a: 4, b: 7 })
    const found = await read(parts, [[unsaved('a', 4, 10)], [unsaved('b', 8, 20)]])
    expect(found).toMatchObject({ totals: 120, minute: 120, pending: 20 })
  })

  it('tell a batch that is on its way from what waits behind it', async () => {
    const batches = [unsaved('a', 4, 10), unsaved('a', 5, 1)]
    expect(await read(archiveWith({ a: 3 }), [batches])).toMatchObject({ totals: 111, pending: 11 })
    expect(await read(archiveWith({ a: 4 }), [batches])).toMatchObject({ totals: 101, pending: 1 })
    expect(await read(archiveWith({ a: 5 }), [batches])).toMatchObject({ totals: 100, pending: 0 })
  })

  it.each([
    ['fails', () => Promise.reject(new Error('locked'))],
    ['does not answer', () => new Promise<never>(() => {})],
  ])('go by what was read last where the archive %s', async (_title, readWith) => {
    const parts = archiveWith({}, readWith)
    parts.tally.reach(nowMs)
    parts.tally.add(0)
    await parts.tally.flush()
    const found = await read(parts, [[unsaved('a', 4, 10)]])
    expect(found).toMatchObject({ totals: 11, minute: 11, pending: 10 })
  })
})

/*
 * Everything of a gate that counts, wired together: slots for Prometheus, which begin at 0 with the process,
 * and tallies, which outlive it in SQLite, or end with it where there is no database.
 */
import type { Clock } from '../core/clock.js'
import { ClockSteps } from '../core/clock-steps.js'
import type { Logger } from '../core/logger.js'
import type { DecisionObserver } from '../core/observer.js'
import type { CompiledRule } from '../core/rule.js'
import { Histogram } from '../metrics/histogram.js'
import { Recorder } from '../metrics/recorder.js'
import { metrics } from '../metrics/table.js'
import { databaseFault, openDatabase, type OpenDatabase } from '../sqlite/database.js'
import { SqliteTallyArchive } from '../sqlite/tally-archive.js'
import type { Calendar } from '../tally/calendar.js'
import { MemoryArchive } from '../tally/memory-archive.js'
import { TallySlots } from '../tally/slots.js'
import { Tally, type TallyParts } from '../tally/tally.js'

export interface CountingParts {
  /** The SQLite file; none: tallies in memory only. */
  readonly path: string | undefined
  readonly rules: readonly CompiledRule[]
  readonly calendar: Calendar
  readonly clock: Clock
  readonly logger: Logger
}

export interface Counting {
  readonly slots: TallySlots
  readonly tally: Tally
  readonly recorder: Recorder
  readonly flushDuration: Histogram
  readonly database: OpenDatabase | null
  readonly clockSteps: ClockSteps
  readonly startedAtMs: number
  readonly observer: DecisionObserver
  /** @param outcome index into `outcomes`. */
  countRequest(this: void, outcome: number): void
}

export function createCounting({ path, rules, calendar, clock, logger }: CountingParts): Counting {
  const startedAtMs = clock.wallMs()
  const database = path === undefined ? null : openDatabase(path, startedAtMs)
  announce(database, logger)
  const slots = new TallySlots(rules.map((rule) => rule.name))
  const flushDuration = new Histogram(metrics.tallyFlushDuration.buckets)
  const reportFlush = flushReporter(logger)
  const onFlush = (seconds: number, failure: Error | null) => {
    flushDuration.observe(seconds)
    reportFlush(failure)
  }
  const tally = openTally(database, { slots, calendar, clock, onFlush })
  const candidateCount = rules.reduce((sum, { candidates }) => sum + candidates.length, 0)
  const recorder = new Recorder(rules.length + candidateCount)
  return {
    slots,
    tally,
    recorder,
    flushDuration,
    database,
    clockSteps: new ClockSteps(clock),
    startedAtMs,
    observer: {
      judged(rule, verdict, key, measure, nowMs) {
        recorder.judged(rule, verdict, key, measure, nowMs)
        if (rule.candidateOf === null) tally.count(slots.ofVerdict(rule.index, verdict), nowMs)
      },
    },
    countRequest(outcome) {
      recorder.countRequest(outcome)
      tally.count(outcome)
    },
  }
}

/** Reads what is kept, at once; a file that cannot be read stops the start. */
function openTally(database: OpenDatabase | null, parts: Omit<TallyParts, 'archive'>): Tally {
  const { slots, clock } = parts
  if (database === null) {
    return new Tally({ ...parts, archive: new MemoryArchive(slots, clock.wallMs()) })
  }
  try {
    const archive = new SqliteTallyArchive(database, slots, () => clock.wallMs())
    return new Tally({ ...parts, archive })
  } catch (error) {
    database.close()
    throw databaseFault(database.path, error)
  }
}

/** One line when writing begins to fail, one when it is well again; the metrics have the rest. */
function flushReporter(logger: Logger): (failure: Error | null) => void {
  let isFailing = false
  return (failure) => {
    if (failure !== null && !isFailing) {
      logger.error({ err: failure }, 'tallies cannot be written; they wait in memory')
    }
    if (failure === null && isFailing) logger.info({}, 'tallies are written again')
    isFailing = failure !== null
  }
}

function announce(database: OpenDatabase | null, logger: Logger): void {
  if (database === null) return
  const { path, journalMode } = database
  logger.info({ path }, 'tallies are kept in SQLite')
  if (journalMode === 'wal') return
  logger.warn(
    { path, journalMode },
    'SQLite cannot use WAL there (a network file system?); readers and writers will wait for each other',
  )
}

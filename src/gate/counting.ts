/*
 * Everything of a gate that counts, wired together: slots for Prometheus, which begin at 0 with the process,
 * and tallies, which outlive it in SQLite, or end with it where there is no database.
 */
import type { Clock } from '../core/clock.js'
import { ClockSteps } from '../core/clock-steps.js'
import type { Logger } from '../core/logger.js'
import type { Measure } from '../core/algorithm.js'
import type { Key } from '../core/key.js'
import { verdictOf } from '../core/verdict.js'
import type { DecisionObserver } from '../core/observer.js'
import type { CompiledRule } from '../core/rule.js'
import { Histogram } from '../metrics/histogram.js'
import { overIndex, Recorder } from '../metrics/recorder.js'
import { metrics } from '../metrics/table.js'
import type { DatabaseThread } from '../sqlite/database-thread.js'
import { RuleChangeRows, type StoredOverrides } from '../sqlite/rule-changes.js'
import { startThread } from '../sqlite/start-thread.js'
import { SqliteTallyArchive } from '../sqlite/tally-archive.js'
import { TallyRows } from '../sqlite/tally-rows.js'
import type { Calendar } from '../tally/calendar.js'
import { MemoryArchive } from '../tally/memory-archive.js'
import { TallySlots } from '../tally/slots.js'
import { shownWindows, Tally, type TallyParts } from '../tally/tally.js'

export interface CountingParts {
  /** The SQLite file; none: tallies in memory only. */
  readonly path: string | undefined
  readonly rules: readonly CompiledRule[]
  readonly calendar: Calendar
  readonly clock: Clock
  readonly logger: Logger
}

export interface CountingDatabase {
  readonly thread: DatabaseThread
  readonly archive: SqliteTallyArchive
  /** Live changes of rules, as they were read at the start. */
  readonly overrides: StoredOverrides
}

export interface Counting {
  readonly slots: TallySlots
  readonly tally: Tally
  readonly recorder: Recorder
  readonly flushDuration: Histogram
  /** null where there is no database. */
  readonly database: CountingDatabase | null
  readonly clockSteps: ClockSteps
  readonly startedAtMs: number
  readonly observer: DecisionObserver
  /** @param outcome index into `outcomes`. */
  countRequest(this: void, outcome: number): void
}

export function createCounting({ path, rules, calendar, clock, logger }: CountingParts): Counting {
  const startedAtMs = clock.wallMs()
  const slots = new TallySlots(rules.map((rule) => rule.name))
  const flushDuration = new Histogram(metrics.tallyFlushDuration.buckets)
  const reportFlush = flushReporter(logger)
  const reportChanges = changeReporter(logger)
  const onFlush = (seconds: number, failure: Error | null) => {
    flushDuration.observe(seconds)
    reportFlush(failure)
    if (database !== null) reportChanges(database.thread)
  }
  const parts = { slots, calendar, clock, onFlush }
  const { tally, database } =
    path === undefined ? tallyInMemory(parts) : tallyInDatabase(path, parts, logger)
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
      decided({ rules: asked, keys, cost }, measures, nowMs) {
        tally.reach(nowMs)
        let windowMs = 0
        for (let index = 0; index < asked.length; index++) {
          const rule = asked[index] as CompiledRule
          const measure = measures[index] as Measure
          const verdict = verdictOf(rule, measure)
          recorder.judged(rule, verdict, keys[index] as Key, cost, measure, nowMs)
          // Candidates follow their rule, and are told of in its windows.
          if (rule.candidateOf === null) {
            windowMs = rule.windowMs
            tally.add(slots.ofVerdict(rule.index, verdict))
          }
          if (verdict === overIndex) recorder.declined(rule, windowMs, keys[index] as Key, nowMs)
        }
      },
    },
    countRequest(outcome) {
      recorder.countRequest(outcome)
      tally.reach(clock.monotonicMs())
      tally.add(outcome)
    },
  }
}

type OpenTally = Pick<Counting, 'tally' | 'database'>
type PartsAtStart = Omit<TallyParts, 'archive'>

function tallyInMemory(parts: PartsAtStart): OpenTally {
  const archive = new MemoryArchive(parts.slots, parts.clock.wallMs())
  return { tally: new Tally({ ...parts, archive }), database: null }
}

/** Reads what is kept, at once; a file that cannot be read stops the start. */
function tallyInDatabase(path: string, parts: PartsAtStart, logger: Logger): OpenTally {
  const { slots, calendar, clock } = parts
  const wallMs = () => clock.wallMs()
  const wanted = shownWindows(calendar, wallMs())
  const { thread, found } = startThread(path, slots.ruleNames, wallMs, (database) => ({
    journalMode: database.journalMode,
    read: new TallyRows(database, slots.ruleNames).read(wanted),
    overrides: new RuleChangeRows(database).read(),
  }))
  announce(thread, found.journalMode, logger)
  const { stored, facts } = found.read
  const archive = new SqliteTallyArchive(thread, facts, wallMs)
  const tally = new Tally({ ...parts, archive, initial: stored })
  return { tally, database: { thread, archive, overrides: found.overrides } }
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

/** One line for each new file that was begun under the app. */
function changeReporter(logger: Logger): (thread: DatabaseThread) => void {
  let knownCount = 0
  return ({ path, changes }) => {
    const { replacedCount, movedAside } = changes
    if (replacedCount > knownCount) {
      logger.error({ path, movedAside }, 'the database was damaged or gone; a new one was begun')
    }
    knownCount = replacedCount
  }
}

function announce({ path, changes }: DatabaseThread, journalMode: string, logger: Logger): void {
  const { movedAside } = changes
  logger.info({ path }, 'tallies are kept in SQLite')
  if (movedAside !== null) {
    logger.error(
      { path, movedAside },
      'the database was damaged; it was moved aside, a new one begun',
    )
  }
  if (journalMode === 'wal') return
  logger.warn(
    { path, journalMode },
    'SQLite cannot use WAL there (a network file system?); readers and writers will wait for each other',
  )
}

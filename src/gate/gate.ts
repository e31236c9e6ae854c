/*
 * The composition root: nothing else makes a store, a clock, a registry or a database. A gate is these
 * parts wired together for one list of rules, and the one timer that moves counts to where they last.
 */
import { pino } from 'pino'
import { createAdmin } from '../admin/routes.js'
import { statistics, type Statistics } from '../admin/statistics.js'
import { systemClock } from '../core/clock.js'
import type { Logger } from '../core/logger.js'
import type { DecisionObserver } from '../core/observer.js'
import { compileRules, type CompiledRule } from '../core/rule.js'
import { expressSessionId } from '../express/client-key.js'
import type { Handler } from '../express/http.js'
import { createMetricsHandler } from '../express/metrics-handler.js'
import { createGateHandlers } from '../express/middleware.js'
import { RuleLimiter } from '../limiter/limiter.js'
import { Histogram } from '../metrics/histogram.js'
import { createExposition, type Exposition } from '../metrics/prometheus.js'
import { Recorder } from '../metrics/recorder.js'
import { metrics } from '../metrics/table.js'
import { openDatabase, type OpenDatabase } from '../sqlite/database.js'
import { SqliteTallyArchive } from '../sqlite/tally-archive.js'
import { MemoryStore } from '../stores/memory/memory-store.js'
import { createCalendar } from '../tally/calendar.js'
import { MemoryArchive } from '../tally/memory-archive.js'
import { TallySlots } from '../tally/slots.js'
import { Tally } from '../tally/tally.js'
import { metricSources } from './metric-sources.js'
import { checkOptions, type GateOptions } from './options.js'
import { version } from './version.js'

export interface Gate {
  /** Asks the general rules about every request; mount it before what it should guard. */
  readonly middleware: Handler
  /** Asks the rules of one function; for a route. @throws TallygateError where no rule has it. */
  limit(name: string): Handler
  /** Answers a scrape; mount it before `middleware`, so that scrapes are outside limits and tallies. */
  readonly metrics: Handler
  /** The admin routes; mount them at /admin, before `middleware`. 404 without an admin token. */
  readonly admin: Handler
  /** The statistics that /admin/stats answers. */
  stats(): Promise<Statistics>
  /** Writes what is counted and ends; may be called twice. Close the server first. */
  close(): Promise<void>
}

/** A gate with the parts that the bundled app builds on. */
export interface GateParts extends Gate {
  readonly rules: readonly CompiledRule[]
  readonly exposition: Exposition
  readonly database: OpenDatabase | null
  /** Whether some rule is for that function. */
  hasFunction(name: string): boolean
  /** Why the last flush failed; null where it did not. */
  persistenceFailure(): Error | null
}

const tickMs = 1_000
const closingTriesMax = 3

export function createGate(given: GateOptions): GateParts {
  const options = checkOptions(given)
  const clock = options.clock ?? systemClock
  const logger = options.logger ?? defaultLogger()
  const rules = compileRules(options.rules)
  const calendar = createCalendar(options.timeZone, options.weekStartsOn)
  const exposition = createExposition(options.registry)
  const startedAtMs = clock.wallMs()
  const database =
    options.database === undefined ? null : openDatabase(options.database, startedAtMs)
  announceDatabase(database, logger)

  const slots = new TallySlots(rules.map((rule) => rule.name))
  const wallMs = () => clock.wallMs()
  const flushDuration = new Histogram(metrics.tallyFlushDuration.buckets)
  const reportFlush = flushReporter(logger)
  const tally = new Tally({
    slots,
    calendar,
    clock,
    archive:
      database === null
        ? new MemoryArchive(slots, startedAtMs)
        : new SqliteTallyArchive(database, slots, wallMs),
    onFlush(seconds, failure) {
      flushDuration.observe(seconds)
      reportFlush(failure)
    },
  })
  const recorder = new Recorder(rules.length)
  const observer: DecisionObserver = {
    judged(rule, verdict, measure, nowMs) {
      recorder.judged(rule, verdict, measure, nowMs)
      tally.count(slots.ofVerdict(rule.index, verdict))
    },
  }
  const limiter = new RuleLimiter(options.rules, rules, new MemoryStore(rules, clock), observer)
  const handlers = createGateHandlers({
    limiter,
    sessionOf: options.session ?? expressSessionId,
    countRequest(outcome) {
      recorder.countRequest(outcome)
      tally.count(outcome)
    },
  })
  const utilizationOf = (rule: CompiledRule) => recorder.utilization(rule, clock.monotonicMs())
  const stats = () => statistics({ limiter, tally, slots, calendar, utilizationOf })
  let wrongTokenCount = 0
  exposition.add(
    metricSources({
      limiter,
      recorder,
      tally,
      flushDuration,
      startedAtMs,
      utilizationOf,
      wrongTokenCount: () => wrongTokenCount,
      version,
    }),
  )
  const timer = setInterval(() => {
    limiter.store.sweep()
    void tally.flush()
  }, tickMs).unref()

  let closing: Promise<void> | null = null
  return {
    middleware: handlers.middleware,
    limit: handlers.limit,
    metrics: createMetricsHandler(exposition, options.metricsToken),
    admin: createAdmin({
      token: options.adminToken,
      clock,
      stats,
      onWrongToken: () => void wrongTokenCount++,
    }) as Handler,
    stats: async () => stats(),
    close: () => (closing ??= closeGate(timer, tally, limiter, database, logger)),
    rules: limiter.rules,
    exposition,
    database,
    hasFunction: (name) => limiter.hasFunction(name),
    persistenceFailure: () => tally.health().failure,
  }
}

/** The last flush is worth waiting for: it is tried again where another process holds the file. */
async function closeGate(
  timer: NodeJS.Timeout,
  tally: Tally,
  limiter: RuleLimiter,
  database: OpenDatabase | null,
  logger: Logger,
): Promise<void> {
  clearInterval(timer)
  database?.bePatient()
  for (let tries = 0; tries < closingTriesMax; tries++) {
    await tally.flush()
    if (tally.health().failure === null) break
  }
  const lost = tally.pendingRequests()
  if (lost > 0) logger.error({ requests: lost }, 'closing with requests that could not be written')
  await limiter.close()
  database?.close()
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

function announceDatabase(database: OpenDatabase | null, logger: Logger): void {
  if (database === null) return
  logger.info({ path: database.path }, 'tallies are kept in SQLite')
  if (database.journalMode === 'wal') return
  logger.warn(
    { path: database.path, journalMode: database.journalMode },
    'SQLite cannot use WAL there (a network file system?); readers and writers will wait for each other',
  )
}

function defaultLogger(): Logger {
  return pino({ name: 'tallygate', level: 'warn' }, pino.destination(2))
}

/*
 * The composition root: nothing else makes a store, a clock, a registry or a database. A gate is these
 * parts wired together for one list of rules, and the one timer that moves counts to where they last.
 */
import cluster from 'node:cluster'
import { pino } from 'pino'
import type { LiveChanges } from '../admin/live-changes.js'
import { systemClock, type Clock } from '../core/clock.js'
import type { Logger } from '../core/logger.js'
import { KeyHasher } from '../core/hash.js'
import { KeyMaker } from '../core/key.js'
import { compileRules, type CompiledRule } from '../core/rule.js'
import { Warnings } from '../core/warnings.js'
import { ClientIdentity } from '../express/client-identity.js'
import { Exemption } from '../express/exemption.js'
import { Answers } from '../express/answers.js'
import { createDialect } from '../express/headers/index.js'
import { createMetricsHandler } from '../express/metrics-handler.js'
import { createGateHandlers, type GateHandlers } from '../express/gate-handlers.js'
import { expressSessionId, sessionReader } from '../express/session-id.js'
import { RuleLimiter } from '../limiter/limiter.js'
import { createExposition, type Exposition } from '../metrics/prometheus.js'
import { MemoryStore } from '../stores/memory/memory-store.js'
import { createCalendar } from '../tally/calendar.js'
import { createAdministration } from './administration.js'
import { joinCluster, type ClusterMember } from './cluster-member.js'
import { createCounting, type Counting, type CountingDatabase } from './counting.js'
import type { Gate } from './gate-api.js'
import { metricSources } from './metric-sources.js'
import { noteMemoryOnly, noteRules, noteWorkers } from './notices.js'
import { checkOptions, type CheckedOptions, type GateOptions } from './options.js'
import { RuleStates } from './rule-states.js'
import { version } from './version.js'

/** `database`: it takes no writes now. `database-replaced`: a new one was begun, until the restart. */
export type Degradation = 'database' | 'database-replaced'

/** A gate with the parts that the bundled app builds on. */
export interface GateParts extends Gate {
  readonly limiter: RuleLimiter
  readonly exposition: Exposition
  readonly database: CountingDatabase | null
  /** Why the last flush failed; null where it did not. */
  persistenceFailure(): Error | null
  /** Moves what is counted to where it lasts, now; never rejects. */
  flush(): Promise<void>
  /** What does not work as it should, in words of a closed set; none where all is well. */
  degraded(): Degradation[]
}

const tickMs = 1_000
const closingTriesMax = 3

export function createGate(given: GateOptions): GateParts {
  const options = checkOptions(given)
  const clock = options.clock ?? systemClock
  const logger = options.logger ?? defaultLogger()
  const rules = compileRules(options.rules)
  const warnings = new Warnings(logger, options.silence)
  noteRules(rules, logger)
  if (options.database === undefined) noteMemoryOnly(options.rules, logger)
  noteWorkers(process.env, cluster.isWorker, warnings)
  const calendar = createCalendar(options.timeZone, options.weekStartsOn)
  const exposition = createExposition(options.registry)
  const store = new MemoryStore(rules, clock)
  const states = new RuleStates({ store, clock, logger })
  const parts = { path: options.database, rules, calendar, clock, logger, states }
  const counting = createCounting(parts)
  const { tally, recorder, database } = counting
  const keys = new KeyMaker(hasherOf(database))
  const limiter = new RuleLimiter(options.rules, rules, store, counting.observer, keys)
  const handlers = handlersOf(options, { limiter, warnings, clock, counting })
  const utilizationOf = (rule: CompiledRule) => recorder.utilization(rule, clock.monotonicMs())
  const counted = { limiter, counting, calendar, clock }
  const member = joinCluster({ ...counted, exposition })
  const clusterFigures = async () => member?.figures() ?? null
  const administration = createAdministration({ ...counted, options, logger, clusterFigures })
  const { changes } = administration
  exposition.add(
    metricSources({
      ...counting,
      limiter,
      warnings,
      clock,
      utilizationOf,
      wrongTokenCount: administration.wrongTokenCount,
      changeCountOf: (rule) => changes.countOf(rule),
      version,
    }),
  )
  const timer = startTicking({ limiter, counting, changes, states, member })

  let closing: Promise<void> | null = null
  return {
    middleware: handlers.middleware,
    limit: (name) => handlers.limit(name),
    guard: (name, work) => handlers.functions.guard(name, work),
    run: (name, request, work) => handlers.functions.run(name, request, work),
    metrics: createMetricsHandler(member ?? exposition, options.metricsToken),
    admin: administration.handler,
    stats: () => administration.stats(),
    close: () =>
      (closing ??= closeGate(timer, { counting, limiter, changes, states, member, logger })),
    limiter,
    exposition,
    database,
    persistenceFailure: () => tally.health().failure,
    flush: () => tally.flush(),
    degraded: () => degradations(counting),
  }
}

function degradations({ tally, database }: Counting): Degradation[] {
  const found: Degradation[] = []
  if (tally.health().failure !== null) found.push('database')
  if (database === null) return found
  const { replacedCount, movedAside } = database.thread.changes
  if (replacedCount > 0 || movedAside !== null) found.push('database-replaced')
  return found
}

interface HandlerParts {
  readonly limiter: RuleLimiter
  readonly warnings: Warnings
  readonly clock: Clock
  readonly counting: Counting
}

function handlersOf(
  options: CheckedOptions,
  { limiter, warnings, clock, counting }: HandlerParts,
): GateHandlers {
  return createGateHandlers({
    limiter,
    client: new ClientIdentity(counting.recorder, warnings),
    exemption: new Exemption(options.exempt, options.skip),
    warnings,
    clock,
    sessionOf: options.session === undefined ? expressSessionId : sessionReader(options.session),
    awaitsSession: options.session === undefined && readsSession(limiter.rules),
    costOf: options.cost ?? null,
    skipFailed: options.skipFailed ?? false,
    skipSuccessful: options.skipSuccessful ?? false,
    countRequest: counting.countRequest,
    answers: new Answers({
      dialect: createDialect(options.headers ?? 'draft-8', clock),
      onDecline: options.onDecline ?? null,
    }),
  })
}

function readsSession(rules: readonly CompiledRule[]): boolean {
  return rules.some(({ keyParts }) => keyParts.some(({ kind }) => kind === 'session'))
}

/** The gate's one timer: it frees expired keys and moves counts to where they last. */
function startTicking(parts: Omit<RunningParts, 'logger'>): NodeJS.Timeout {
  const { limiter, changes, states, member } = parts
  const { tally, clockSteps, database } = parts.counting
  if (database !== null) states.start(database.thread, () => limiter.rules)
  // A large table is swept in pieces, with everybody else's turn between two.
  const sweep = () => {
    if (limiter.store.sweep()) setImmediate(sweep).unref()
  }
  const tick = () => {
    sweep()
    clockSteps.look()
    void tally.flush()
    void changes.flush()
    void states.tick()
    member?.tick()
  }
  return setInterval(tick, tickMs).unref()
}

interface RunningParts {
  readonly counting: Counting
  readonly limiter: RuleLimiter
  readonly changes: LiveChanges
  readonly states: RuleStates
  readonly member: ClusterMember | null
  readonly logger: Logger
}

/** The last flush is worth waiting for: it is tried again where another process holds the file. */
async function closeGate(timer: NodeJS.Timeout, parts: RunningParts): Promise<void> {
  const { limiter, changes, states, member, logger } = parts
  const { tally, database } = parts.counting
  clearInterval(timer)
  database?.thread.bePatient()
  for (let tries = 0; tries < closingTriesMax; tries++) {
    await tally.flush()
    if (tally.health().failure === null) break
  }
  if (changes.isWaiting) await changes.flush()
  if (database !== null && changes.isWaiting) {
    logger.error({}, 'closing with changes of rules that could not be written')
  }
  const lost = tally.pendingRequests()
  if (lost > 0) logger.error({ requests: lost }, 'closing with requests that could not be written')
  await states.close()
  await member?.close()
  await limiter.close()
  await database?.thread.close()
}

/** Where there is a database it has the seed, so that a key's hash is the same after a restart. */
function hasherOf(database: CountingDatabase | null): KeyHasher {
  return database === null
    ? new KeyHasher()
    : new KeyHasher(Buffer.from(database.hashSeed, 'base64'))
}

function defaultLogger(): Logger {
  return pino({ name: 'tallygate', level: 'warn' }, pino.destination(2))
}

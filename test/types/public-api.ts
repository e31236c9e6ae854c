/*
 * The public types, by example: what must compile, and under `@ts-expect-error` what must not, where the
 * compiler reports a line that would. Never run. `npm run typecheck` reads it against the sources; the
 * suite of the package compiles it again against the declarations that are packed, with the five imports
 * below changed to `tallygate`, `tallygate/cluster`, `tallygate/limiter`, `tallygate/testing` and
 * `tallygate/url`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import express5, { type Request, type RequestHandler as RequestHandler5 } from 'express'
import express4, {
  type Request as Request4,
  type RequestHandler as RequestHandler4,
} from 'express4'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import {
  tallygate,
  LimitExceeded,
  TallygateError,
  type Count,
  type Decision,
  type ErrorCode,
  type Gate,
  type GateOptions,
  type Handler,
  type Logger,
  type Mode,
  type Outcome,
  type RuleOptions,
  type RuleVerdict,
  type RuleStatistics,
  type Statistics,
  type Verdict,
} from '../../src/index.js'
import { collect } from '../../src/cluster/index.js'
import {
  createLimiter,
  TallygateError as LimiterError,
  type AttemptOptions,
  type Clock,
  type Decision as LimiterDecision,
  type Facts,
  type Limiter,
  type LimiterOptions,
  type RuleChanges,
} from '../../src/limiter/index.js'
import { manualClock, type ManualClock } from '../../src/testing/index.js'
import {
  createUrlParser,
  type FailureReason,
  type ParsedPage,
  type ParseOptions,
  type UrlFailure,
  type UrlParser,
  type UrlParserOptions,
} from '../../src/url/index.js'

/** Whether two types are the same, neither of them `any`: `true satisfies Same<A, B>` compiles then. */
type IsAny<T> = 0 extends 1 & T ? true : false
type Same<A, B> =
  IsAny<A> extends true ? false : [A] extends [B] ? ([B] extends [A] ? true : false) : false

// --- Rules --------------------------------------------------------------------------------------------

const ip = { name: 'ip', key: 'ip', limit: 400, window: '1m' } satisfies RuleOptions
const every: RuleOptions[] = [
  ip,
  { name: 'number', limit: 1, window: 1_500 },
  { name: 'session', key: 'session', limit: 1, window: '1d', absent: 'address' },
  { name: 'bucket', limit: 1, window: '1s', algorithm: 'token-bucket', burst: 10 },
  { name: 'rolling', limit: 1, window: '1s', algorithm: 'rolling-window', minInterval: '10ms' },
  { name: 'old', limit: 1, window: '1s', algorithm: 'exponential', strict: true, maxAge: '1h' },
  { name: 'fixed', limit: 1, window: '1s', algorithm: 'fixed-window', mode: 'shadow' },
  { name: 'tried', limit: 9, window: '1s', candidates: [{ limit: 5 }, { limit: 8, window: '2s' }] },
  { name: 'open', limit: 1, window: '1s', near: undefined, mode: undefined, function: undefined },
]

// @ts-expect-error a limit is a number
const asText: RuleOptions = { ...ip, limit: '400' }
// @ts-expect-error no such mode
const noMode: RuleOptions = { ...ip, mode: 'off' }
// @ts-expect-error no such key
const noKey: RuleOptions = { ...ip, key: 'user' }
// @ts-expect-error a rule has a window
const noWindow: RuleOptions = { name: 'ip', limit: 400 }
// @ts-expect-error a rule has a name
const noName: RuleOptions = { limit: 400, window: '1m' }
// @ts-expect-error no such field
const noField: RuleOptions = { name: 'ip', limit: 400, window: '1m', widnow: '1m' }
// @ts-expect-error yes or no
const noStrict: RuleOptions = { ...ip, strict: 'yes' }

// --- A gate -------------------------------------------------------------------------------------------

const clock: ManualClock = manualClock(1_760_000_000_000)
const options: GateOptions = {
  rules: every,
  timeZone: 'UTC',
  weekStartsOn: 'monday',
  database: 'data/tallygate.db',
  registry: new Registry(),
  logger: pino(),
  clock,
  adminToken: process.env['TALLYGATE_ADMIN_TOKEN'],
  metricsToken: undefined,
  session: (request) => request.headers['x-session']?.toString(),
}
const gate: Gate = tallygate(options)
tallygate({ config: 'tallygate.yml' })
tallygate({ rules: [ip] as const })

// @ts-expect-error options are required
tallygate()
// @ts-expect-error no such option
tallygate({ rules: [ip], databse: 'data/tallygate.db' })
// @ts-expect-error rules are a list
tallygate({ rules: ip })
// @ts-expect-error no such mode, in a list too
tallygate({ rules: [{ ...ip, mode: 'off' }] })
// @ts-expect-error no such day
tallygate({ rules: [ip], weekStartsOn: 'Monday' })
// @ts-expect-error a session is named by text
tallygate({ rules: [ip], session: () => 7 })
// @ts-expect-error nor later
tallygate({ rules: [ip], session: async () => 'somebody' })
// @ts-expect-error nor by a function of something else
tallygate({ rules: [ip], session: (response: ServerResponse) => response.statusMessage })
// @ts-expect-error a request is exempt or it is not
tallygate({ rules: [ip], skip: () => 'somebody' })
// @ts-expect-error a logger logs
tallygate({ rules: [ip], logger: {} })
// @ts-expect-error a clock has both readings
tallygate({ rules: [ip], clock: { wallMs: () => 0 } })

// Functions that name Express's own request.
tallygate({ rules: [ip], session: (request: Request) => request.get('x-session') })
tallygate({ rules: [ip], session: (request: Request4) => request.get('x-session') ?? null })
tallygate({ rules: [ip], session: (request: IncomingMessage) => request.headers.authorization })
tallygate({ rules: [ip], skip: (request: Request) => request.path === '/healthz' })
tallygate({ rules: [ip], skip: async (request: Request4) => request.secure })

void (true satisfies Same<Gate['middleware'], Handler>)
void (true satisfies Same<Gate['metrics'], Handler>)
void (true satisfies Same<Gate['admin'], Handler>)
void (true satisfies Same<ReturnType<Gate['limit']>, Handler>)
void (true satisfies Same<ReturnType<Gate['stats']>, Promise<Statistics>>)
void (true satisfies Same<ReturnType<Gate['close']>, Promise<void>>)
const measured: (path: string, depth?: number) => Promise<number> = gate.guard(
  'measure',
  async (path: string, depth?: number) => path.length + (depth ?? 0),
)
const incoming = {} as IncomingMessage
const ran: Promise<string> = gate.run('x', incoming, () => 'done')
const ranLater: Promise<string> = gate.run('x', incoming, async () => 'done')
void [measured('/a'), measured('/a', 2), ran, ranLater]
// @ts-expect-error a guarded function takes what the function takes
void measured(7)
// @ts-expect-error work is a function
void gate.run('x', incoming, 'done')
const exceeded = {} as LimitExceeded
void [
  exceeded.status,
  exceeded.retryAfterMs,
  exceeded.decision.rule,
  exceeded.headers['Retry-After'],
]
tallygate({ rules: [ip], cost: () => 2, skipFailed: true, skipSuccessful: false })
tallygate({ rules: [ip], cost: (asked: Request) => Number(asked.query['weight'] ?? 1) })
// @ts-expect-error a cost is known at once
tallygate({ rules: [ip], cost: async () => 2 })
// @ts-expect-error no such algorithm
const noAlgorithm: RuleOptions = { ...ip, algorithm: 'leaky-bucket' }

// @ts-expect-error a limit has a name
gate.limit()
// @ts-expect-error of text
gate.limit(7)
// @ts-expect-error a gate is made once
gate.middleware = gate.metrics
// @ts-expect-error its inner parts are its own
void gate.exposition

void gate.stats().then(({ totals, windows, rules, persistence }) => {
  const { requests, allowed, declined } = totals
  const { current, previous } = windows.hour
  void [requests, allowed, declined, current.start, previous.declined, persistence.pending]
  void rules.map((rule) => [rule.name, rule.totals.over, rule.windows.minute.current.near])
  void rules.map(({ demand, candidates, topKeys }: RuleStatistics) => [
    [demand.p99, demand.max],
    candidates.map(({ limit, over, keysOver }) => over - keysOver + limit),
    topKeys.map(({ id, key, countErrorMax }) => [id, key?.length, countErrorMax]),
  ])
  const counted: Count = requests
  const large: bigint = BigInt(counted)
  void large
  // @ts-expect-error a count may be a string of digits
  void (requests + 1 > 2)
})

// --- Where its handlers are mounted -------------------------------------------------------------------

const in5: RequestHandler5[] = [gate.middleware, gate.limit('x'), gate.metrics, gate.admin]
const in4: RequestHandler4[] = [gate.middleware, gate.limit('x'), gate.metrics, gate.admin]
const app5 = express5()
app5.get('/metrics', gate.metrics)
app5.use('/admin', gate.admin)
app5.use(gate.middleware)
app5.get('/a/:id', gate.limit('x'), (request, response) => void response.send(request.params.id))
express5.Router().use('/api', gate.middleware, gate.limit('x'))
const app4 = express4()
app4.get('/metrics', gate.metrics)
app4.use('/admin', gate.admin)
app4.use(gate.middleware)
app4.get('/a/:id', gate.limit('x'), (request, response) => void response.send(request.params.id))
express4.Router().use('/api', gate.middleware, gate.limit('x'))
createServer((request, response) => gate.middleware(request, response, () => response.end('ok')))
const plain: (request: IncomingMessage, response: ServerResponse, next: () => void) => void =
  gate.middleware
// @ts-expect-error a handler goes on by what it is handed
createServer(gate.middleware)

// --- A limiter ----------------------------------------------------------------------------------------

const limiter: Limiter = createLimiter({ rules: [ip], clock })
const facts: Facts = { ip: '203.0.113.7', session: 'a' }
const decision = limiter.decide(facts)
void (true satisfies Same<typeof decision, LimiterDecision>)
void (true satisfies Same<LimiterDecision, Decision>)
void (true satisfies Same<ReturnType<Limiter['peek']>, Decision>)
void (true satisfies Same<ReturnType<Limiter['reset']>, void>)
void (true satisfies Same<typeof LimiterError, typeof TallygateError>)
const cost: AttemptOptions = { cost: 3, function: 'parse-url' }
limiter.decide(facts, cost)
limiter.decide({}, { also: 'parse-url' })
limiter.adjust('ip', facts, -1)
const changes: RuleChanges = { limit: 10, mode: 'shadow', near: 0.5, window: '2m' }
limiter.configure('ip', changes)

// @ts-expect-error its answer is there at once
void decision.then
// @ts-expect-error who asks is said
limiter.decide()
// @ts-expect-error a cost is a number
limiter.decide(facts, { cost: '3' })
// @ts-expect-error no such option of an attempt
limiter.decide(facts, { costs: 3 })
// @ts-expect-error no such fact
limiter.decide({ ipAddress: '203.0.113.7' })
// @ts-expect-error an address is text
limiter.decide({ ip: 7 })
// @ts-expect-error a limit is a number, changed or not
limiter.configure('ip', { limit: '10' })
// @ts-expect-error a rule keeps its name
limiter.configure('ip', { name: 'other' })
// @ts-expect-error a limiter has no database
createLimiter({ rules: [ip], database: 'data/tallygate.db' })
// @ts-expect-error nor is it without rules
const noRules: LimiterOptions = { clock }

// --- Pages ----------------------------------------------------------------------------------------------

const urlOptions: UrlParserOptions = {
  resolve: async (host) => [host, '203.0.113.7'],
  allow: ['127.0.0.1/32:8080'],
  timeoutMs: 5_000,
  bytesMax: 1_000_000,
  entriesMax: 10_000,
  database: 'data/pages.db',
  clock,
}
const { parse, close }: UrlParser = createUrlParser(urlOptions)
const charged: ParseOptions = { beforeFetch: () => gate.run('parse-url', incoming, () => 1) }
const page: Promise<ParsedPage> = parse('https://example.com/', charged)
void [page, parse(new URL('https://example.com/')), close(), createUrlParser()]
void (true satisfies Same<ParsedPage['title'], string | null>)
void (true satisfies Same<ParsedPage['cached'], boolean>)
void (true satisfies Same<UrlFailure['status'], 400 | 403 | 502 | 504>)
void (true satisfies Same<UrlFailure['reason'], FailureReason>)
// @ts-expect-error a URL is text, or a URL
void parse(7)
// @ts-expect-error no such option
void parse('https://example.com/', { beforFetch: () => 1 })
// @ts-expect-error no such option
createUrlParser({ timeout: 5 })

// --- A decision ---------------------------------------------------------------------------------------

void (true satisfies Same<Decision['allowed'], boolean>)
void (true satisfies Same<Decision['rule'], string | null>)
void (true satisfies Same<Decision['retryAfterMs'], number>)
void (true satisfies Same<Decision['cost'], number>)
void (decision.verdicts satisfies readonly RuleVerdict[])
type Fields = 'allowed' | 'rule' | 'limit' | 'remaining' | 'retryAfterMs' | 'resetMs' | 'cost'
void (true satisfies Same<keyof Decision, Fields | 'verdicts'>)
type OfRule =
  'rule' | 'mode' | 'verdict' | 'allowed' | 'limit' | 'usage' | 'remaining' | 'retryAfterMs'
void (true satisfies Same<Exclude<OfRule, keyof RuleVerdict>, never>)
void (true satisfies Same<RuleVerdict['verdict'], Verdict>)
void (true satisfies Same<Verdict, 'within' | 'near' | 'over'>)
void (true satisfies Same<Outcome, 'allowed' | 'declined' | 'exempt'>)
void (true satisfies Same<Mode, 'enforce' | 'shadow' | 'disabled'>)

// --- Errors, logs, time -------------------------------------------------------------------------------

const failure = new TallygateError('TALLYGATE_OPTION', 'a sentence')
void (true satisfies Same<typeof failure.code, ErrorCode>)
const asError: Error = failure
// @ts-expect-error no such code
const noCode: ErrorCode = 'TALLYGATE_NOTHING'
const logger: Logger = { info() {}, warn() {}, error() {} }
const time: Clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
clock.advance(60_000)
clock.set(1_760_000_060_000)
// @ts-expect-error spans are milliseconds
clock.advance('1m')

// Named, so that a compiler set to mind unused names reads this file too.
export { app4, app5, asError, asText, in4, in5, logger, noAlgorithm, noCode, noField, noKey }
export { noMode, noName, noRules, noStrict, noWindow, plain, time }

// --- Several workers ----------------------------------------------------------------------------------

collect() satisfies void
// @ts-expect-error it takes nothing
collect({ workers: 4 })
const scope: Statistics['scope'] = 'cluster'
void scope

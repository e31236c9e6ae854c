/*
 * What `tallygate()` takes, checked once. An option that this version does not know stops the start by
 * name; undefined means the default.
 */
import type { AddressList } from '../core/address-list.js'
import type { Clock } from '../core/clock.js'
import { shown, TallygateError } from '../core/errors.js'
import type { Logger } from '../core/logger.js'
import type { RuleOptions } from '../core/rule.js'
import { isPlainFunction } from '../core/rule-functions.js'
import { checkSecret } from '../core/secret.js'
import { nearestName } from '../core/spelling.js'
import { warningCodes, type WarningCode } from '../core/warnings.js'
import { compileExempt, type ExemptOptions, type Skip } from '../express/exemption.js'
import { dialectNames, type DialectName } from '../express/headers/index.js'
import type { CostFunction, DeclineHandler } from '../express/http.js'
import type { SessionOf } from '../express/session-id.js'
import type { Registry } from '../metrics/prometheus.js'
import type { Weekday } from '../tally/calendar.js'
import { readConfig } from './config-file.js'

export interface GateOptions {
  /** A file with the rules, such as `tallygate.yml`; or give `rules`. */
  config?: string | undefined
  rules?: readonly RuleOptions[] | undefined
  /** Calendar of the tallies: an IANA name such as `Europe/Berlin`; `UTC` unless said. */
  timeZone?: string | undefined
  /** `monday` unless said, `saturday`, `sunday`. */
  weekStartsOn?: Weekday | undefined
  /** A SQLite file, made with its folders where missing; without one tallies are in memory only. */
  database?: string | undefined
  /** A prom-client registry to put the metrics into; one of the gate's own unless said. */
  registry?: Registry | undefined
  /** In pino's shape; warnings and errors go to standard error unless said. */
  logger?: Logger | undefined
  clock?: Clock | undefined
  /** Opens `gate.admin` to whoever bears it; without one it answers 404. At least 16 characters. */
  adminToken?: string | undefined
  /** Asked of scrapers where set. At least 16 characters. */
  metricsToken?: string | undefined
  /** The id of a request's established session; express-session's, once the cookie names it, unless said. */
  session?: SessionOf | undefined
  /** Clients that no rule counts; goes before the file's. */
  exempt?: ExemptOptions | undefined
  /** Whether a request is exempt, asked once for each; the rules do not see it then. */
  skip?: Skip | undefined
  /** What a request costs, a whole number from 0; of 0 it is charged to no rule. 1 unless said. */
  cost?: CostFunction | undefined
  /** Whether a request that is answered with a status from 400 gets back what it took. */
  skipFailed?: boolean | undefined
  /** Whether one that is answered with a status below 400 does. */
  skipSuccessful?: boolean | undefined
  /** Codes of warnings that are not to be logged; they are counted all the same. */
  silence?: readonly WarningCode[] | undefined
  /** How the limits are told in response headers: `draft-8` unless said, `draft-6`, `legacy`, `off`. */
  headers?: DialectName | undefined
  /** Answers a declined request in place of the problem document; status and headers are set before. */
  onDecline?: DeclineHandler | undefined
}

/** Options with the configuration file read in and the secrets checked. */
export interface CheckedOptions extends Omit<GateOptions, 'config' | 'rules' | 'exempt'> {
  readonly rules: readonly RuleOptions[]
  readonly exempt: AddressList
}

const known = [
  'config',
  'rules',
  'timeZone',
  'weekStartsOn',
  'database',
  'registry',
  'logger',
  'clock',
  'adminToken',
  'metricsToken',
  'session',
  'exempt',
  'skip',
  'cost',
  'skipFailed',
  'skipSuccessful',
  'silence',
  'headers',
  'onDecline',
]

const later = new Set(['store', 'storeTimeoutMs', 'onStoreFailure'])

/** @throws TallygateError naming the option, what was received and what would be right. */
export function checkOptions(options: GateOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) {
    throw optionError(`options must be an object: received ${shown(options)}`)
  }
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !known.includes(name)) refuseOption(name)
  }
  checkType(options, 'config', 'string', 'a path')
  checkType(options, 'database', 'string', 'a path')
  checkSession(options.session)
  checkType(options, 'skip', 'function', 'a function of the request')
  checkType(options, 'cost', 'function', 'a function of the request')
  checkType(options, 'skipFailed', 'boolean', 'true or false')
  checkType(options, 'skipSuccessful', 'boolean', 'true or false')
  checkSilence(options.silence)
  checkType(options, 'onDecline', 'function', 'a function of request, response and decision')
  checkHeaders(options.headers)
  checkMethods(options, 'clock', ['monotonicMs', 'wallMs'])
  checkMethods(options, 'logger', ['info', 'warn', 'error'])
  checkMethods(options, 'registry', ['registerMetric', 'getSingleMetric', 'metrics'])
  for (const name of ['timeZone', 'weekStartsOn'] as const) {
    if ((options[name] as unknown) === null)
      throw optionError(`${name} must be text: received null`)
  }
  if ((options.config === undefined) === (options.rules === undefined)) {
    throw optionError('give either config, a file, or rules, a list')
  }
  const file = options.config === undefined ? undefined : readConfig(options.config)
  return {
    ...options,
    rules: file?.rules ?? options.rules ?? [],
    exempt: compileExempt(options.exempt === undefined ? file?.exempt : options.exempt),
    timeZone: options.timeZone ?? file?.timeZone,
    weekStartsOn: options.weekStartsOn ?? file?.weekStartsOn,
    adminToken: checkSecret('adminToken', options.adminToken),
    metricsToken: checkSecret('metricsToken', options.metricsToken),
  }
}

function checkType(options: GateOptions, name: keyof GateOptions, type: string, must: string) {
  const value: unknown = options[name]
  if (value === undefined || (typeof value === type && value !== '')) return
  throw optionError(`${name} must be ${must}: received ${shown(value)}`)
}

/** Its answer is needed at once, so an async one would fail every request: better the start. */
function checkSession(session: unknown): void {
  if (session === undefined || isPlainFunction(session)) return
  const received = typeof session === 'function' ? 'an async function' : shown(session)
  throw optionError(
    `session must be a function of the request that gives the id at once: received ${received}`,
  )
}

/** A code that is misspelt would silence nothing, and go unnoticed until the log is full again. */
function checkSilence(silence: unknown): void {
  if (silence === undefined) return
  const codes = warningCodes.join(', ')
  if (!Array.isArray(silence)) {
    throw optionError(`silence must be a list of ${codes}: received ${shown(silence)}`)
  }
  const unknown = silence.findIndex((code) => !warningCodes.includes(code as WarningCode))
  if (unknown === -1) return
  throw optionError(
    `silence[${unknown}] must be one of ${codes}: received ${shown(silence[unknown])}`,
  )
}

function checkHeaders(value: unknown) {
  if (value === undefined || (dialectNames as readonly unknown[]).includes(value)) return
  const near = typeof value === 'string' ? nearestName(value, dialectNames) : null
  const advice = near === null ? '' : `, did you mean ${near}?`
  throw optionError(
    `headers must be one of ${dialectNames.join(', ')}: received ${shown(value)}${advice}`,
  )
}

function checkMethods(options: GateOptions, name: keyof GateOptions, methods: readonly string[]) {
  const value = options[name] as Record<string, unknown> | null | undefined
  if (value === undefined) return
  if (methods.every((method) => typeof value?.[method] === 'function')) return
  throw optionError(`${name} must have the methods ${methods.join(', ')}: received ${shown(value)}`)
}

function refuseOption(name: string): never {
  const near = nearestName(name, known)
  const advice = later.has(name)
    ? 'this version does not support it yet'
    : near === null
      ? `known options are ${known.join(', ')}`
      : `did you mean ${near}?`
  throw optionError(`unknown option ${shown(name)}: ${advice}`)
}

function optionError(sentence: string): TallygateError {
  return new TallygateError('TALLYGATE_OPTION', `Cannot create a gate: ${sentence}`)
}

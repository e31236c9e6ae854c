/*
 * The settings of the bundled app, read from the environment once. Each is one row: how it is checked and
 * what it must be. An empty variable counts as unset, as compose files write it.
 */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import { fileURLToPath } from 'node:url'
import { parseDuration } from '../core/duration.js'
import { shown, TallygateError } from '../core/errors.js'
import { checkSecret } from '../core/secret.js'
import { Reach } from '../url/reach.js'

export interface Settings {
  readonly port: number
  readonly host: string
  readonly configPath: string
  readonly databasePath: string
  readonly isProduction: boolean
  readonly adminToken: string | undefined
  /** Made up for this run, so worth showing to whoever started it. */
  readonly isAdminTokenRandom: boolean
  readonly metricsToken: string | undefined
  readonly sessionSecret: string
  readonly isSessionSecretRandom: boolean
  readonly sessionMaxAgeMs: number
  /** For Express's `trust proxy`: false, a number of hops, or a list of addresses. */
  readonly trustProxy: boolean | number | string
  /** Addresses and ports beside the public ones that pages may be fetched from. */
  readonly urlAllow: readonly string[]
  readonly logLevel: string
}

export type Environment = Readonly<Record<string, string | undefined>>

const bundledConfig = fileURLToPath(new URL('../../tallygate.yml', import.meta.url))

/** Passed over in silence, these would leave somebody with other limits than they meant. */
const laterSettings = ['TALLYGATE_REDIS_URL']

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** The longest age that a cookie's date and a timer can hold without surprises: about 10 years. */
const sessionMaxAgeMaxMs = 3650 * 86_400_000

/** @throws TallygateError naming the variable, what was received and what would be right. */
export function readEnvironment(environment: Environment): Settings {
  const read = (name: string) => {
    const value = environment[name]?.trim()
    return value === '' ? undefined : value
  }
  const later = laterSettings.find((name) => read(name) !== undefined)
  if (later !== undefined) {
    throw new TallygateError(
      'TALLYGATE_ENVIRONMENT',
      `Cannot start: ${later} must not be set: this version does not support it yet`,
    )
  }
  const isProduction = read('NODE_ENV') === 'production'
  const adminToken = checkSecret('TALLYGATE_ADMIN_TOKEN', read('TALLYGATE_ADMIN_TOKEN'))
  const sessionSecret = checkSecret('SESSION_SECRET', read('SESSION_SECRET'))
  if (isProduction && sessionSecret === undefined) {
    throw new TallygateError(
      'TALLYGATE_SECRET',
      'Cannot start in production: SESSION_SECRET must be a random secret of at least ' +
        '16 characters: received nothing',
    )
  }
  return {
    port: readPort(read('PORT')),
    host: read('HOST') ?? '127.0.0.1',
    configPath: read('TALLYGATE_CONFIG') ?? defaultConfig(),
    databasePath: read('TALLYGATE_DATABASE') ?? 'data/tallygate.db',
    isProduction,
    adminToken: adminToken ?? (isProduction ? undefined : randomSecret()),
    isAdminTokenRandom: adminToken === undefined && !isProduction,
    metricsToken: checkSecret('TALLYGATE_METRICS_TOKEN', read('TALLYGATE_METRICS_TOKEN')),
    sessionSecret: sessionSecret ?? randomSecret(),
    isSessionSecretRandom: sessionSecret === undefined,
    sessionMaxAgeMs: readMaxAge(read('SESSION_MAX_AGE')),
    trustProxy: readTrustProxy(read('TRUST_PROXY')),
    urlAllow: readUrlAllow(read('TALLYGATE_URL_ALLOW')),
    logLevel: readLogLevel(read('LOG_LEVEL')),
  }
}

/** tallygate.yml of the folder the app is started in, else the one that comes with the package. */
function defaultConfig(): string {
  return existsSync('tallygate.yml') ? 'tallygate.yml' : bundledConfig
}

function readPort(value: string | undefined): number {
  if (value === undefined) return 3000
  const port = /^\d{1,5}$/.test(value) ? Number(value) : NaN
  if (port <= 65_535) return port
  throw refused('PORT', 'a port from 0 to 65535, 0 for a free one', value)
}

function readMaxAge(value: string | undefined): number {
  const maxAgeMs = parseDuration(value ?? '1d')
  if (maxAgeMs !== null && maxAgeMs >= 1_000 && maxAgeMs <= sessionMaxAgeMaxMs) return maxAgeMs
  throw refused('SESSION_MAX_AGE', 'a span such as 30m, 12h or 1d, from 1s to 3650d', value)
}

/** Digits are hops; `true` would let anybody choose an address, so it is refused. */
function readTrustProxy(value: string | undefined): boolean | number | string {
  if (value === undefined || value === 'false') return false
  if (/^\d{1,3}$/.test(value)) return Number(value)
  if (value === 'true') {
    throw refused(
      'TRUST_PROXY',
      'the number of proxies in front, or their addresses; true would trust whatever a client sends',
      value,
    )
  }
  const parts = value.split(',').map((part) => part.trim())
  if (parts.every(isProxyAddress)) return value
  throw refused(
    'TRUST_PROXY',
    'the number of proxies in front, or their addresses and ranges with commas between, such as ' +
      '10.0.0.0/8 or loopback',
    value,
  )
}

/** What Express takes: an address, a range by its length or mask, or one of its three words. */
function isProxyAddress(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', range, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (range === undefined) return true
  if (/^\d{1,3}$/.test(range))
    return Number(range) >= 1 && Number(range) <= (version === 4 ? 32 : 128)
  return version === 4 && isIP(range) === 4
}

function readUrlAllow(value = ''): string[] {
  const entries = value.split(/[\s,]+/).filter((entry) => entry !== '')
  const wrong = entries.find((entry) => !isAllowance(entry))
  if (wrong === undefined) return entries
  throw refused(
    'TALLYGATE_URL_ALLOW',
    'addresses or ranges, each with a port, and commas between, such as 127.0.0.1/32:8080 or ' +
      '[fd00::/8]:8080',
    wrong,
  )
}

function isAllowance(entry: string): boolean {
  try {
    void new Reach([entry])
    return true
  } catch {
    return false
  }
}

function readLogLevel(value: string | undefined): string {
  if (value === undefined || logLevels.includes(value)) return value ?? 'info'
  throw refused('LOG_LEVEL', `one of ${logLevels.join(', ')}`, value)
}

function refused(name: string, must: string, value: unknown): TallygateError {
  return new TallygateError(
    'TALLYGATE_ENVIRONMENT',
    `Cannot start: ${name} must be ${must}: received ${shown(value)}`,
  )
}

function randomSecret(): string {
  return randomBytes(24).toString('base64url')
}

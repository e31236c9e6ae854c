/*
 * What `createUrlParser` and each `parse` take, checked: an option that is not known is refused by name,
 * because a misspelt one would leave its default in force, and a misspelt `beforeFetch` would charge nobody.
 */
import type { Clock } from '../core/clock.js'
import { shown, TallygateError } from '../core/errors.js'
import { nearestName } from '../core/spelling.js'

export interface UrlParserOptions {
  /** The addresses of a host; DNS unless said. */
  resolve?: ((host: string) => Promise<readonly string[]>) | undefined
  /** Addresses and ports that may be fetched from beside the public ones: `127.0.0.1/32:8080`. None unless said. */
  allow?: readonly string[] | undefined
  /** For one page with all its redirects; 5000 unless said. */
  timeoutMs?: number | undefined
  /** Of a page, unpacked; what is longer is cut there. 1000000 unless said. */
  bytesMax?: number | undefined
  /** Pages in the cache; 10000 unless said. */
  entriesMax?: number | undefined
  /** A SQLite file for the cache, made with its folders where missing; without one it is in memory only. */
  database?: string | undefined
  clock?: Clock | undefined
}

export interface ParseOptions {
  /**
   * Called once before a fetch begins, and before anything is asked about its host: the place to charge a
   * limit. Where it throws or rejects, nothing is fetched, and the call rejects with that very error. Not
   * called where the page is in the cache, is being fetched already, or its URL is refused.
   */
  beforeFetch?: (() => unknown) | undefined
}

/** Whole numbers from 1 to these. */
const numbersMax = { timeoutMs: 600_000, bytesMax: 100_000_000, entriesMax: 100_000 } as const

const known = ['resolve', 'allow', ...Object.keys(numbersMax), 'database', 'clock']
const knownOfParse = ['beforeFetch']

/** The entries of `allow` are checked by whoever reads them. @throws TallygateError naming the option. */
export function checkOptions(options: UrlParserOptions): void {
  const refuse = refuserOf('create a URL parser')
  checkNames(options, known, refuse)
  const { resolve, allow, database, clock } = options as Partial<Record<string, unknown>>
  if (resolve !== undefined && typeof resolve !== 'function') {
    refuse(`resolve must be a function of a host: received ${shown(resolve)}`)
  }
  if (allow !== undefined && !isListOfTexts(allow)) {
    refuse(`allow must be a list such as ['127.0.0.1/32:8080']: received ${shown(allow)}`)
  }
  for (const [name, max] of Object.entries(numbersMax)) {
    const value: unknown = options[name as keyof typeof numbersMax]
    if (value === undefined || (Number.isInteger(value) && isBetween(value, 1, max))) continue
    refuse(`${name} must be a whole number from 1 to ${max}: received ${shown(value)}`)
  }
  if (database !== undefined && (typeof database !== 'string' || database === '')) {
    refuse(`database must be a path: received ${shown(database)}`)
  }
  if (clock !== undefined && !isClock(clock)) {
    refuse(`clock must have the methods monotonicMs, wallMs: received ${shown(clock)}`)
  }
}

/** @throws TallygateError naming the option. */
export function checkParseOptions(options: ParseOptions): void {
  const refuse = refuserOf('parse a URL')
  checkNames(options, knownOfParse, refuse)
  const beforeFetch: unknown = options.beforeFetch
  if (beforeFetch === undefined || typeof beforeFetch === 'function') return
  refuse(`beforeFetch must be a function: received ${shown(beforeFetch)}`)
}

type Refuse = (sentence: string) => never

function refuserOf(act: string): Refuse {
  return (sentence) => {
    throw new TallygateError('TALLYGATE_OPTION', `Cannot ${act}: ${sentence}`)
  }
}

function checkNames(options: unknown, names: readonly string[], refuse: Refuse): void {
  if (typeof options !== 'object' || options === null) {
    refuse(`options must be an object: received ${shown(options)}`)
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || names.includes(name)) continue
    const near = nearestName(name, names)
    const advice = near === null ? `known options are ${names.join(', ')}` : `did you mean ${near}?`
    refuse(`unknown option ${shown(name)}: ${advice}`)
  }
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string')
}

function isBetween(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most
}

function isClock(value: unknown): boolean {
  const clock = value as Partial<Clock> | null
  return typeof clock?.monotonicMs === 'function' && typeof clock.wallMs === 'function'
}

/*
 * What a run may be asked for, and its bounds. A load is pointed at this machine unless remote ones are
 * allowed in so many words: a demonstration must not become an attack by a slip of the fingers.
 */
import { canonicalAddress } from '../core/address.js'
import { shown, TallygateError } from '../core/errors.js'
import { urlOf } from '../core/url-of.js'
import type { Progress } from './report.js'
import type { Clock } from '../core/clock.js'

export interface TrafficOptions {
  /** Where the app is, such as http://127.0.0.1:3000. */
  readonly url: string
  readonly clock: Clock
  /** How long to send: 1 second to 1 hour; 60 seconds unless said. */
  readonly durationMs?: number | undefined
  /** Mean requests a second, 1 to 500; 30 unless said. */
  readonly rate?: number | undefined
  /** The same seed sends the same mix; drawn from the clock unless said. */
  readonly seed?: number | undefined
  /** Whether the app may be on another machine. */
  readonly allowRemote?: boolean | undefined
  /** Ends the run early; what is on its way is still waited for. */
  readonly signal?: AbortSignal | undefined
  /** Told each second how far the run is. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
}

export interface CheckedOptions {
  /** The address with a slash at its end, for paths to be relative to. */
  readonly base: string
  readonly durationMs: number
  readonly rate: number
  readonly seed: number
}

const durationMsMin = 1_000
const durationMsMax = 3_600_000
const rateMax = 500
const seedMax = 2 ** 32 - 1

/** @throws TallygateError naming the option, what was received and what would be right. */
export function checkTrafficOptions(options: TrafficOptions): CheckedOptions {
  const { durationMs = 60_000, rate = 30 } = options
  const seed = options.seed ?? Math.floor(options.clock.wallMs()) % seedMax
  const base = checkUrl(options.url, options.allowRemote ?? false)
  if (!(durationMs >= durationMsMin && durationMs <= durationMsMax)) {
    throw refused('duration must be from 1s to 1h', `${durationMs} ms`)
  }
  if (!(rate >= 1 && rate <= rateMax)) {
    throw refused(`rate must be from 1 to ${rateMax} requests a second`, rate)
  }
  if (!Number.isInteger(seed) || seed < 0 || seed > seedMax) {
    throw refused(`seed must be a whole number from 0 to ${seedMax}`, seed)
  }
  return { base, durationMs, rate, seed }
}

function checkUrl(text: string, allowRemote: boolean): string {
  const url = urlOf(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw refused('URL must be an http or https address such as http://127.0.0.1:3000', text)
  }
  if (url.username !== '' || url.password !== '') {
    // What was received is not shown: it holds a password.
    throw refused('URL must carry no user name or password', `one for ${url.host}`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw refused('URL must be an address alone, without ? or #', text)
  }
  if (!allowRemote && !isLoopback(url.hostname)) {
    throw refused(
      'URL must be on this machine (127.0.0.0/8, ::1 or localhost), or --allow-remote be given',
      text,
    )
  }
  return url.href.endsWith('/') ? url.href : `${url.href}/`
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost') return true
  const address = canonicalAddress(hostname)
  return address === '::1' || (address !== null && address.startsWith('127.'))
}

function refused(right: string, received: unknown): TallygateError {
  return new TallygateError(
    'TALLYGATE_OPTION',
    `Cannot send traffic: ${right}: received ${shown(received)}`,
  )
}

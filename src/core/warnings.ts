/*
 * What tallygate warns of: mistakes that are no reason to stop, found at the start or in traffic. Each has
 * a code, a sentence that says what to do, and a section of its code in docs/errors.md; a test holds them
 * together. A gate logs each kind once, unless it was silenced, and counts every occurrence, so noting one
 * costs an addition. What has been said already is a gate's own to remember.
 */
import type { Logger } from './logger.js'

export const warningSentences = {
  TALLYGATE_WARN_UNTRUSTED_FORWARD:
    "A request has a forwarding header while Express's 'trust proxy' is off, so its client is the " +
    "address of its socket: behind a proxy set 'trust proxy' to the number of proxies in front; with " +
    'none in front the header is made up, and passed over',
  TALLYGATE_WARN_TRUST_PROXY_TRUE:
    "Express's 'trust proxy' is true, so a client may write any address into its header and never meet " +
    'a limit: set it to the number of proxies in front, or to their addresses',
  TALLYGATE_WARN_NO_ADDRESS:
    'A request has no address, as over a Unix socket: all such requests count as one client; where a ' +
    "proxy sends them, set Express's 'trust proxy' to the number of proxies in front",
  TALLYGATE_WARN_SEVERAL_WORKERS:
    'Rules are kept in the memory of this process, one of several workers, and each allows the whole ' +
    'limit: divide the limits by the number of workers, or run one',
  TALLYGATE_WARN_GATE_PER_REQUEST:
    'Gates are made while requests are answered, each with counts of its own, so that nothing is ' +
    'limited: call tallygate() once, where the app is built, and use that gate for every request',
  TALLYGATE_WARN_SESSION_AFTER_GATE:
    'The session of a request was found after the gate had been asked, so rules with key session see no session: ' +
    'mount session() before gate.middleware',
  TALLYGATE_WARN_MOUNTED_TWICE:
    'A request came to the same gate twice and was charged once: mount gate.middleware once on the way ' +
    'of a request',
} as const

export type WarningCode = keyof typeof warningSentences

/** A closed set: metrics have one series for each, in this order. */
export const warningCodes = Object.keys(warningSentences) as readonly WarningCode[]

export class Warnings {
  readonly #logger: Logger
  readonly #silenced: ReadonlySet<WarningCode>
  readonly #counts: Record<WarningCode, number>

  /** @param silenced codes that are counted and not logged. */
  constructor(logger: Logger, silenced: readonly WarningCode[] = []) {
    this.#logger = logger
    this.#silenced = new Set(silenced)
    const none = warningCodes.map((code) => [code, 0])
    this.#counts = Object.fromEntries(none) as Record<WarningCode, number>
  }

  /** Counts an occurrence, and logs the first of its kind. */
  note(code: WarningCode): void {
    const before = this.#counts[code]
    this.#counts[code] = before + 1
    if (before > 0 || this.#silenced.has(code)) return
    const section = `docs/errors.md#${code.toLowerCase()}`
    this.#logger.warn({ code, section }, `${warningSentences[code]} (${code})`)
  }

  countOf(code: WarningCode): number {
    return this.#counts[code]
  }
}

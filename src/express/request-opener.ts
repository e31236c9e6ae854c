/*
 * Makes the record of a request at its first attempt: whom it is from, what it costs, whether it is exempt.
 * What the application's own functions throw here is kept in the record and handed to its error handler by
 * whoever asks: such a request passes no gate and is counted all the same.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.js'
import { refusePromise } from '../core/rule-functions.js'
import type { Warnings } from '../core/warnings.js'
import type { Attempt, RuleLimiter } from '../limiter/limiter.js'
import type { ClientIdentity } from './client-identity.js'
import { hasExpressSession } from './client-key.js'
import type { Exemption } from './exemption.js'
import type { CostFunction, HttpRequest } from './http.js'
import { isOneTooMany } from './late-gates.js'
import { RequestFacts } from './request-facts.js'
import type { RequestRecord, RequestRecords } from './request-record.js'

export interface OpenerParts {
  readonly limiter: RuleLimiter
  readonly client: ClientIdentity
  readonly exemption: Exemption
  readonly warnings: Warnings
  readonly clock: Clock
  /** The id of the request's established session. */
  readonly sessionOf: (request: HttpRequest) => string | undefined
  /** Whether express-session should run before the gate. */
  readonly awaitsSession: boolean
  /** What a request costs; null: 1. */
  readonly costOf: CostFunction | null
}

const sessionLookCount = 1_000
const noAttempts: readonly Attempt[] = []

export class RequestOpener {
  readonly #parts: OpenerParts
  readonly #records: RequestRecords
  readonly #facts = new RequestFacts()
  readonly #createdMs: number
  #wasAsked = false
  /** The order of middleware does not change: the first requests tell whether the session comes too late. */
  #sessionLooksLeft: number

  constructor(parts: OpenerParts, records: RequestRecords) {
    this.#parts = parts
    this.#records = records
    this.#createdMs = parts.clock.monotonicMs()
    this.#sessionLooksLeft = parts.awaitsSession ? sessionLookCount : 0
  }

  /** The record of a request, opened if this is its first attempt. */
  recordOf(request: IncomingMessage, response: ServerResponse): RequestRecord {
    const known = this.#records.of(request)
    if (known !== undefined) return known
    const record = this.#recordOf(request, response)
    this.#records.open(response, record)
    return record
  }

  /**
   * The same where the application hands in the request alone. Without Express nobody knows its response:
   * then nobody is told of the limits, and its outcome is not counted.
   */
  recordOfAlone(request: HttpRequest): RequestRecord {
    const known = this.#records.of(request)
    if (known !== undefined) return known
    const { res: response } = request
    return response === undefined ? this.#recordOf(request, null) : this.recordOf(request, response)
  }

  #recordOf(request: HttpRequest, response: ServerResponse | null): RequestRecord {
    const { limiter, client, exemption, costOf, sessionOf } = this.#parts
    if (!this.#wasAsked) this.#noteLateGate(request)
    const ip = client.addressOf(request)
    let session: string | undefined
    let cost = 1
    let failure: unknown
    try {
      session = sessionOf(request)
      if (costOf !== null) {
        cost = costOf(request)
        refusePromise(cost, 'the cost of a request')
      }
    } catch (error) {
      // Express takes nothing for "go on", and a request must not pass because its cost is not known.
      failure = error ?? new Error('no reason was given')
    }
    return {
      facts: this.#facts.of(request, ip, session, limiter.readsRequest),
      cost,
      failure,
      request: response === null ? request : response.req,
      response,
      attempts: noAttempts,
      isAskedInGeneral: false,
      isDeclined: false,
      // Not asked for a request that is given up: nobody would wait for what `skip` says.
      exempt: failure === undefined && exemption.of(request, ip),
      isCounted: false,
      lacksSession: this.#sessionLooksLeft > 0 && this.#lacksSession(request),
      queue: null,
    }
  }

  #lacksSession(request: HttpRequest): boolean {
    this.#sessionLooksLeft--
    return !hasExpressSession(request)
  }

  #noteLateGate(request: HttpRequest): void {
    this.#wasAsked = true
    const { clock, warnings } = this.#parts
    if (!isOneTooMany(request, this.#createdMs, clock.monotonicMs())) return
    warnings.note('TALLYGATE_WARN_GATE_PER_REQUEST')
  }
}

/*
 * Makes the record of a request at its first attempt: whom it is from, what it costs, whether it is exempt.
 * What the application's own functions throw here is kept in the record and handed to its error handler by
 * whoever asks: such a request passes no gate and is counted all the same.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.js'
import type { Warnings } from '../core/warnings.js'
import type { RuleLimiter } from '../limiter/limiter.js'
import type { ClientIdentity } from './client-identity.js'
import { hasExpressSession } from './client-key.js'
import type { Exemption } from './exemption.js'
import type { CostFunction, HttpRequest } from './http.js'
import { isOneTooMany } from './late-gates.js'
import { RequestFacts } from './request-facts.js'
import { looseRecord, type RecordStart, type RequestRecord } from './request-record.js'
import type { RequestRecords } from './request-record.js'

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

export class RequestOpener {
  readonly #parts: OpenerParts
  readonly #records: RequestRecords
  readonly #facts = new RequestFacts()
  readonly #createdMs: number
  #wasAsked = false

  constructor(parts: OpenerParts, records: RequestRecords) {
    this.#parts = parts
    this.#records = records
    this.#createdMs = parts.clock.monotonicMs()
  }

  /** The record of a request, opened if this is its first attempt. */
  recordOf(request: IncomingMessage, response: ServerResponse): RequestRecord {
    return this.#records.of(request) ?? this.#records.open(response, this.#start(request))
  }

  /** The same where the application hands in the request alone; without Express nobody knows its response. */
  recordOfAlone(request: HttpRequest): RequestRecord {
    const known = this.#records.of(request)
    if (known !== undefined) return known
    const { res: response } = request
    if (response !== undefined) return this.recordOf(request, response)
    return looseRecord(this.#start(request), null)
  }

  #start(request: HttpRequest): RecordStart {
    const { limiter, client, exemption, warnings, clock, awaitsSession } = this.#parts
    if (!this.#wasAsked) {
      this.#wasAsked = true
      if (isOneTooMany(request, this.#createdMs, clock.monotonicMs())) {
        warnings.note('TALLYGATE_WARN_GATE_PER_REQUEST')
      }
    }
    const ip = client.addressOf(request)
    const { session, cost, failure } = this.#asked(request)
    return {
      facts: this.#facts.of(request, ip, session, limiter.readsRequest),
      cost,
      failure,
      exempt: exemption.of(request, ip),
      lacksSession: awaitsSession && !hasExpressSession(request),
    }
  }

  /** What the application's functions say. */
  #asked(request: HttpRequest): { session: string | undefined; cost: number; failure?: unknown } {
    const { sessionOf, costOf } = this.#parts
    try {
      return { session: sessionOf(request), cost: costOf === null ? 1 : costOf(request) }
    } catch (error) {
      // Express takes nothing for "go on", and a request must not pass because its cost is not known.
      return { session: undefined, cost: 1, failure: error ?? new Error('no reason was given') }
    }
  }
}

/*
 * What the gate remembers of a request between its first attempt and its end: who it was, what it asked,
 * whether it was declined. It hangs on the request under a symbol of the gate's own, so that several gates
 * see the same request without seeing each other, and it is counted once, when the response is over,
 * whether it ended or its connection did.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Facts } from '../core/facts.js'
import type { Attempt } from '../limiter/limiter.js'
import type { Answer } from '../stores/store.js'

export interface RequestRecord {
  readonly facts: Facts
  /** What each attempt of the request costs. */
  readonly cost: number
  /** Why its facts or its cost could not be found; undefined where they were. */
  readonly failure: unknown
  /** null where the application handed in none: nothing is told then, and no outcome counted. */
  readonly response: ServerResponse | null
  /** Every attempt made for this request, in order. */
  attempts: Attempt[]
  /** Whether the general rules were asked: the middleware asks them once. */
  isAskedInGeneral: boolean
  isDeclined: boolean
  /** Whether it is charged to no rule; a promise until `skip` has said. */
  exempt: Answer<boolean>
  isCounted: boolean
  /** Whether express-session should have run before the gate, and had not. */
  lacksSession: boolean
  /** Those that wait for the connection with this one; null where its response has it. */
  queue: Set<ServerResponse> | null
}

/** Indices into `outcomes`. */
const allowed = 0
export const declinedOutcome = 1
const exempt = 2

/** Told of each request once, at its end; `outcome` is an index into `outcomes`. */
type OnEnd = (outcome: number, record: RequestRecord, response: ServerResponse) => void

type Marked = IncomingMessage & { [key: symbol]: RequestRecord | undefined }

/** What a record begins with. */
export type RecordStart = Pick<
  RequestRecord,
  'facts' | 'cost' | 'failure' | 'exempt' | 'lacksSession'
>

/** A record of a request that nobody will count. */
export function looseRecord(start: RecordStart, response: ServerResponse | null): RequestRecord {
  return {
    facts: start.facts,
    cost: start.cost,
    failure: start.failure,
    response,
    attempts: [],
    isAskedInGeneral: false,
    isDeclined: false,
    exempt: start.exempt,
    isCounted: false,
    lacksSession: start.lacksSession,
    queue: null,
  }
}

export class RequestRecords {
  readonly #key = Symbol('tallygate request')
  readonly #onClose: (this: ServerResponse) => void
  /** Responses that wait behind an earlier one of their connection, as pipelining has it. */
  readonly #queues = new WeakMap<Socket, Set<ServerResponse>>()
  readonly #onEnd: OnEnd

  constructor(onEnd: OnEnd) {
    this.#onEnd = onEnd
    // One function for all requests: `this` is the response that closed.
    const finish = (response: ServerResponse) => this.#finish(response)
    this.#onClose = function onClose(this: ServerResponse) {
      finish(this)
    }
  }

  of(request: IncomingMessage): RequestRecord | undefined {
    return (request as Marked)[this.#key]
  }

  open(response: ServerResponse, start: RecordStart): RequestRecord {
    const record = looseRecord(start, response)
    // Node's own request, where something wraps it.
    const marked = response.req as Marked
    marked[this.#key] = record
    response.on('close', this.#onClose)
    if (isQueued(response)) record.queue = this.#queueOf(response)
    if (start.exempt instanceof Promise) this.#settle(response, record, start.exempt)
    return record
  }

  /**
   * What ends before `skip` has said is counted by whoever waits for the answer, once the rules have been
   * asked too. Where `skip` fails they are not, and its error is not for here.
   */
  #settle(response: ServerResponse, record: RequestRecord, saying: Promise<boolean>): void {
    const onSaid = (isExempt: boolean) => void (record.exempt = isExempt)
    const onFailed = () => {
      record.exempt = false
      this.countIfOver(response)
    }
    saying.then(onSaid, onFailed)
  }

  /** For a response that was over before its record was opened: no event will come any more. */
  countIfOver(response: ServerResponse): void {
    const isLost = isQueued(response) && response.req.socket.destroyed
    if (response.destroyed || isLost) this.#finish(response)
  }

  /**
   * Node tells only the response that has the connection when that closes; those queued behind it hear
   * nothing. One listener a connection, however many are queued.
   */
  #queueOf(response: ServerResponse): Set<ServerResponse> {
    const { socket } = response.req
    const queue = this.#queues.get(socket) ?? new Set()
    if (!this.#queues.has(socket)) {
      this.#queues.set(socket, queue)
      socket.once('close', () => {
        for (const waiting of queue) this.#finish(waiting)
      })
    }
    return queue.add(response)
  }

  #finish(response: ServerResponse): void {
    const record = this.of(response.req)
    if (record === undefined || record.isCounted || record.exempt instanceof Promise) return
    record.queue?.delete(response)
    record.isCounted = true
    const passed = record.exempt ? exempt : allowed
    this.#onEnd(record.isDeclined ? declinedOutcome : passed, record, response)
  }
}

/** Whether a response waits behind an earlier one of its connection. */
function isQueued(response: ServerResponse): boolean {
  return response.socket === null && !response.destroyed
}

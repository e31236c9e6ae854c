/*
 * What the gate remembers of a request between its first attempt and its end: who it was, what it asked,
 * whether it was declined. Each gate has its own, so several see the same request without seeing each other.
 * A request is counted once, when the response is over, whether it ended or its connection did.
 *
 * A record is found by way of its connection, which lives long and has few at a time. One more property on
 * a request, or a WeakMap of requests, would cost the server 10 microseconds of a request (bench/http.ts).
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
  /** Node's own. */
  readonly request: IncomingMessage
  /** null where the application handed in none: nothing is told then, and no outcome counted. */
  readonly response: ServerResponse | null
  /** Every attempt made for this request, in order. */
  attempts: readonly Attempt[]
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

/** What hangs on a connection, under a key of each gate's own: those of its requests not counted yet. */
interface Connection {
  /** The newest. */
  last: RequestRecord | null
  /** The ones before it, where pipelining has several at a time: then there may be thousands. */
  others: Map<IncomingMessage, RequestRecord> | null
}

type Holder = { [key: symbol]: Connection | undefined }

/** A request of HTTP/2 has a stream of its own; its socket is gone before its response is over. */
function holderOf(request: IncomingMessage & { stream?: object }): Holder {
  const { httpVersionMajor, socket, stream = socket } = request
  return (httpVersionMajor >= 2 ? stream : socket) as unknown as Holder
}

/** Indices into `outcomes`. */
const allowed = 0
export const declinedOutcome = 1
const exempt = 2

/** Told of each request once, at its end; `outcome` is an index into `outcomes`. */
type OnEnd = (outcome: number, record: RequestRecord, response: ServerResponse) => void

export class RequestRecords {
  readonly #key = Symbol('tallygate requests')
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
    const connection = holderOf(request)[this.#key]
    if (connection === undefined) return undefined
    const { last, others } = connection
    return last?.request === request ? last : others?.get(request)
  }

  /** Keeps a new record until its response is over, which is then counted. */
  open(response: ServerResponse, record: RequestRecord): void {
    // A handler that is late, with a request that has been counted: nothing is to come of that.
    record.isCounted = isOver(response) && response.listeners('close').includes(this.#onClose)
    if (record.isCounted) {
      if (record.exempt instanceof Promise) record.exempt.catch(() => undefined)
      return
    }
    const connection = (holderOf(record.request)[this.#key] ??= { last: null, others: null })
    const { last } = connection
    if (last !== null) (connection.others ??= new Map()).set(last.request, last)
    connection.last = record
    response.on('close', this.#onClose)
    if (isQueued(response)) record.queue = this.#queueOf(response)
    if (record.exempt instanceof Promise) this.#settle(response, record, record.exempt)
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
    if (isOver(response)) this.#finish(response)
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
    this.#unlink(record)
    const passed = record.exempt ? exempt : allowed
    this.#onEnd(record.isDeclined ? declinedOutcome : passed, record, response)
  }

  /** Nothing of a request that is counted may hang on its connection, which lives on. */
  #unlink(record: RequestRecord): void {
    const connection = holderOf(record.request)[this.#key]
    if (connection?.last === record) connection.last = null
    else connection?.others?.delete(record.request)
  }
}

/** Whether a response waits behind an earlier one of its connection. */
function isQueued(response: ServerResponse): boolean {
  return response.socket === null && !response.destroyed
}

/** Whether a response has ended, or its connection has. */
function isOver(response: ServerResponse): boolean {
  return response.destroyed || (isQueued(response) && response.req.socket.destroyed)
}

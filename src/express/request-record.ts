/*
 * What the gate remembers of a request between its first attempt and its end: who it was, what it asked,
 * whether it was declined. It hangs on the response under a symbol of the gate's own, so that several gates
 * see the same request without seeing each other, and it is counted once, when the response is over,
 * whether it ended or its connection did.
 */
import type { ServerResponse } from 'node:http'
import type { Facts } from '../core/facts.js'
import type { Attempt } from '../stores/store.js'

export interface RequestRecord {
  readonly facts: Facts
  /** Every attempt made for this request, in order. */
  attempts: Attempt[]
  isDeclined: boolean
  isCounted: boolean
}

/** Indices into `outcomes`. */
const allowed = 0
const declined = 1

type Marked = ServerResponse & { [key: symbol]: RequestRecord | undefined }

export class RequestRecords {
  readonly #key = Symbol('tallygate request')
  readonly #onClose: (this: ServerResponse) => void
  readonly #count: (outcome: number) => void

  /** @param count told the outcome of each request, as an index into `outcomes`. */
  constructor(count: (outcome: number) => void) {
    this.#count = count
    // One function for all requests: `this` is the response that closed.
    const finish = (response: ServerResponse) => this.#finish(response)
    this.#onClose = function onClose(this: ServerResponse) {
      finish(this)
    }
  }

  of(response: ServerResponse): RequestRecord | undefined {
    return (response as Marked)[this.#key]
  }

  open(response: ServerResponse, facts: Facts): RequestRecord {
    const record = { facts, attempts: [], isDeclined: false, isCounted: false }
    const marked = response as Marked
    marked[this.#key] = record
    response.on('close', this.#onClose)
    return record
  }

  /** For a response that was over before its record was opened: no event will come any more. */
  countIfOver(response: ServerResponse): void {
    if (response.destroyed) this.#finish(response)
  }

  #finish(response: ServerResponse): void {
    const record = this.of(response)
    if (record === undefined || record.isCounted) return
    record.isCounted = true
    this.#count(record.isDeclined ? declined : allowed)
  }
}

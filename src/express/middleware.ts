/*
 * The gate as Express sees it: `middleware` asks the general rules about every request, `limit(name)` asks
 * the rules of one function. An exempt request is asked nothing. Handlers are plain functions, and nothing
 * that goes wrong in them is thrown: errors go to `next`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AttemptOptions, Attempt } from '../limiter/limiter.js'
import type { Answer } from '../stores/store.js'
import type { Answers } from './answers.js'
import type { Handler, Next } from './http.js'
import type { RequestAttempts } from './request-attempts.js'
import type { RequestOpener } from './request-opener.js'
import type { RequestRecord, RequestRecords } from './request-record.js'

export interface MiddlewareParts {
  readonly records: RequestRecords
  readonly opener: RequestOpener
  readonly attempts: RequestAttempts
  readonly answers: Answers
  /** Told of a request that comes to the middleware again. */
  readonly onTwice: () => void
}

export class Middleware {
  readonly handler: Handler
  readonly #parts: MiddlewareParts

  constructor(parts: MiddlewareParts) {
    this.#parts = parts
    this.handler = (request, response, next) => this.#guard(request, response, next)
  }

  /** Asks the rules of one function, for a route; the name is known to be one. */
  limit(name: string): Handler {
    const asked = { function: name }
    return (request, response, next) => {
      this.#enter(this.#parts.opener.recordOf(request, response), response, next, asked)
    }
  }

  #guard(request: IncomingMessage, response: ServerResponse, next: Next): void {
    const record = this.#parts.opener.recordOf(request, response)
    if (record.isAskedInGeneral && record.failure === undefined) {
      this.#parts.onTwice()
      return next()
    }
    record.isAskedInGeneral = true
    this.#enter(record, response, next)
  }

  /** Asks the rules, unless the request is exempt; what `skip` throws goes to Express. */
  #enter(
    record: RequestRecord,
    response: ServerResponse,
    next: Next,
    asked?: AttemptOptions,
  ): void {
    if (record.failure !== undefined) return this.#fail(response, next, record.failure)
    if (record.exempt === false) return this.#ask(record, response, next, asked)
    proceed(record.exempt, next, (isExempt) => {
      if (!isExempt) return this.#ask(record, response, next, asked)
      this.#parts.records.countIfOver(response)
      next()
    })
  }

  #ask(record: RequestRecord, response: ServerResponse, next: Next, asked?: AttemptOptions): void {
    let answer: Answer<Attempt>
    try {
      answer = this.#parts.attempts.ask(record, asked)
    } catch (error) {
      // A function of a rule, or a cost that is none. Not around `next`, whose errors are not ours.
      return this.#fail(response, next, error)
    }
    // Plainly where the answer is there, as it nearly always is: a closure for each request is left behind.
    if (!(answer instanceof Promise)) return this.#conclude(record, answer, response, next)
    proceed(answer, next, (attempt) => this.#conclude(record, attempt, response, next))
  }

  #fail(response: ServerResponse, next: Next, error: unknown): void {
    this.#parts.records.countIfOver(response)
    next(error)
  }

  /** Lets the request on, or declines it. */
  #conclude(record: RequestRecord, attempt: Attempt, response: ServerResponse, next: Next): void {
    const { records, attempts, answers } = this.#parts
    if (attempt.decision.allowed) {
      attempts.allow(record, attempt)
      records.countIfOver(response)
      return next()
    }
    // Declined before, and so answered, or about to be.
    const isAnswered = record.isDeclined
    proceed(attempts.decline(record, attempt), next, (reviewed) => {
      if (!isAnswered) answers.decline(response, attempt, reviewed, next)
      records.countIfOver(response)
    })
  }
}

/** Goes on at once where the answer is there; a failure of a remote store goes to Express. */
function proceed<T>(answer: Answer<T>, next: Next, then: (value: T) => void): void {
  if (answer instanceof Promise) {
    answer.then(then).catch((error: unknown) => next(error ?? new Error('no reason was given')))
  } else {
    then(answer)
  }
}

/*
 * What a response says of the limits: the RateLimit fields of every request, in the gate's dialect, and the
 * whole answer to a declined one, by the problem document or by the app's own `onDecline`. A declined
 * request is never passed on, whatever `onDecline` does, and a response that has begun is never written to.
 */
import type { ServerResponse } from 'node:http'
import { shown, TallygateError } from '../core/errors.js'
import type { Attempt } from '../limiter/limiter.js'
import type { Dialect, Reported } from './headers/dialect.js'
import type { DeclineHandler, HttpResponse, Next } from './http.js'
import { markDeclined, sendProblem } from './problem.js'

export interface AnswersOptions {
  readonly dialect: Dialect
  /** In place of the problem document; null for that. */
  readonly onDecline: DeclineHandler | null
}

export class Answers {
  readonly #dialect: Dialect
  readonly #onDecline: DeclineHandler | null

  constructor({ dialect, onDecline }: AnswersOptions) {
    this.#dialect = dialect
    this.#onDecline = onDecline
  }

  /** Sets the fields of a request that goes on. */
  allow(response: ServerResponse, attempts: readonly Reported[]): void {
    if (!response.headersSent) this.#dialect(attempts, response)
  }

  /** The fields of a declined request that is answered by whoever catches the error; see `LimitExceeded`. */
  fieldsOf(attempts: readonly Reported[]): Record<string, string> {
    const fields: Record<string, string> = {}
    this.#dialect(attempts, {
      setHeader: (name, value) => void (fields[name] = value),
      removeHeader: (name) => void delete fields[name],
    })
    return fields
  }

  /**
   * Answers a declined request, once.
   *
   * @param attempt the one that was declined.
   * @param earlier how the rules of the request's other attempts stand after these were given back.
   */
  decline(
    response: ServerResponse,
    attempt: Attempt,
    earlier: readonly Reported[],
    next: Next,
  ): void {
    if (response.headersSent) {
      // Whoever began this answer is told by the broken connection that nothing more will come.
      if (!response.writableEnded) response.destroy()
      return
    }
    const retryAfterMs = longestWait(attempt, earlier)
    this.#dialect([...earlier, attempt], response)
    markDeclined(response, retryAfterMs)
    if (this.#onDecline === null) sendProblem(response, attempt, retryAfterMs)
    else handOver(this.#onDecline, response, attempt, next)
  }
}

/** Until the whole request would pass: a strict rule keeps what an earlier attempt took. */
export function longestWait({ decision }: Attempt, earlier: readonly Reported[]): number {
  let longestMs = decision.retryAfterMs
  for (const other of earlier) longestMs = Math.max(longestMs, other.decision.retryAfterMs)
  return longestMs
}

function handOver(
  onDecline: DeclineHandler,
  response: ServerResponse,
  { decision }: Attempt,
  next: Next,
): void {
  const fail = (error: unknown) => next(errorOf(error))
  try {
    const answering = onDecline(response.req, response as HttpResponse, decision)
    if (isThenable(answering)) answering.then(undefined, fail)
  } catch (error) {
    fail(error)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}

/** Express takes nothing, and the words 'route' and 'router', for "go on": none of them may get through. */
function errorOf(error: unknown): unknown {
  if (typeof error === 'object' && error !== null) return error
  return new TallygateError(
    'TALLYGATE_OPTION',
    `Cannot answer a declined request: onDecline must fail with an Error: received ${shown(error)}`,
    { cause: error },
  )
}

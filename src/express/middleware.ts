/*
 * The gate as Express sees it: `middleware` asks the general rules about every request, `limit(name)` asks
 * the rules of one function. A request is declined as a whole: when one of its attempts is, what the
 * earlier ones took is given back.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { TallygateError } from '../core/errors.js'
import type { Facts } from '../core/facts.js'
import type { Attempt, AttemptOptions, RuleLimiter } from '../limiter/limiter.js'
import type { Answer } from '../stores/store.js'
import { clientAddressOf } from './client-key.js'
import { rateLimitFields, type Reported } from './headers.js'
import type { Handler, HttpRequest, Next } from './http.js'
import { sendDeclined } from './problem.js'
import { RequestFacts } from './request-facts.js'
import { RequestRecords, type RequestRecord } from './request-record.js'

export interface GateHandlers {
  readonly middleware: Handler
  /** @throws TallygateError where no rule is for that function. */
  limit(name: string): Handler
}

export interface GateHandlerOptions {
  readonly limiter: RuleLimiter
  /** The id of the request's established session. */
  readonly sessionOf: (request: HttpRequest) => string | undefined
  /** Told the outcome of each request at its end, as an index into `outcomes`. */
  readonly countRequest: (outcome: number) => void
}

export function createGateHandlers(options: GateHandlerOptions): GateHandlers {
  const { limiter, sessionOf, countRequest } = options
  const records = new RequestRecords(countRequest)

  const facts = new RequestFacts()
  const factsOf = (request: HttpRequest): Facts =>
    facts.of(request, clientAddressOf(request), sessionOf(request), limiter.readsRequest)

  function ask(
    record: RequestRecord,
    response: ServerResponse,
    next: Next,
    asked?: AttemptOptions,
  ): void {
    const answer = limiter.attempt(record.facts, asked)
    proceed(answer, next, (attempt) => conclude(limiter, records, record, attempt, response, next))
  }

  return {
    middleware(request: IncomingMessage, response: ServerResponse, next: Next) {
      const record = records.of(response) ?? records.open(response, factsOf(request))
      // Mounted twice on one path: the request has been asked about already.
      if (record.isAskedInGeneral) return next()
      record.isAskedInGeneral = true
      ask(record, response, next)
    },
    limit(name) {
      if (!limiter.hasFunction(name)) {
        const names = limiter.rules.flatMap((rule) => rule.function ?? [])
        throw new TallygateError(
          'TALLYGATE_RULE_NAME',
          `Cannot limit '${name}': it must be the function of a rule, ` +
            (names.length === 0 ? 'and no rule has one' : `such as ${names.join(', ')}`),
        )
      }
      const asked = { function: name }
      return function tallygateLimit(request, response, next) {
        const record = records.of(response) ?? records.open(response, factsOf(request))
        ask(record, response, next, asked)
      }
    },
  }
}

/** Lets the request on, or declines it and gives back what its earlier attempts took. */
function conclude(
  limiter: RuleLimiter,
  records: RequestRecords,
  record: RequestRecord,
  attempt: Attempt,
  response: ServerResponse,
  next: Next,
): void {
  const earlier = record.attempts
  record.attempts = [...earlier, attempt]
  if (attempt.decision.allowed) {
    setFields(response, record.attempts)
    records.countIfOver(response)
    return next()
  }
  record.isDeclined = true
  // What is given back is forgotten: a later attempt of this request must not give it back again.
  record.attempts = [attempt]
  proceed(giveBack(limiter, earlier), next, (reviewed) => {
    setFields(response, [...reviewed, attempt])
    sendDeclined(response, attempt)
    records.countIfOver(response)
  })
}

/** Refunds attempts and answers how their rules stand then, for the header fields. */
function giveBack(limiter: RuleLimiter, attempts: readonly Attempt[]): Answer<Reported[]> {
  const reviewed: Reported[] = []
  const waiting: Promise<Reported>[] = []
  for (const attempt of attempts) {
    const { question } = attempt
    const refunded = limiter.refund(attempt)
    const review =
      refunded instanceof Promise
        ? refunded.then(() => limiter.review(question))
        : limiter.review(question)
    if (review instanceof Promise) waiting.push(review.then((decision) => ({ question, decision })))
    else reviewed.push({ question, decision: review })
  }
  return waiting.length === 0 ? reviewed : Promise.all(waiting)
}

function setFields(response: ServerResponse, attempts: readonly Reported[]): void {
  const fields = rateLimitFields(attempts)
  if (fields === null || response.headersSent) return
  response.setHeader('RateLimit-Policy', fields.policy)
  response.setHeader('RateLimit', fields.state)
}

/** Goes on at once where the answer is there; a failure of a remote store goes to Express. */
function proceed<T>(answer: Answer<T>, next: Next, then: (value: T) => void): void {
  if (answer instanceof Promise) answer.then(then).catch(next)
  else then(answer)
}

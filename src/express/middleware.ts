/*
 * The gate as Express sees it: `middleware` asks the general rules about every request, `limit(name)` asks
 * the rules of one function. A request is declined as a whole: when one of its attempts is, what the
 * earlier ones took is given back. An exempt one is asked nothing.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.js'
import { TallygateError } from '../core/errors.js'
import type { Warnings } from '../core/warnings.js'
import type { Attempt, AttemptOptions, RuleLimiter } from '../limiter/limiter.js'
import type { Answer } from '../stores/store.js'
import type { Answers } from './answers.js'
import type { ClientIdentity } from './client-identity.js'
import { hasExpressSession } from './client-key.js'
import type { Exemption } from './exemption.js'
import type { Reported } from './headers/dialect.js'
import type { Handler, HttpRequest, Next } from './http.js'
import { isOneTooMany } from './late-gates.js'
import { RequestFacts } from './request-facts.js'
import { RequestRecords, type RequestRecord } from './request-record.js'

export interface GateHandlers {
  readonly middleware: Handler
  /** @throws TallygateError where no rule is for that function. */
  limit(name: string): Handler
}

export interface GateHandlerOptions {
  readonly limiter: RuleLimiter
  readonly client: ClientIdentity
  readonly exemption: Exemption
  readonly warnings: Warnings
  readonly clock: Clock
  /** The id of the request's established session. */
  readonly sessionOf: (request: HttpRequest) => string | undefined
  /** Whether express-session should run before the gate. */
  readonly awaitsSession: boolean
  /** Told the outcome of each request at its end, as an index into `outcomes`. */
  readonly countRequest: (outcome: number) => void
  readonly answers: Answers
}

export function createGateHandlers(options: GateHandlerOptions): GateHandlers {
  const { limiter, warnings, countRequest, answers } = options
  const records = new RequestRecords((outcome, record, response) => {
    countRequest(outcome)
    if (record.lacksSession && hasExpressSession(response.req)) {
      warnings.note('TALLYGATE_WARN_SESSION_AFTER_GATE')
    }
  })
  const parts: Parts = { limiter, records, answers }
  const open = recordOpener(options, records)

  /** Asks the rules, unless the request is exempt; what `skip` throws goes to Express. */
  function enter(
    record: RequestRecord,
    response: ServerResponse,
    next: Next,
    asked?: AttemptOptions,
  ): void {
    if (record.exempt === false) return ask(record, response, next, asked)
    proceed(record.exempt, next, (isExempt) => {
      if (!isExempt) return ask(record, response, next, asked)
      records.countIfOver(response)
      next()
    })
  }

  function ask(
    record: RequestRecord,
    response: ServerResponse,
    next: Next,
    asked?: AttemptOptions,
  ): void {
    const answer = limiter.attempt(record.facts, asked)
    proceed(answer, next, (attempt) => conclude(parts, record, attempt, response, next))
  }

  return {
    middleware(request: IncomingMessage, response: ServerResponse, next: Next) {
      const record = records.of(response) ?? open(request, response)
      if (record.isAskedInGeneral) {
        warnings.note('TALLYGATE_WARN_MOUNTED_TWICE')
        return next()
      }
      record.isAskedInGeneral = true
      enter(record, response, next)
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
        enter(records.of(response) ?? open(request, response), response, next, asked)
      }
    },
  }
}

interface Parts {
  readonly limiter: RuleLimiter
  readonly records: RequestRecords
  readonly answers: Answers
}

/** Makes the record of a request at its first attempt: who it is from, whether it is exempt. */
function recordOpener(options: GateHandlerOptions, records: RequestRecords) {
  const { limiter, client, exemption, warnings, clock, sessionOf, awaitsSession } = options
  const requestFacts = new RequestFacts()
  const createdMs = clock.monotonicMs()
  let wasAsked = false
  return (request: HttpRequest, response: ServerResponse): RequestRecord => {
    if (!wasAsked) {
      wasAsked = true
      if (isOneTooMany(request, createdMs, clock.monotonicMs())) {
        warnings.note('TALLYGATE_WARN_GATE_PER_REQUEST')
      }
    }
    const ip = client.addressOf(request)
    const facts = requestFacts.of(request, ip, sessionOf(request), limiter.readsRequest)
    const record = records.open(response, facts, exemption.of(request, ip))
    record.lacksSession = awaitsSession && !hasExpressSession(request)
    return record
  }
}

/** Lets the request on, or declines it and gives back what its earlier attempts took. */
function conclude(
  { limiter, records, answers }: Parts,
  record: RequestRecord,
  attempt: Attempt,
  response: ServerResponse,
  next: Next,
): void {
  const earlier = record.attempts
  record.attempts = [...earlier, attempt]
  if (attempt.decision.allowed) {
    // Where it was declined before, the answer is settled, though it may not have been sent.
    if (!record.isDeclined) answers.allow(response, record.attempts)
    records.countIfOver(response)
    return next()
  }
  // Declined before, and so answered, or about to be.
  const isAnswered = record.isDeclined
  record.isDeclined = true
  // What is given back is forgotten: a later attempt of this request must not give it back again.
  record.attempts = [attempt]
  proceed(giveBack(limiter, earlier), next, (reviewed) => {
    if (!isAnswered) answers.decline(response, attempt, reviewed, next)
    records.countIfOver(response)
  })
}

/** Refunds attempts and answers how their rules stand then, for the header fields. */
function giveBack(limiter: RuleLimiter, attempts: readonly Attempt[]): Answer<Reported[]> {
  const reviewed: Reported[] = []
  const waiting: Promise<Reported>[] = []
  for (const attempt of attempts) {
    const { question } = attempt
    const isGivenBack = attempt.decision.allowed
    const refunded = limiter.refund(attempt)
    const review =
      refunded instanceof Promise
        ? refunded.then(() => limiter.review(question))
        : limiter.review(question)
    if (review instanceof Promise)
      waiting.push(review.then((decision) => ({ question, decision, isGivenBack })))
    else reviewed.push({ question, decision: review, isGivenBack })
  }
  return waiting.length === 0 ? reviewed : Promise.all(waiting)
}

/** Goes on at once where the answer is there; a failure of a remote store goes to Express. */
function proceed<T>(answer: Answer<T>, next: Next, then: (value: T) => void): void {
  if (answer instanceof Promise) answer.then(then).catch(next)
  else then(answer)
}

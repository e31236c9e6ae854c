/*
 * The attempts of a request, whoever makes them: the middleware, a route's limit, `gate.run`. A request is
 * declined as a whole: when one of its attempts is, what the earlier ones took is given back.
 */
import type { AttemptOptions, Attempt, RefundFrom, RuleLimiter } from '../limiter/limiter.js'
import type { Answer } from '../stores/store.js'
import type { Answers } from './answers.js'
import type { Reported } from './headers/dialect.js'
import type { RequestRecord } from './request-record.js'

export class RequestAttempts {
  readonly #limiter: RuleLimiter
  readonly #answers: Answers

  constructor(limiter: RuleLimiter, answers: Answers) {
    this.#limiter = limiter
    this.#answers = answers
  }

  /** Asks the rules, at the request's cost. Throws what functions of rules throw. */
  ask(record: RequestRecord, asked?: AttemptOptions): Answer<Attempt> {
    const options = record.cost === 1 ? asked : { ...asked, cost: record.cost }
    return this.#limiter.attempt(record.facts, options)
  }

  /** Notes that an attempt was allowed, and tells the client of its limits. */
  allow(record: RequestRecord, attempt: Attempt): void {
    const { attempts } = record
    record.attempts = attempts.length === 0 ? [attempt] : [...attempts, attempt]
    // Where it was declined before, the answer is settled, though it may not have been sent.
    if (record.isDeclined || record.response === null) return
    this.#answers.allow(record.response, record.attempts)
  }

  /** Notes that an attempt was declined, and answers how the rules of the earlier ones stand without them. */
  decline(record: RequestRecord, attempt: Attempt): Answer<Reported[]> {
    const earlier = record.attempts
    record.isDeclined = true
    // What is given back is forgotten: a later attempt of this request must not give it back again.
    record.attempts = [attempt]
    return this.#giveBack(earlier)
  }

  /** Gives back what all attempts of a request took. */
  refund(record: RequestRecord, from: RefundFrom): void {
    for (const attempt of record.attempts) {
      const refunded = this.#limiter.refund(attempt, from)
      // Nobody waits any more; a store that failed has counted that itself.
      if (refunded instanceof Promise) refunded.catch(() => undefined)
    }
  }

  #giveBack(attempts: readonly Attempt[]): Answer<Reported[]> {
    const reviewed: Reported[] = []
    const waiting: Promise<Reported>[] = []
    for (const attempt of attempts) {
      const { question } = attempt
      const isGivenBack = attempt.decision.allowed
      const refunded = this.#limiter.refund(attempt)
      const review =
        refunded instanceof Promise
          ? refunded.then(() => this.#limiter.review(question))
          : this.#limiter.review(question)
      if (review instanceof Promise) {
        waiting.push(review.then((decision) => ({ question, decision, isGivenBack })))
      } else {
        reviewed.push({ question, decision: review, isGivenBack })
      }
    }
    return waiting.length === 0 ? reviewed : Promise.all(waiting)
  }
}

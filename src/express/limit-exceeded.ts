/*
 * What `gate.run` and a guarded function reject with. It carries what an answer needs, by the names that
 * Express's own error handler reads: one that escapes a handler is answered as a decline.
 */
import type { Decision } from '../core/decision.js'
import { retryAfterSeconds } from './headers/seconds.js'

export class LimitExceeded extends Error {
  override readonly name = 'LimitExceeded'
  readonly status = 429
  /** `Retry-After`, left out where waiting never helps, `Cache-Control`, and those of the gate's dialect. */
  readonly headers: Readonly<Record<string, string>>
  readonly decision: Decision
  /** Until the whole request would pass, as `Retry-After` says it; Infinity for never. */
  readonly retryAfterMs: number

  /** @param fields header fields of the dialect. */
  constructor(
    message: string,
    decision: Decision,
    retryAfterMs: number,
    fields: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.decision = decision
    this.retryAfterMs = retryAfterMs
    const seconds = retryAfterSeconds(retryAfterMs)
    this.headers = {
      ...fields,
      'Cache-Control': 'no-store',
      ...(seconds === null ? {} : { 'Retry-After': String(seconds) }),
    }
  }
}

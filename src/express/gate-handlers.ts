/*
 * The Express edge put together: what opens, asks, answers and ends a request, and the handlers and
 * functions that an application gets of it.
 */
import type { ServerResponse } from 'node:http'
import type { Answers } from './answers.js'
import { hasExpressSession } from './client-key.js'
import { FunctionLimits } from './functions.js'
import type { Handler } from './http.js'
import { Middleware } from './middleware.js'
import { RequestAttempts } from './request-attempts.js'
import { RequestOpener, type OpenerParts } from './request-opener.js'
import { declinedOutcome, RequestRecords } from './request-record.js'

export interface GateHandlers {
  readonly middleware: Handler
  readonly functions: FunctionLimits
  /** @throws TallygateError where no rule is for that function. */
  limit(name: string): Handler
}

export interface GateHandlerOptions extends OpenerParts {
  readonly answers: Answers
  /** Whether a request that failed, or that went well, gets back what it took. */
  readonly skipFailed: boolean
  readonly skipSuccessful: boolean
  /** Told the outcome of each request at its end, as an index into `outcomes`. */
  readonly countRequest: (outcome: number) => void
}

export function createGateHandlers(options: GateHandlerOptions): GateHandlers {
  const { limiter, warnings, answers, countRequest, skipFailed, skipSuccessful } = options
  const attempts = new RequestAttempts(limiter, answers)
  const records = new RequestRecords((outcome, record, response) => {
    countRequest(outcome)
    if (record.lacksSession && hasExpressSession(response.req)) {
      warnings.note('TALLYGATE_WARN_SESSION_AFTER_GATE')
    }
    if (outcome === declinedOutcome) {
      // What it took after it was declined: a declined request consumes nothing.
      attempts.refund(record, 'enforced')
    } else if (response.writableFinished && (isFailure(response) ? skipFailed : skipSuccessful)) {
      attempts.refund(record, 'all')
    }
  })
  const opener = new RequestOpener(options, records)
  const functions = new FunctionLimits({ limiter, records, opener, attempts, answers })
  const onTwice = () => warnings.note('TALLYGATE_WARN_MOUNTED_TWICE')
  const middleware = new Middleware({ records, opener, attempts, answers, onTwice })
  return {
    middleware: middleware.handler,
    functions,
    limit(name) {
      functions.check('limit', name)
      return middleware.limit(name)
    },
  }
}

/**
 * By its status. A response that did not get through whole is neither a failure nor a success: who breaks
 * connections off must not get for nothing what the server did for it.
 */
function isFailure({ statusCode }: ServerResponse): boolean {
  return statusCode >= 400
}

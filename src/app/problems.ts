/*
 * How the bundled app says that something cannot be done: problem documents (RFC 9457), never cached, with a
 * sentence for whoever asked. A fault of ours is logged and says nothing.
 */
import type { NextFunction, Request, Response } from 'express'
import type { Logger } from '../core/logger.js'
import { LimitExceeded } from '../express/limit-exceeded.js'
import { quotaProblem } from '../express/problem.js'
import { UrlFailure } from '../url/failure.js'

const titles: Readonly<Record<number, string>> = {
  400: 'Bad request',
  403: 'Forbidden',
  404: 'Not found',
  500: 'Internal error',
  502: 'Bad gateway',
  504: 'Gateway timeout',
}

/** @param detail for the client to read; left out where the title says all. */
export function sendProblem(response: Response, status: number, detail?: string): void {
  const title = titles[status] ?? 'Bad request'
  send(response.status(status), { type: 'about:blank', title, status, detail })
}

/** An error that names its own status is the client's to read; any other is logged and says nothing. */
export function errorHandler(logger: Logger) {
  return (error: unknown, request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) return next(error)
    if (error instanceof LimitExceeded) return sendDeclined(response, error)
    if (error instanceof UrlFailure) return sendProblem(response, error.status, error.message)
    const status = (error as { status?: unknown } | null)?.status
    if (typeof status === 'number' && status >= 400 && status < 500) {
      return sendProblem(response, status)
    }
    logger.error({ err: error, method: request.method, path: request.path }, 'request failed')
    sendProblem(response, 500)
  }
}

/** As the gate itself answers a declined request. */
function sendDeclined(response: Response, error: LimitExceeded): void {
  const { message, decision, retryAfterMs, headers } = error
  send(response.status(429).set(headers), quotaProblem(message, decision, retryAfterMs))
}

function send(response: Response, document: object): void {
  response.set('Cache-Control', 'no-store').set('X-Content-Type-Options', 'nosniff')
  // As the gate's own: Express would add a charset, which JSON has none of, and an ETag to what is not kept.
  const body = JSON.stringify(document)
  response.setHeader('Content-Type', 'application/problem+json')
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

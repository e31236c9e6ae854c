/*
 * Bodies that admin routes take: JSON, said to be such, of 16 KiB at the most. One that the application has
 * parsed already, by middleware of its own in front, is taken as it is.
 */
import express, { type RequestHandler } from 'express'
import { Refusal } from './answers.js'

const bytesMax = 16_384

const parse = express.json({ limit: bytesMax, inflate: false })

export const jsonBody: RequestHandler = (request, response, next) => {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new Refusal(
      415,
      `the body must be JSON, with Content-Type application/json: received ${type || 'none'}`,
    )
  }
  parse(request, response, (error?: unknown) => next(inOurWords(error)))
}

function inOurWords(error: unknown): unknown {
  const { type, message } = (error ?? {}) as { type?: unknown; message?: unknown }
  switch (type) {
    case 'entity.parse.failed':
      return new Refusal(400, `the body must be JSON: ${String(message)}`)
    case 'entity.too.large':
      return new Refusal(413, `the body must be at most ${bytesMax} bytes`)
    default:
      return error
  }
}

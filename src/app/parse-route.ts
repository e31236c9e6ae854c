/*
 * `GET /api/parse?url=…`: what a page says of itself. The general rules have been asked before; the rules of
 * the function `parse-url`, if there are any, are charged for a real fetch alone. A client that goes away
 * ends no fetch: others may wait for it, and the page is kept.
 */
import type { RequestHandler } from 'express'
import type { GateParts } from '../gate/gate.js'
import { fetchMarkerHeader } from '../url/exchange.js'
import type { PageParser } from '../url/page-parser.js'
import { sendProblem } from './problems.js'

const functionName = 'parse-url'

export function parseRoute(gate: GateParts, parser: PageParser): RequestHandler {
  const isLimited = gate.limiter.hasFunction(functionName)
  return async (request, response) => {
    // One of our own fetches: a page that led back here would be fetched for ever.
    if (request.headers[fetchMarkerHeader] !== undefined) {
      return sendProblem(response, 403, 'A page cannot be fetched by way of this very route')
    }
    const options = isLimited
      ? { beforeFetch: () => gate.run(functionName, request, () => undefined) }
      : {}
    const page = await parser.parse(request.query['url'], options)
    // The answer bears the client's limits, which nobody should see again later.
    response.set('Cache-Control', 'no-store').set('X-Content-Type-Options', 'nosniff')
    response.json(page)
  }
}

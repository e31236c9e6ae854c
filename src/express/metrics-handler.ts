/*
 * `gate.metrics`: the answer to a scrape, in the text format 0.0.4 whatever the scraper accepts, never
 * cached, and only for who bears the metrics token where one is set.
 */
import { bearerCheck } from '../core/secret.js'
import type { Handler } from './http.js'

export interface MetricsText {
  readonly contentType: string
  text(): Promise<string>
}

export function createMetricsHandler(exposition: MetricsText, token: string | undefined): Handler {
  const check = token === undefined ? null : bearerCheck(token)
  return function tallygateMetrics(request, response, next) {
    response.setHeader('Cache-Control', 'no-store')
    if (check !== null && check(request.headers.authorization) !== 'right') {
      response.statusCode = 401
      response.setHeader('WWW-Authenticate', 'Bearer realm="tallygate metrics"')
      response.setHeader('Content-Type', 'text/plain; charset=utf-8')
      response.end('The metrics token is needed.\n')
      return
    }
    exposition
      .text()
      .then((text) => {
        response.setHeader('Content-Type', exposition.contentType)
        response.end(text)
      })
      .catch(next)
  }
}

/*
 * Times every request of the bundled app, by method, route template and status. No label is ever made from
 * what a client sends: methods are the known ones or `other`, routes are templates of the app's own, at most
 * a hundred of them, and all that matches none is `unmatched`. So the number of series is bounded.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.js'
import type { Handler, HttpRequest } from '../express/http.js'
import { Histogram, type Sample } from '../metrics/histogram.js'
import { metrics } from '../metrics/table.js'

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'])
const routeCountMax = 100

interface Series {
  readonly labels: { readonly method: string; readonly route: string; readonly code: string }
  readonly histogram: Histogram
}

export class RequestDuration {
  readonly #clock: Clock
  readonly #series = new Map<string, Series>()
  readonly #routes = new Set<string>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#seriesOf('GET', 'unmatched', '404')
  }

  readonly middleware: Handler = (request, response, next) => {
    const startedMs = this.#clock.monotonicMs()
    response.on('close', () => this.#observe(request, response, startedMs))
    next()
  }

  samples(): Sample[] {
    return [...this.#series.values()].flatMap(({ labels, histogram }) =>
      histogram.samples(metrics.httpRequestDuration.name, labels),
    )
  }

  #observe(request: IncomingMessage, response: ServerResponse, startedMs: number): void {
    const { method = '' } = request
    const series = this.#seriesOf(
      knownMethods.has(method) ? method : 'other',
      this.#routeOf(request),
      String(response.statusCode),
    )
    series.histogram.observe((this.#clock.monotonicMs() - startedMs) / 1000)
  }

  /** The template of the route that answered, such as /api/ping. */
  #routeOf(request: HttpRequest): string {
    const path = request.route?.path
    if (typeof path !== 'string') return 'unmatched'
    // A mount is matched in any letter case, and `baseUrl` has it as the client wrote it.
    const route = `${(request.baseUrl ?? '').toLowerCase()}${path}`
    if (this.#routes.has(route)) return route
    if (this.#routes.size >= routeCountMax) return 'other'
    this.#routes.add(route)
    return route
  }

  #seriesOf(method: string, route: string, code: string): Series {
    const name = `${method} ${code} ${route}`
    const known = this.#series.get(name)
    if (known !== undefined) return known
    const histogram = new Histogram(metrics.httpRequestDuration.buckets)
    const series = { labels: { method, route, code }, histogram }
    this.#series.set(name, series)
    return series
  }
}

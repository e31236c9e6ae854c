/*
 * A gate as the outside sees it. Apart from how it is made, so that its types name no package but Node's.
 */
import type { IncomingMessage } from 'node:http'
import type { Statistics } from '../admin/statistics.js'
import type { Handler } from '../express/http.js'

export interface Gate {
  /** Asks the general rules about every request; mount it before what it should guard. */
  readonly middleware: Handler
  /** Asks the rules of one function; for a route. @throws TallygateError where no rule has it. */
  limit(name: string): Handler
  /**
   * The same function, which asks the rules of `name` before it begins. For rules that count everybody: its
   * attempts belong to no request. Where they decline it rejects with `LimitExceeded`.
   *
   * @throws TallygateError where no rule has the function, or one of its rules asks about a request.
   */
  guard<Given extends unknown[], Result>(
    name: string,
    work: (...given: Given) => Result,
  ): (...given: Given) => Promise<Awaited<Result>>
  /**
   * Does `work` for a request if the rules of `name` allow it; else rejects with `LimitExceeded`, and the
   * request counts as declined.
   */
  run<Result>(name: string, request: IncomingMessage, work: () => Result): Promise<Awaited<Result>>
  /** Answers a scrape; mount it before `middleware`, so that scrapes are outside limits and tallies. */
  readonly metrics: Handler
  /** The admin routes; mount them at /admin, before `middleware`. 404 without an admin token. */
  readonly admin: Handler
  /** The statistics that /admin/stats answers. */
  stats(): Promise<Statistics>
  /** Writes what is counted and ends; may be called twice. Close the server first. */
  close(): Promise<void>
}

/*
 * The admin routes, all behind the admin token, whatever the method or the spelling of the path: the check
 * comes first. Without a token nothing is there. No answer may be cached. What the routes do is elsewhere;
 * here is what answers where, and what becomes of what they throw.
 */
import express, { type ErrorRequestHandler, type RequestHandler, type Router } from 'express'
import type { AddressList } from '../core/address-list.js'
import type { Logger } from '../core/logger.js'
import { answerJson, answerProblem, answerText, Refusal } from './answers.js'
import { jsonBody } from './body.js'
import { auditTrail, changeRule, forgetKey, type ChangeParts } from './change-routes.js'
import { explain } from './explain.js'
import { prefersCsv } from './csv.js'
import { history, historyCsv, type HistoryParts } from './history.js'
import { keyLists } from './keys.js'
import { patiently } from './patience.js'
import type { Statistics } from './statistics.js'
import { requireToken, type TokenOptions } from './token.js'

export interface AdminOptions extends TokenOptions, ChangeParts, HistoryParts {
  readonly token: string | undefined
  /** Clients that no rule counts. */
  readonly exempt: AddressList
  /** Of this process, or of all workers of its cluster. */
  stats(this: void): Promise<Statistics>
  readonly logger: Logger
}

export function createAdmin(options: AdminOptions): RequestHandler {
  const router = express.Router()
  router.use((_request, response, next) => {
    response.setHeader('Cache-Control', 'no-store')
    next()
  })
  if (options.token !== undefined) {
    router.use(requireToken(options.token, options))
    addReadingRoutes(router, options)
    addChangingRoutes(router, options)
  }
  router.use((_request, response) => answerProblem(response, 404))
  router.use(problemHandler(options.logger))
  return router
}

function addReadingRoutes(router: Router, options: AdminOptions): void {
  serve(router, '/stats', {
    get: async (_request, response) => answerJson(response, await options.stats()),
  })
  serve(router, '/stats/history', {
    get: async (request, response) => {
      const series = await history(request.url, options)
      response.setHeader('Vary', 'Accept')
      if (!prefersCsv(request.headers.accept)) return answerJson(response, series)
      answerText(response, 200, 'text/csv', historyCsv(series))
    },
  })
  serve(router, '/keys', {
    get: (request, response) => answerJson(response, keyLists(request.url, options)),
  })
  serve(router, '/explain', {
    post: [
      jsonBody,
      async (request, response) => {
        answerJson(response, await explain(request.body, request.app, options))
      },
    ],
  })
  serve(router, '/audit', {
    get: async (_request, response) => {
      answerJson(response, await patiently(() => auditTrail(options)))
    },
  })
}

function addChangingRoutes(router: Router, options: AdminOptions): void {
  serve(router, '/rules/:name', {
    patch: [
      jsonBody,
      async (request, response) => {
        const name = String(request.params['name'])
        answerJson(response, await changeRule(name, request.body, options))
      },
    ],
  })
  serve(router, '/rules/:name/keys/:id', {
    delete: async (request, response) => {
      await forgetKey(String(request.params['name']), String(request.params['id']), options)
      response.statusCode = 204
      response.end()
    },
  })
}

type Handlers = RequestHandler | readonly RequestHandler[]

/** One path: its methods, and for every other what would be right. */
function serve(
  router: Router,
  path: string,
  methods: Partial<Record<'get' | 'post' | 'patch' | 'delete', Handlers>>,
): void {
  const route = router.route(path)
  for (const [method, handlers] of Object.entries(methods)) {
    route[method as 'get'](...[handlers].flat())
  }
  const names = Object.keys(methods).map((method) => method.toUpperCase())
  const allowed = names.flatMap((name) => (name === 'GET' ? [name, 'HEAD'] : name)).join(', ')
  route.all((_request, response) => {
    response.setHeader('Allow', allowed)
    answerProblem(response, 405)
  })
}

/** Refusals of our own and of the parser of bodies say what is wrong; anything else is logged and says nothing. */
function problemHandler(logger: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) return next(error)
    if (error instanceof Refusal) {
      for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
      return answerProblem(response, error.status, { detail: error.message })
    }
    const { status, message } = error as { status?: unknown; message?: unknown }
    if (typeof status === 'number' && status >= 400 && status < 500) {
      return answerProblem(response, status, { detail: String(message) })
    }
    logger.error({ err: error, method: request.method, path: request.path }, 'admin request failed')
    answerProblem(response, 500)
  }
}

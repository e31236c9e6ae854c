/*
 * What rules ask of a request beside whom it is from: its method, its path as Express routes it, and how
 * the app compares paths. Express routes by the raw pathname, with letter case and a slash at the end
 * where its settings say so; whatever request it takes to a route must meet the rules of that route here.
 *
 * Cost: for nearly all targets one search for the query; for odd ones, absolute or with a fragment, what
 * Express itself does. Nothing where no rule asks.
 */
import { parse } from 'node:url'
import type { Facts } from '../core/facts.js'
import type { HttpRequest } from './http.js'

const express4Router = '_router'

/** An app of Express 4 or 5, as far as it says how it routes. */
interface RoutingApp {
  readonly parent?: RoutingApp | undefined
  /** Express 4. */
  readonly [express4Router]?: RouterSettings | undefined
  /** Express 5; in 4 it throws when it is read. */
  readonly router?: RouterSettings | undefined
}

interface RouterSettings {
  readonly caseSensitive?: boolean | undefined
  readonly strict?: boolean | undefined
}

/** How an app compares paths. */
interface Routing {
  readonly isPathCaseSensitive: boolean
  readonly isPathStrict: boolean
  /** Express 4 passes over one of two slashes after the path of a mount. */
  readonly mergesSlashes: boolean
}

const express5: Routing = {
  isPathCaseSensitive: false,
  isPathStrict: false,
  mergesSlashes: false,
}

export class RequestFacts {
  /** Settings are read once an app: its router was made with them before the first request. */
  readonly #routingOf = new WeakMap<object, Routing>()

  /** @param isRead whether some rule asks for the method, the path or the request. */
  of(request: HttpRequest, ip: string, session: string | undefined, isRead: boolean): Facts {
    const routing = isRead ? this.#routing(request) : express5
    return {
      ip,
      session,
      headers: request.headers,
      method: request.method,
      path: isRead ? routedPath(request, routing.mergesSlashes) : undefined,
      isPathCaseSensitive: routing.isPathCaseSensitive,
      isPathStrict: routing.isPathStrict,
      isPreflight: isPreflight(request),
      request,
      keys: undefined,
    }
  }

  #routing(request: HttpRequest): Routing {
    const { app } = request as { app?: RoutingApp }
    if (app === undefined) return express5
    const known = this.#routingOf.get(app)
    if (known !== undefined) return known
    const routing = routingOf(app)
    this.#routingOf.set(app, routing)
    return routing
  }
}

/** What a browser asks before it sends a request to another origin. */
function isPreflight({ method, headers }: HttpRequest): boolean {
  if (method !== 'OPTIONS') return false
  return headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

/** An app that is mounted in another is reached through both: what either takes for the same is the same. */
function routingOf(app: RoutingApp): Routing {
  let isPathCaseSensitive = true
  let isPathStrict = true
  let mergesSlashes = false
  for (let each: RoutingApp | undefined = app; each !== undefined; each = each.parent) {
    const isExpress4 = each[express4Router] !== undefined
    const settings = isExpress4 ? each[express4Router] : each.router
    isPathCaseSensitive &&= settings?.caseSensitive === true
    isPathStrict &&= settings?.strict === true
    mergesSlashes ||= isExpress4
  }
  return { isPathCaseSensitive, isPathStrict, mergesSlashes }
}

/**
 * The path that routes are looked up by, from the root of the app: the original one, unless something
 * before has rewritten the request's address.
 */
function routedPath(request: HttpRequest, mergesSlashes: boolean): string | undefined {
  const { url = '', originalUrl = url, baseUrl = '' } = request
  let path = pathnameOf(url)
  if (baseUrl !== '' && path !== undefined) {
    path = baseUrl + path
    const original = pathnameOf(originalUrl)
    // A router is given a slash where the address ends with its mount.
    if (original !== undefined && path === `${original}/`) path = original
  }
  return mergesSlashes ? path?.replaceAll(/\/{2,}/g, '/') : path
}

/** What a plain target has not: Express then parses it as an address. */
const odd = /[\s#\u00A0\uFEFF]/

/** As Express finds it, by the package parseurl; undefined where there is none, and nothing is routed. */
function pathnameOf(target: string): string | undefined {
  if (!target.startsWith('/') || odd.test(target)) return parsedPathname(target)
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

function parsedPathname(target: string): string | undefined {
  try {
    return parse(target).pathname ?? undefined
  } catch {
    // Express answers 404 to what cannot be parsed, without asking a handler.
    return undefined
  }
}

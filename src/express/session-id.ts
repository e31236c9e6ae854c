/*
 * Which session a request belongs to: express-session's, or what the option `session` says of other
 * libraries. Only an established session counts, so that a client that drops or invents its cookie gains
 * nothing. A session is only ever looked at: it is not made, saved, touched or waited for here.
 *
 * Cost: one search in the cookie header; for odd spellings of it, decoding once.
 */
import { isThere } from '../core/key-parts.js'
import { refusePromise } from '../core/rule-functions.js'
import type { HttpRequest } from './http.js'

/**
 * Says the id of a request's established session; undefined, null and the empty text say that there is
 * none. A method's type, because TypeScript lets its parameter be the more special one of Express's own.
 */
export type SessionOf = { say(request: HttpRequest): string | null | undefined }['say']

/** All sessions that are named by what is no text: no id is empty. */
const oddId = ''

/**
 * The option `session` made ready. What a client sends may well decide what it gives, an object out of a
 * query for instance. So what is no text fails no request, and frees none from a rule: all such requests
 * share one session.
 *
 * @returns a function that throws where `session` does, and a TypeError where it gives a promise.
 */
export function sessionReader(session: SessionOf): (request: HttpRequest) => string | undefined {
  return (request) => {
    const id: unknown = session(request)
    if (typeof id === 'string') return id === '' ? undefined : id
    if (!isThere(id) || id === false) return undefined
    if (typeof id === 'number' || typeof id === 'bigint') return String(id)
    refusePromise(id, 'the session of a request')
    return oddId
  }
}

/**
 * The id of an established session of express-session: one that the request's own cookie names. A session
 * that was made for this very request does not count. express-session verifies the cookie's signature and
 * makes a new random id where it is wrong, so an id that stands in the cookie header was given out before.
 *
 * `sessionID` is read before `session`: where another library answers to `session`, asking it may begin a session.
 */
export function expressSessionId(request: HttpRequest): string | undefined {
  const { cookie } = request.headers
  // Asked before all: what a request has not got takes Express long to find missing.
  if (cookie === undefined) return undefined
  const { sessionID } = request
  if (typeof sessionID !== 'string' || sessionID === '') return undefined
  if (!isThere(request.session)) return undefined
  if (cookie.includes(`=s%3A${sessionID}.`)) return sessionID
  return isNamed(sessionID, cookie) || isNamed(sessionID, decoded(cookie)) ? sessionID : undefined
}

/** Whether a cookie's value begins with that id: ids may be short, and stand by chance in other values. */
function isNamed(id: string, cookie: string): boolean {
  const named = `s:${id}.`
  for (let at = cookie.indexOf(named); at !== -1; at = cookie.indexOf(named, at + 1)) {
    let before = at - 1
    if (cookie[before] === '"') before--
    while (cookie[before] === ' ' || cookie[before] === '\t') before--
    if (cookie[before] === '=') return true
  }
  return false
}

/**
 * A cookie header as express-session reads it. A client may write any character of its own cookie as an
 * escape; without this it would keep its session and lose the rule that counts it.
 */
function decoded(cookie: string): string {
  return cookie.replaceAll(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      // Not UTF-8: express-session then takes the value as it stands, and so does this comparison.
      return escapes
    }
  })
}

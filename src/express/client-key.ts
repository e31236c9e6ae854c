/*
 * Who sent a request. The address is what Express makes of it under `trust proxy`; what a proxy sent that
 * is no address counts as the socket's; without any address all such requests share one key.
 */
import { canonicalAddress } from '../core/address.js'
import type { HttpRequest } from './http.js'

/** The shared key of requests without an address, as over a Unix socket. No address is spelt like it. */
export const unknownAddress = 'unknown'

export function clientAddressOf(request: HttpRequest): string {
  return canonicalOf(request.ip) ?? socketAddressOf(request)
}

export function socketAddressOf({ socket }: HttpRequest): string {
  return canonicalOf(socket.remoteAddress) ?? unknownAddress
}

const mappedPrefix = '::ffff:'

/** A server that listens on both families spells every IPv4 client this way; the rest takes its time. */
function canonicalOf(text: unknown): string | null {
  if (typeof text !== 'string') return null
  if (text.startsWith(mappedPrefix)) {
    const address = text.slice(mappedPrefix.length)
    if (!address.includes(':') && canonicalAddress(address) === address) return address
  }
  return canonicalAddress(text)
}

/** Whether express-session has run for the request: it then has an id, if only a new one. */
export function hasExpressSession({ sessionID }: HttpRequest): boolean {
  return typeof sessionID === 'string'
}

/**
 * The id of an established session of express-session: one that the request's own cookie names. A session
 * that was made for this very request does not count, so a client that drops or invents its cookie gains
 * nothing. express-session verifies the cookie's signature and makes a new random id where it is wrong, so
 * an id that stands in the cookie header was given out before.
 */
export function expressSessionId(request: HttpRequest): string | undefined {
  const { cookie } = request.headers
  // Asked first: what Express has not got on a request takes long to be found missing.
  if (cookie === undefined) return undefined
  const { sessionID, session } = request
  if (typeof sessionID !== 'string' || sessionID === '') return undefined
  if (session === undefined || session === null) return undefined
  const named = `${sessionID}.`
  return cookie.includes(named) || decoded(cookie).includes(named) ? sessionID : undefined
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
      // Not UTF-8: express-session then takes the value as it stands, and so does the first comparison.
      return escapes
    }
  })
}

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

/*
 * From a name to addresses. By default DNS is asked directly, not through the system's getaddrinfo: that
 * has two threads for the whole process, which a stranger with slow name servers would keep busy, and it
 * cannot be cancelled. The price is that /etc/hosts is not read. Whoever needs that hands in another `resolve`.
 *
 * What a resolver answers is checked to be addresses, and not yet whether they may be reached.
 */
import { Resolver } from 'node:dns/promises'
import { UrlFailure } from './failure.js'
import { readAddress } from './reach.js'

/** The addresses of a host; `signal` fires when nobody waits for them any more. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>

/** Two tries within the usual deadline, the second taking up to twice as long. */
const tryMs = 1_000

/** @param servers such as `127.0.0.1:5353`; the system's by default. */
export function dnsResolve(servers?: readonly string[]): Resolve {
  return async (host, signal) => {
    const resolver = new Resolver({ timeout: tryMs, tries: 2 })
    if (servers !== undefined) resolver.setServers(servers)
    const cancel = () => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    signal.removeEventListener('abort', cancel)
    // A family that fails is left out: nobody connects to what was not answered.
    const addresses = answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    const failed = answers.find((one) => one.status === 'rejected')
    if (addresses.length === 0 && failed !== undefined) throw failed.reason
    return addresses
  }
}

/** In canonical text, at least one; anything else is a failure of DNS. */
export async function addressesOf(
  host: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<string[]> {
  let answers: unknown
  try {
    answers = await resolve(host, signal)
  } catch (error) {
    throw unresolved(error)
  }
  if (!Array.isArray(answers) || answers.length === 0) throw unresolved()
  return answers.map((answer: unknown) => {
    const address = typeof answer === 'string' ? readAddress(answer) : null
    if (address === null) throw unresolved()
    return address
  })
}

function unresolved(cause?: unknown): UrlFailure {
  return new UrlFailure('dns', 'The name of the host was not found', { cause })
}

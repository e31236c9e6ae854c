/*
 * Whom a gate takes a request to be from, and what it says of that: it counts what kind of address it was,
 * and notes what makes addresses wrong or forged: a forwarding header that nobody reads, one that anybody
 * may write, no address at all. Once a request, so there are look-ups and additions here, nothing more.
 */
import { addressKindOf, missingKind } from '../core/address-kind.js'
import type { Warnings } from '../core/warnings.js'
import { clientAddressOf, socketAddressOf, unknownAddress } from './client-key.js'
import type { HttpRequest } from './http.js'

export interface ClientObserver {
  /** @param kind index into `addressKinds`. */
  identified(kind: number): void
  /** A forwarding header came while nothing is trusted to send one. */
  untrustedForward(): void
}

export class ClientIdentity {
  readonly #observer: ClientObserver
  readonly #warnings: Warnings

  constructor(observer: ClientObserver, warnings: Warnings) {
    this.#observer = observer
    this.#warnings = warnings
  }

  /** The client's address in its canonical text; all requests without one share a text. */
  addressOf(request: HttpRequest): string {
    const trust = trustOf(request)
    const trusts = isTrusting(trust)
    // Express would come to the socket's address too, in eight times the time.
    const isSocket = !trusts && request.app !== undefined && !Object.hasOwn(request, 'ip')
    const address = isSocket ? socketAddressOf(request) : clientAddressOf(request)
    const isMissing = address === unknownAddress
    this.#observer.identified(isMissing ? missingKind : addressKindOf(address))
    // A connection that has closed meanwhile has lost its address: nobody set that up.
    if (isMissing && !request.socket.destroyed) this.#warnings.note('TALLYGATE_WARN_NO_ADDRESS')
    if (trust === true) this.#warnings.note('TALLYGATE_WARN_TRUST_PROXY_TRUE')
    else if (!trusts && hasForwardingHeader(request)) this.#noteForward(request, isSocket)
    return address
  }

  #noteForward({ ip, socket }: HttpRequest, isSocket: boolean): void {
    // Something else than Express has read the header and set the address.
    if (!isSocket && ip !== undefined && ip !== socket.remoteAddress) return
    this.#observer.untrustedForward()
    this.#warnings.note('TALLYGATE_WARN_UNTRUSTED_FORWARD')
  }
}

/** Express's setting as it was written; undefined where there is no Express. */
function trustOf({ app }: HttpRequest): unknown {
  return app?.settings?.['trust proxy']
}

/** No hops and an empty list trust nobody. */
function isTrusting(trust: unknown): boolean {
  return Array.isArray(trust) ? trust.length > 0 : Boolean(trust)
}

function hasForwardingHeader({ headers }: HttpRequest): boolean {
  return (
    headers['x-forwarded-for'] !== undefined ||
    headers.forwarded !== undefined ||
    headers['x-real-ip'] !== undefined
  )
}

/*
 * Where a fetch may lead: to public addresses, on ports 80 and 443, and wherever the owner's allowances let
 * it. An allowance is a range of addresses with one port, and nothing is allowed by default. Both questions
 * are asked here and nowhere else: what the text of a URL tells before anything is looked up, and whether
 * one address may be connected to.
 */
import { isIP } from 'node:net'
import { AddressList } from '../core/address-list.js'
import { canonicalAddress } from '../core/address.js'
import { shown, TallygateError } from '../core/errors.js'
import { UrlFailure } from './failure.js'
import { isPublicAddress } from './public-address.js'

export class Reach {
  readonly #allowed = new Map<number, AddressList>()

  /** @param allow such as `127.0.0.1/32:8080` or `[fd00::/8]:8080`; without a length, one address. */
  constructor(allow: readonly string[] = []) {
    for (const entry of allow) this.#allow(entry)
  }

  /** Whether a connection may be made; what is no address is permitted nowhere. */
  permits(text: string, port: number): boolean {
    const address = readAddress(text)
    if (address === null) return false
    if (this.#allowed.get(port)?.contains(address) === true) return true
    return isWebPort(port) && isPublicAddress(address)
  }

  /** Throws what the text of a URL already tells; a name whose addresses must be asked for passes. */
  refuseByText(url: URL): void {
    const port = portOf(url)
    const literal = literalOf(url)
    if (literal === null) {
      if (isWebPort(port) || this.#allowed.has(port)) return
      throw new UrlFailure('blocked', `Only ports 80 and 443 may be fetched: received ${port}`)
    }
    if (!this.permits(literal, port)) throw blocked()
  }

  #allow(entry: string): void {
    const { address = '', digits = '' } = allowance.exec(entry)?.groups ?? {}
    const port = Number(digits)
    const range = address.replaceAll(/[[\]]/g, '')
    const list = this.#allowed.get(port) ?? new AddressList()
    if (port < 1 || port > 65_535 || !list.add(range)) {
      throw new TallygateError(
        'TALLYGATE_OPTION',
        `Cannot create a URL parser: an entry of allow must be addresses and a port, such as ` +
          `127.0.0.1/32:8080 or [fd00::/8]:8080: received ${shown(entry)}`,
      )
    }
    this.#allowed.set(port, list)
  }
}

/** IPv6 in brackets, around the range or around the address alone: else its port cannot be told. */
const allowance =
  /^(?<address>[\d.]+(?:\/\d+)?|\[[\da-f.]*:[\da-f:.]*(?:\/\d+\]|\](?:\/\d+)?)):(?<digits>\d{1,5})$/i

/** Says nothing of where it leads: whoever asks could map the network by it. */
export function blocked(): UrlFailure {
  return new UrlFailure('blocked', 'The address leads where nothing may be fetched from')
}

export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port)
  return protocol === 'https:' ? 443 : 80
}

/** The host without the brackets of an IPv6 address. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

/**
 * The address that the URL itself holds; null where it holds a name. Names of this machine are loopback
 * whatever a resolver says, which is never asked for them: they are as good as 127.0.0.1, which an
 * allowance may let through.
 */
export function literalOf(url: URL): string | null {
  const host = hostOf(url)
  if (/(?:^|\.)localhost\.?$/.test(host)) return '127.0.0.1'
  return readAddress(host)
}

/** One spelling for one address, an IPv4-mapped one being the IPv4 address; null for anything else. */
export function readAddress(text: string): string | null {
  // A zone names an interface of this machine, where no public address lies.
  return isIP(text) === 0 || text.includes('%') ? null : canonicalAddress(text)
}

function isWebPort(port: number): boolean {
  return port === 80 || port === 443
}

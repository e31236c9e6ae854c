/*
 * A list of addresses and ranges, compiled once, that says whether an address lies in one of them. Ranges
 * are compared by their bits, never by spelling: an IPv4-mapped range is the IPv4 range, and any other
 * IPv6 range holds no IPv4 address. An IPv4 address costs one comparison an entry and makes nothing; an
 * IPv6 one is parsed, where the list has such ranges at all.
 */
import ipaddr from 'ipaddr.js'
import { canonicalAddress, parseIPv6, type IPv6 } from './address.js'
import { ipv4Bits } from './ipv4-bits.js'

export class AddressList {
  readonly #networks: number[] = []
  readonly #masks: number[] = []
  readonly #ipv6Ranges: [IPv6, number][] = []

  get isEmpty(): boolean {
    return this.#networks.length === 0 && this.#ipv6Ranges.length === 0
  }

  /** @returns whether `text` is an address or a range; one that is not changes nothing. */
  add(text: string): boolean {
    const [, address = '', digits] = /^([\d.]+|[\da-f:.]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? []
    const isIPv6 = address.includes(':')
    const length = Number(digits ?? (isIPv6 ? 128 : 32))
    if (length > (isIPv6 ? 128 : 32)) return false
    if (!isIPv6) return canonicalAddress(address) !== null && this.#addIPv4(address, length)
    const parsed = parseIPv6(address)
    if (parsed === null) return false
    if (!parsed.isIPv4MappedAddress()) return this.#ipv6Ranges.push([parsed, length]) > 0
    // Shorter than its prefix it would hold every IPv4 address, and much that is none.
    return length >= 96 && this.#addIPv4(parsed.toIPv4Address().toString(), length - 96)
  }

  /** @param address canonical text, as `canonicalAddress` makes it; what is no address is in no list. */
  contains(address: string): boolean {
    const bits = ipv4Bits(address)
    if (bits >= 0) {
      for (let index = 0; index < this.#networks.length; index++) {
        if ((bits & (this.#masks[index] as number)) === this.#networks[index]) return true
      }
      return false
    }
    if (this.#ipv6Ranges.length === 0 || !address.includes(':')) return false
    const parsed = ipaddr.IPv6.parse(address)
    return this.#ipv6Ranges.some(([network, length]) => parsed.match(network, length))
  }

  #addIPv4(address: string, length: number): boolean {
    // A shift by 32 would be one by 0.
    const mask = length === 0 ? 0 : -1 << (32 - length)
    this.#masks.push(mask)
    return this.#networks.push(ipv4Bits(address) & mask) > 0
  }
}

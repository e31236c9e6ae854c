/*
 * Which addresses belong to the public network, and so may be reached on behalf of strangers. Refused is
 * whatever is not known to be public: ipaddr.js names the special ranges, and of IPv6 only 2000::/3 is in
 * use at all, which leaves out loopback, private, link-local, multicast and every range still to be given.
 *
 * IPv6 addresses that carry an IPv4 one (compatible, translated, 6to4, Teredo, ISATAP, the local NAT64
 * range 64:ff9b:1::/48) are refused, whatever they carry: no public page has one, and a tunnel or a
 * translator on the way would lead inside. Two are judged by the IPv4 address within: IPv4-mapped ones,
 * which arrive here as IPv4 because that is what a connection goes to, and 64:ff9b::/96, which is how a
 * host without IPv4 reaches public IPv4 pages. A NAT64 range of an operator's own cannot be told by its bits.
 */
import ipaddr from 'ipaddr.js'
import type { IPv6 } from '../core/address.js'

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/** In the public range, but answered by the host machine of Azure, with the secrets of its guest. */
const azureHost = '168.63.129.16'

/** @param address canonical text, as `canonicalAddress` makes it. */
export function isPublicAddress(address: string): boolean {
  return address.includes(':') ? isPublicIPv6(ipaddr.IPv6.parse(address)) : isPublicIPv4(address)
}

function isPublicIPv4(address: string): boolean {
  return ipaddr.IPv4.parse(address).range() === 'unicast' && address !== azureHost
}

function isPublicIPv6(address: IPv6): boolean {
  if (address.match(nat64)) return isPublicIPv4(address.toByteArray().slice(12).join('.'))
  return address.match(globalUnicast) && address.range() === 'unicast' && !isIsatap(address)
}

/** The interface id 0000:5efe and an IPv4 address, in any network; two bits of the first group may be set. */
function isIsatap({ parts }: IPv6): boolean {
  return ((parts[4] ?? 0) & 0xfcff) === 0 && parts[5] === 0x5efe
}

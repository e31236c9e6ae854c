/*
 * Where a client address lies: in the public network, in one that is not routed there, on this machine, or
 * nowhere. Many private or loopback clients mean that a proxy is counted in place of those behind it.
 * Documentation ranges are public: they stand for such addresses. Judged from the canonical text alone,
 * without parsing, because it is done for every request.
 */
import { ipv4Bits } from './ipv4-bits.js'

/** A closed set: metrics have one slot for each, in this order. */
export const addressKinds = ['public', 'private', 'loopback', 'missing'] as const

/** Indices into `addressKinds`. */
const publicKind = 0
const privateKind = 1
const loopbackKind = 2
export const missingKind = 3

/** @param address canonical text, as `canonicalAddress` makes it. */
export function addressKindOf(address: string): number {
  const bits = ipv4Bits(address)
  return bits >= 0 ? ipv4Kind(bits) : ipv6Kind(address)
}

function ipv4Kind(bits: number): number {
  switch (bits >>> 24) {
    case 127:
      return loopbackKind
    case 0:
    case 10:
      return privateKind
    case 100:
      return (bits & 0x00c0_0000) === 0x0040_0000 ? privateKind : publicKind // 100.64.0.0/10
    case 169:
      return (bits & 0x00ff_0000) === 0x00fe_0000 ? privateKind : publicKind // 169.254.0.0/16
    case 172:
      return (bits & 0x00f0_0000) === 0x0010_0000 ? privateKind : publicKind // 172.16.0.0/12
    case 192:
      return (bits & 0x00ff_0000) === 0x00a8_0000 ? privateKind : publicKind // 192.168.0.0/16
    default:
      return publicKind
  }
}

/** Unique local (fc00::/7), link-local (fe80::/10) and the old site-local (fec0::/10). */
function ipv6Kind(address: string): number {
  if (address === '::1') return loopbackKind
  if (address === '::') return privateKind
  // The ranges begin with a group of four digits; a shorter group has zeros in front.
  if (address.indexOf(':') !== 4 || address.charAt(0) !== 'f') return publicKind
  const second = address.charAt(1)
  if (second === 'c' || second === 'd') return privateKind
  return second === 'e' && address.charAt(2) >= '8' ? privateKind : publicKind
}

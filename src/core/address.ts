/*
 * Client addresses: one spelling for one client. IPv4-mapped IPv6 is the IPv4 address, judged by its bits;
 * brackets, a port and a zone are dropped; other IPv6 is cut to a prefix, because one subscriber owns at
 * least a /64. Translated addresses (NAT64) keep all bits, because there each is a client of its own.
 *
 * Plain IPv4, nearly all of what is seen, takes one regular expression; the rest is ipaddr.js.
 */
import ipaddr from 'ipaddr.js'

const plainIPv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/

const nat64Ranges = ['64:ff9b::/96', '64:ff9b:1::/48'].map((range) => ipaddr.IPv6.parseCIDR(range))

/**
 * The canonical text of an address, or null where `text` holds none.
 *
 * @example canonicalAddress('[::FFFF:102:304]:8080') // '1.2.3.4'
 */
export function canonicalAddress(text: string): string | null {
  if (plainIPv4.test(text)) return text
  const bare = withoutDecoration(text)
  if (plainIPv4.test(bare)) return bare
  const address = parseIPv6(bare)
  if (address === null) return null
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toString()
}

/**
 * The part of an address that makes one client.
 *
 * @param text as given by a socket or a proxy; what is no address is its own key.
 * @param ipv6Prefix bits of an IPv6 address that are kept, 1 to 128.
 */
export function clientAddress(text: string, ipv6Prefix: number): string {
  // Without a colon it is an IPv4 address in its one spelling, or no address at all.
  if (!text.includes(':')) return text
  const canonical = canonicalAddress(text)
  if (canonical === null) return text
  if (ipv6Prefix === 128 || !canonical.includes(':')) return canonical
  const address = ipaddr.IPv6.parse(canonical)
  if (nat64Ranges.some((range) => address.match(range))) return canonical
  return ipaddr.IPv6.networkAddressFromCIDR(`${canonical}/${ipv6Prefix}`).toString()
}

/** An IPv6 address, or null. ipaddr.js reads `::1.2.3.4` as an IPv4-mapped address, which it is not. */
export function parseIPv6(text: string): IPv6 | null {
  const afterColons = text.startsWith('::') ? text.slice(2) : ''
  const spelt = plainIPv4.test(afterColons) ? `0:0:0:0:0:0:${hexPair(afterColons)}` : text
  if (/^::[^:]*\./.test(spelt) || !ipaddr.IPv6.isValid(spelt)) return null
  return ipaddr.IPv6.parse(spelt)
}

export type IPv6 = ReturnType<typeof ipaddr.IPv6.parse>

/** The last two groups of an IPv6 address that ends in an IPv4 one. */
function hexPair(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/** `[address]:port`, `address:port` of IPv4, and `address%zone`, without what is not the address. */
function withoutDecoration(text: string): string {
  const trimmed = text.trim()
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1]
  const address = bracketed ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed
  const zone = address.indexOf('%')
  return zone === -1 ? address : address.slice(0, zone)
}

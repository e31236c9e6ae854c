/*
 * Where an address lies, by its canonical text; for IPv6 the library that knows the registry is asked too.
 */
import * as fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, it } from 'vitest'
import { addressKindOf, addressKinds } from '../../src/core/address-kind.js'
import { canonicalAddress } from '../../src/core/address.js'
import { ipv4Bits } from '../../src/core/ipv4-bits.js'

const kindOf = (address: string) => addressKinds[addressKindOf(address)]

describe('an address', () => {
  it.each([
    ['8.8.8.8', 'public'],
    ['203.0.113.7', 'public'],
    ['255.255.255.255', 'public'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.255', 'loopback'],
    ['126.255.255.255', 'public'],
    ['0.0.0.0', 'private'],
    ['10.255.0.1', 'private'],
    ['11.0.0.1', 'public'],
    ['100.63.255.255', 'public'],
    ['100.64.0.0', 'private'],
    ['100.127.255.255', 'private'],
    ['100.128.0.0', 'public'],
    ['169.253.1.1', 'public'],
    ['169.254.1.1', 'private'],
    ['172.15.255.255', 'public'],
    ['172.16.0.0', 'private'],
    ['172.31.255.255', 'private'],
    ['172.32.0.0', 'public'],
    ['192.167.0.1', 'public'],
    ['192.168.0.1', 'private'],
    ['::', 'private'],
    ['::1', 'loopback'],
    ['::2', 'public'],
    ['2001:db8::1', 'public'],
    ['64:ff9b::c633:6401', 'public'],
    ['fbff::1', 'public'],
    ['fc00::1', 'private'],
    ['fdff::1', 'private'],
    ['fd::1', 'public'],
    ['fe7f::1', 'public'],
    ['fe80::1', 'private'],
    ['feff::1', 'private'],
    ['fe8::1', 'public'],
    ['ff02::1', 'public'],
  ])('%s is %s', (address, kind) => {
    expect(kindOf(address)).toBe(kind)
  })

  it('of IPv6 is private exactly where ipaddr.js finds such a range', () => {
    const privateRanges = new Set([
      'uniqueLocal',
      'linkLocal',
      'unspecified',
      'deprecatedSiteLocal',
    ])
    const near = fc.constantFrom('fc', 'fd', 'fe8', 'fe', 'fec', 'f').map((start) => `${start}::1`)
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), near), (text) => {
        const address = String(canonicalAddress(text))
        if (!address.includes(':')) return
        const range = ipaddr.IPv6.parse(address).range()
        const expected = privateRanges.has(range)
        expect([address, kindOf(address) === 'private']).toEqual([address, expected])
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the bits of an IPv4 address', () => {
  it.each([
    ['0.0.0.0', 0],
    ['1.2.3.4', 0x01020304],
    ['255.255.255.255', 0xffffffff],
  ])('%s', (text, bits) => {
    expect(ipv4Bits(text)).toBe(bits)
  })

  it.each(['', 'unknown', '::1', '1.2.3', '1.2.3.4.5'])('%j has none', (text) => {
    expect(ipv4Bits(text)).toBeNaN()
  })
})

/*
 * One spelling for one client, and one key for what one subscriber owns. The cases are asked of the
 * functions and of a limiter that counts addresses.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalAddress, clientAddress } from '../../src/core/address.js'
import { benchOf, burst, ipRule, passedOf } from '../support/units/limits.js'

const byIp = (limit: number, ipv6Prefix?: number) => benchOf(ipRule({ limit, ipv6Prefix })).limiter

describe('canonicalAddress', () => {
  it.each([
    ['1.2.3.4', '1.2.3.4'],
    ['1.2.3.4:8080', '1.2.3.4'],
    [' 1.2.3.4 ', '1.2.3.4'],
    ['[1.2.3.4]:80', '1.2.3.4'],
    ['255.255.255.255', '255.255.255.255'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    // Not mapped, whatever its spelling.
    ['::1.2.3.4', '::102:304'],
    ['0::1.2.3.4', '::102:304'],
    ['::102:304', '::102:304'],
    ['::FFFF:102:304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:0102:0304', '1.2.3.4'],
    ['[::ffff:1.2.3.4]:8080', '1.2.3.4'],
    ['[::FFFF:102:304%eth0]:8080', '1.2.3.4'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::1', '::1'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
  ])('reads %s as %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical)
  })

  it.each([
    '',
    'unknown',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '01.2.3.4',
    '0x1.2.3.4',
    '2130706433',
    '1.2.3.4.',
    '.1.2.3.4',
    '1.2.3.4, 5.6.7.8',
    'a,b,,',
    '_hidden',
    '2001:db8::1::2',
    '12345::',
    ':::',
    'A'.repeat(10_000),
  ])('finds no address in %j', (text) => {
    expect(canonicalAddress(text)).toBeNull()
  })

  it('leaves what it has made canonical as it is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const canonical = canonicalAddress(text)
        expect(canonical).not.toBeNull()
        expect(canonicalAddress(String(canonical))).toBe(canonical)
      }),
    )
  })
})

describe('clientAddress', () => {
  it('IP-01: takes an IPv4-mapped address as the IPv4 address, by its bits and not its spelling', () => {
    const keys = ['::ffff:1.2.3.4', '::FFFF:102:304', '1.2.3.4'].map((ip) => clientAddress(ip, 64))
    expect(new Set(keys)).toEqual(new Set(['1.2.3.4']))
    const embedding = ['2001:db8:1234:5678::1.2.3.4', '2001:db8:1234:5678::102:304']
    expect(new Set(embedding.map((ip) => clientAddress(ip, 64)))).toEqual(
      new Set(['2001:db8:1234:5678::']),
    )
    expect(clientAddress('64:ff9b::1.2.3.4', 64)).not.toBe('1.2.3.4')
  })

  it.each([
    [48, '2001:db8:1::'],
    [56, '2001:db8:1:ab00::'],
    [60, '2001:db8:1:abc0::'],
    [64, '2001:db8:1:abcd::'],
    [128, '2001:db8:1:abcd:1:2:3:4'],
    [1, '::'],
  ])('keeps %i bits of an IPv6 address', (bits, key) => {
    expect(clientAddress('2001:db8:1:abcd:1:2:3:4', bits)).toBe(key)
  })

  it('keeps all bits of both NAT64 ranges, and of no address beside them', () => {
    expect(clientAddress('64:ff9b::c633:6401', 64)).toBe('64:ff9b::c633:6401')
    expect(clientAddress('64:ff9b:1:2:3:4:5:6', 64)).toBe('64:ff9b:1:2:3:4:5:6')
    expect(clientAddress('64:ff9b:2:2:3:4:5:6', 64)).toBe('64:ff9b:2:2::')
    expect(clientAddress('64:ff9b:0:0:1::6', 64)).toBe('64:ff9b::')
  })

  it('takes what is no address as a key of its own', () => {
    expect(clientAddress('unknown', 64)).toBe('unknown')
  })
})

describe('a rule keyed by address', () => {
  it('IP-01: counts all spellings of one client together', () => {
    const limiter = byIp(3)
    const spellings = ['::ffff:1.2.3.4', '::FFFF:102:304', '1.2.3.4', '1.2.3.4:99']
    const passed = spellings.map((ip) => limiter.decide({ ip }).allowed)
    expect(passed).toEqual([true, true, true, false])
    expect(limiter.decide({ ip: '64:ff9b::1.2.3.4' }).allowed).toBe(true)
  })

  it('IP-02: does not cut IPv4-mapped addresses to the IPv6 prefix', () => {
    const limiter = byIp(2)
    expect(passedOf(burst(limiter, 3, { ip: '::ffff:198.51.100.1' }))).toBe(2)
    expect(passedOf(burst(limiter, 2, { ip: '::ffff:198.51.100.2' }))).toBe(2)
  })

  it('IP-04: counts a /64 as one client, or a /56 where the rule says so', () => {
    for (const [prefix, neighbourPasses] of [
      [undefined, true],
      [64, true],
      [56, false],
    ] as const) {
      const limiter = byIp(5, prefix)
      const own = Array.from({ length: 20 }, (_, n) => `2001:db8:1:2::${(n + 1).toString(16)}`)
      expect(own.filter((ip) => limiter.decide({ ip }).allowed).length).toBe(5)
      expect(limiter.decide({ ip: '2001:db8:1:3::1' }).allowed).toBe(neighbourPasses)
    }
  })

  it('IP-12: keeps clients behind NAT64 apart', () => {
    const limiter = byIp(2)
    expect(passedOf(burst(limiter, 3, { ip: '64:ff9b::c633:6401' }))).toBe(2)
    expect(passedOf(burst(limiter, 3, { ip: '64:ff9b::c633:6402' }))).toBe(2)
  })
})

/*
 * Which addresses lie in a list: edges of ranges by hand, and Node's own BlockList as a second opinion.
 */
import { BlockList } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AddressList } from '../../src/core/address-list.js'
import { canonicalAddress } from '../../src/core/address.js'

function listOf(...texts: string[]): AddressList {
  const list = new AddressList()
  for (const text of texts) expect([text, list.add(text)]).toEqual([text, true])
  return list
}

describe('a list of addresses', () => {
  it.each([
    ['192.0.2.7', ['192.0.2.7'], ['192.0.2.6', '192.0.2.8', '::ffff']],
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255'], ['9.255.255.255', '11.0.0.0', '::1']],
    ['10.1.2.3/8', ['10.200.0.1'], ['11.1.2.3']],
    ['128.0.0.0/1', ['128.0.0.0', '255.255.255.255'], ['127.255.255.255']],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::', '2001:db8::1']],
    ['::ffff:10.0.0.0/104', ['10.0.0.1', '10.255.255.255'], ['11.0.0.1', '::1']],
    ['::FFFF:102:304', ['1.2.3.4'], ['1.2.3.5']],
    ['2001:db8::/32', ['2001:db8::1', '2001:db8:ffff::'], ['2001:db9::', '1.2.3.4']],
    ['2001:DB8::7', ['2001:db8::7'], ['2001:db8::8']],
    ['::/0', ['::1', 'fe80::1'], ['1.2.3.4']],
  ])('%s holds %j and not %j', (range, inside, outside) => {
    const list = listOf(range)
    expect(inside.filter((address) => !list.contains(address))).toEqual([])
    expect(outside.filter((address) => list.contains(address))).toEqual([])
  })

  it.each([
    '',
    ' 10.0.0.1',
    'localhost',
    '*',
    '10',
    '10/8',
    '10.0.0',
    '10.0.0.1:80',
    '10.0.0.256',
    '010.0.0.1',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8.5',
    '10.0.0.0/255.0.0.0',
    '10.0.0.1-10.0.0.9',
    '2001:db8::/129',
    '[::1]',
    'fe80::1%eth0',
    '::ffff:10.0.0.0/8',
    '::1::',
    'A'.repeat(100_000),
  ])('%j is no address and no range, and adds nothing', (text) => {
    const list = new AddressList()
    expect(list.add(text)).toBe(false)
    expect(list.isEmpty).toBe(true)
  })

  it('holds nothing that is no address', () => {
    expect(listOf('0.0.0.0/0', '::/0').contains('unknown')).toBe(false)
    expect(new AddressList().contains('127.0.0.1')).toBe(false)
  })

  // Mapped addresses are one family here and two for Node.
  const families = {
    ipv4: { address: fc.ipV4(), bits: 32 },
    ipv6: { address: fc.ipV6().filter((text) => isIPv6Alone(text)), bits: 128 },
  }
  it.each(['ipv4', 'ipv6'] as const)('says of any %s address what Node says of it', (family) => {
    const { address, bits } = families[family]
    const ranges = fc.array(fc.tuple(address, fc.integer({ min: 0, max: bits })), { maxLength: 4 })
    const verdicts = new Set<boolean>()
    fc.assert(
      fc.property(ranges, address, (given, text) => {
        const list = new AddressList()
        const theirs = new BlockList()
        for (const [base, length] of given) {
          list.add(`${base}/${length}`)
          theirs.addSubnet(base, length, family)
        }
        const isIn = list.contains(String(canonicalAddress(text)))
        verdicts.add(isIn)
        expect(isIn).toBe(theirs.check(text, family))
      }),
      { numRuns: 1_000 },
    )
    expect(verdicts.size).toBe(2)
  })
})

function isIPv6Alone(text: string): boolean {
  return canonicalAddress(text)?.includes(':') === true
}

/*
 * Random spellings of addresses and of whole URLs against an oracle that shares nothing with the code: a
 * table of ranges as bit masks, and WHATWG's parser alone. It must agree both ways, so that nothing inside
 * gets through and nothing public is lost.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UrlFailure } from '../../src/url/failure.js'
import { Reach } from '../../src/url/reach.js'
import { readRedirect, readTarget } from '../../src/url/target.js'

const reach = new Reach()

/** Each as the first address and the bits that count. */
const innerIPv4: readonly [number, number][] = [
  [0x00_00_00_00, 8],
  [0x0a_00_00_00, 8],
  [0x64_40_00_00, 10],
  [0x7f_00_00_00, 8],
  [0xa8_3f_81_10, 32],
  [0xa9_fe_00_00, 16],
  [0xac_10_00_00, 12],
  [0xc0_00_00_00, 24],
  [0xc0_00_02_00, 24],
  [0xc0_1f_c4_00, 24],
  [0xc0_34_c1_00, 24],
  [0xc0_58_63_00, 24],
  [0xc0_a8_00_00, 16],
  [0xc0_af_30_00, 24],
  [0xc6_12_00_00, 15],
  [0xc6_33_64_00, 24],
  [0xcb_00_71_00, 24],
  [0xe0_00_00_00, 3],
]
const innerIPv6: readonly [bigint, number][] = [
  [0x2001_0000n << 96n, 23],
  [0x2001_0db8n << 96n, 32],
  [0x2002_0000n << 96n, 16],
  [0x2620_004f_8000n << 80n, 48],
  [0x3fff_0000n << 96n, 20],
]

function isInnerIPv4(bits: number): boolean {
  return innerIPv4.some(([first, length]) => {
    const size = 2 ** (32 - length)
    return Math.floor(bits / size) === Math.floor(first / size)
  })
}

function isInnerIPv6(bits: bigint): boolean {
  const last32 = Number(bits & 0xffff_ffffn)
  if (bits >> 32n === 0xffffn || bits >> 32n === 0x0064_ff9bn << 64n) return isInnerIPv4(last32)
  if (bits >> 125n !== 1n) return true
  const interfaceHead = (bits >> 32n) & 0xffff_ffffn
  if ([0x0n, 0x100n, 0x200n, 0x300n].some((head) => interfaceHead === ((head << 16n) | 0x5efen))) {
    return true
  }
  return innerIPv6.some(([first, length]) => {
    const shift = BigInt(128 - length)
    return bits >> shift === first >> shift
  })
}

/** The address in a host as WHATWG writes it; null for a name. */
function isInnerHost(host: string): boolean {
  if (host.startsWith('[')) return isInnerIPv6(bitsOf(host.slice(1, -1)))
  if (/^\d+\.\d+\.\d+\.\d+$/.test(host)) {
    return isInnerIPv4(host.split('.').reduce((bits, part) => bits * 256 + Number(part), 0))
  }
  const labels = host.split('.')
  if (labels.at(-1) === '') labels.pop()
  return labels.at(-1) === 'localhost'
}

function bitsOf(text: string): bigint {
  const [before = '', after] = text.split('::')
  const groups = (part: string) =>
    part === '' ? [] : part.split(':').map((hex) => BigInt(`0x${hex}`))
  const head = groups(before)
  const tail = after === undefined ? [] : groups(after)
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => 0n)
  return [...head, ...zeros, ...tail].reduce((bits, group) => (bits << 16n) | group, 0n)
}

/** What must become of a text: `passes`, or the reason of the failure. */
function expected(text: string): string {
  const parsed = parse(text)
  if (text.length > 8_192 || parsed === null) return 'url'
  const { protocol, username, password, hostname, port, href, hash } = parsed
  if (!['http:', 'https:'].includes(protocol) || username + password !== '') return 'url'
  if (href.length - hash.length > 8_192) return 'url'
  if (isInnerHost(hostname)) return 'blocked'
  return ['', '80', '443'].includes(port) ? 'passes' : 'blocked'
}

function parse(text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null
  }
}

function actual(text: string): string {
  try {
    reach.refuseByText(readTarget(text))
    return 'passes'
  } catch (error) {
    if (error instanceof UrlFailure) return error.reason
    throw error
  }
}

/** Numbers in the ranges and at their ends, and any. */
const ipv4 = fc.oneof(
  fc.nat(0xffff_ffff),
  fc
    .tuple(fc.constantFrom(...innerIPv4), fc.constantFrom(-1, 0, 1, 77), fc.boolean())
    .map(([[first, length], offset, isEnd]) => {
      const end = isEnd ? first + 2 ** (32 - length) - 1 : first
      return (end + offset + 2 ** 32) % 2 ** 32
    }),
)
const innerOnly = ipv4.filter(isInnerIPv4)

const digits = ['0123456789', '０１２３４５６７８９', '⓪①②③④⑤⑥⑦⑧⑨', '𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗', '𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡'].map(
  (set) => Array.from(set),
)

/** A number in the bases that inet_aton knows. */
const spelledNumber = (value: number) =>
  fc.constantFrom(
    String(value),
    `0${value.toString(8)}`,
    `0x${value.toString(16)}`,
    `0X${value.toString(16).toUpperCase()}`,
    `0x0000${value.toString(16)}`,
    `000${value.toString(8)}`,
  )

/** One to four parts, any base each, any digits, any dots, percent-encoded at times. */
const spelledIPv4 = (address: fc.Arbitrary<number>) =>
  address.chain((bits) => {
    const bytes = [bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255]
    const parts = fc.constantFrom(
      [bits],
      [bytes[0], bits & 0xff_ffff],
      [bytes[0], bytes[1], bits & 0xffff],
      bytes,
    )
    return fc
      .tuple(
        parts.chain((numbers) => fc.tuple(...numbers.map((number) => spelledNumber(number ?? 0)))),
        fc.constantFrom('.', '。', '．', '｡', '%2E', '%2e'),
        fc.constantFrom(...digits),
        fc.constantFrom('', '.', '。'),
        fc.nat(20),
      )
      .map(([texts, dot, set, end, encodedAt]) => {
        const text = texts
          .join(dot)
          .replaceAll(/\d(?![\dA-Fa-f]*[xX])/g, (digit, at: number, whole: string) =>
            whole[at - 1] === '%' || whole[at - 2] === '%' ? digit : (set[Number(digit)] ?? digit),
          )
        const code = text.charCodeAt(encodedAt)
        if (!(code < 128) || text.includes('%')) return text + end
        return `${text.slice(0, encodedAt)}%${code.toString(16)}${text.slice(encodedAt + 1)}${end}`
      })
  })

const hex = (value: number) => value.toString(16)
const dotted = (bits: number) => [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.')
const pair = (bits: number) => `${hex(bits >>> 16)}:${hex(bits & 0xffff)}`

/** IPv6 addresses that carry an IPv4 one in every way there is, near special ranges, and any. */
const ipv6 = fc
  .oneof(
    ipv4.chain((bits) =>
      fc.constantFrom(
        ...['::', '::ffff:', '::ffff:0:', '64:ff9b::', '64:ff9b:1::', '2606:4700::5efe:'].flatMap(
          (head) => [head + pair(bits), head + dotted(bits)],
        ),
        `0:0:0:0:0:FFFF:${pair(bits)}`,
        `2606:4700::200:5efe:${pair(bits)}`,
        `2606:4700:1:2:1${hex(bits & 0xf)}00:5efe:${pair(bits)}`,
        `2002:${pair(bits)}::1`,
        `2001:0:${pair(bits)}:8000:1:${pair(~bits >>> 0)}`,
        `2606:4700::${pair(bits)}`,
      ),
    ),
    fc
      .tuple(
        fc.constantFrom(
          '2001',
          '2002',
          '2000',
          '2620',
          '3fff',
          '3ffe',
          '2606',
          'fe80',
          'fec0',
          'ff02',
          'fd00',
          '100',
          '5f00',
          '64',
          '0',
          '1fff',
          '4000',
        ),
        fc.array(
          fc.oneof(
            fc.constantFrom(0, 1, 2, 0x4f, 0xdb8, 0xfff, 0x1000, 0x1ff, 0x200, 0x8000, 0xff9b),
            fc.nat(0xffff),
          ),
          { minLength: 7, maxLength: 7 },
        ),
      )
      .map(([head, rest]) => [head, ...rest.map(hex)].join(':')),
  )
  .map((text) => `[${text}]`)

const names = fc.constantFrom(
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'ｌｏｃａｌｈｏｓｔ',
  'loc%61lhost',
  'localhost..',
  'localhost.example',
  'example.com',
  'xn--bcher-kva.example',
  'bücher.example',
  'a_b',
  '-',
  'ﬀ.example',
  '',
  ' ',
  '%00',
  'a%20b',
  '[',
  '[]',
  '[::1',
  '::1',
  '[fe80::1%25a]',
  '1.2.3.4.5',
  '256.1.1.1',
  '0x',
  '1..2',
)
const hosts = fc.oneof(spelledIPv4(ipv4), ipv6, names, fc.string({ unit: 'binary', maxLength: 12 }))

const urls = fc
  .tuple(
    fc.constantFrom(
      'http://',
      'https://',
      'HTTP://',
      'http:',
      'http:\\\\',
      'ht\ttp://',
      ' http:/',
      'http:///',
      'ftp://',
      'file://',
      'ws://',
      '//',
      'javascript:',
      '',
    ),
    fc.constantFrom(
      '',
      '',
      '',
      '@',
      'user@',
      'good.example@',
      'a:b@',
      'good.example:80@',
      '\\@',
      '%40',
    ),
    hosts,
    fc.constantFrom(
      '',
      '',
      '',
      ':80',
      ':443',
      ':0',
      ':22',
      ':8080',
      ':65536',
      ':',
      ':080',
      ':8０',
      ':80\t',
    ),
    fc.constantFrom(
      '',
      '/',
      '/a?b#c',
      '#',
      '?',
      '\\',
      '/@127.0.0.1',
      '#@10.0.0.1',
      '\n',
      ' /',
      '\0',
    ),
  )
  .map((parts) => parts.join(''))

describe('random spellings', () => {
  it('of any URL end as the oracle says', () => {
    const seen = new Map<string, number>()
    const agrees = fc.property(urls, (text) => {
      const outcome = actual(text)
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
      expect([text, outcome]).toEqual([text, expected(text)])
    })
    fc.assert(agrees, { numRuns: 60_000 })
    for (const outcome of ['url', 'blocked', 'passes']) {
      expect(seen.get(outcome)).toBeGreaterThan(2_500)
    }
  })

  it('of an inner IPv4 address are refused, whatever WHATWG makes of them', () => {
    let readCount = 0
    const isRefused = fc.property(spelledIPv4(innerOnly), (host) => {
      const outcome = actual(`http://${host}/`)
      if (outcome === 'blocked') readCount++
      expect([host, outcome]).not.toEqual([host, 'passes'])
    })
    fc.assert(isRefused, { numRuns: 30_000 })
    // Nearly all spellings are addresses: else the test would look at nothing.
    expect(readCount).toBeGreaterThan(25_000)
  })

  it('of any text throw nothing but a UrlFailure', () => {
    const from = new URL('http://a.example/b')
    const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl(), fc.anything())
    const holds = fc.property(texts, (value) => {
      let text = ''
      try {
        text = String(value)
      } catch {
        // Not everything has a text.
      }
      for (const read of [() => readTarget(value), () => readRedirect(text, from)]) {
        try {
          reach.refuseByText(read())
        } catch (error) {
          if (!(error instanceof UrlFailure)) throw error
        }
      }
    })
    expect(() => fc.assert(holds, { numRuns: 20_000 })).not.toThrow()
  })
})

describe('random addresses', () => {
  it('are permitted as the oracle says', () => {
    const agrees = fc.property(
      fc.oneof(ipv4.map(dotted), ipv6),
      fc.constantFrom(80, 443, 81),
      (host, port) => {
        const { hostname } = new URL(`http://${host}/`)
        const address = host.startsWith('[') ? host.slice(1, -1) : host
        const isPermitted = port !== 81 && !isInnerHost(hostname)
        expect([address, reach.permits(address, port)]).toEqual([address, isPermitted])
      },
    )
    fc.assert(agrees, { numRuns: 40_000 })
  })
})

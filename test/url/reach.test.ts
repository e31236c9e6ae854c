/*
 * Which addresses, names and ports may be reached. The ranges are looked at from both of their ends.
 */
import { describe, expect, it } from 'vitest'
import { TallygateError } from '../../src/core/errors.js'
import { UrlFailure } from '../../src/url/failure.js'
import { Reach } from '../../src/url/reach.js'
import { readTarget } from '../../src/url/target.js'
import { failureBy } from '../support/web.js'
import { words } from '../support/words.js'

const nothingAllowed = new Reach()

/** The reason of a refusal by text; null where it passes. */
function refusal(text: string, reach = nothingAllowed): string | null {
  try {
    reach.refuseByText(readTarget(text))
    return null
  } catch (error) {
    if (error instanceof UrlFailure) return error.reason
    throw error
  }
}

describe('an address in the text of a URL', () => {
  it.each(
    words(`
      2130706433 0x7f000001 0177.0.0.1 127.1 0 2852039166 0300.0250.1.1 0251.0376.0251.0376
      0x7f.1 017700000001 127.0.0.1. %31%32%37.0.0.1 127。0。0。1 ①②⑦.⓪.⓪.① １２７．０．０．１ 1２7.1
      １６９.254.169.254 0xA9FEA9FE 0x7f000001. 192.168.257 127.0.0.0x1 00000177.1
    `),
  )('URL-03: %s is refused whatever its spelling', (host) => {
    expect(refusal(`http://${host}/`)).toBe('blocked')
  })

  it.each(
    words(`
      0.0.0.0 127.127.127.127 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1
      192.168.255.255 169.254.169.254 169.254.0.1 100.64.0.1 100.127.255.255 192.0.0.1
      192.0.0.255 198.18.0.1 198.19.255.255 224.0.0.1 239.255.255.255 255.255.255.255
      240.0.0.1 100.100.100.200 192.0.2.1 198.51.100.1 203.0.113.1 192.88.99.1 0.255.255.255
      168.63.129.16 192.0.0.192 localhost LOCALHOST localhost. a.localhost anything.localhost.
      ｌｏｃａｌｈｏｓｔ local%68ost a.b.LocalHost.
    `),
  )('URL-05: %s is refused', (host) => {
    expect(refusal(`http://${host}/`)).toBe('blocked')
    expect(refusal(`https://${host}/x`)).toBe('blocked')
  })

  it.each(
    words(`
      :: ::1 0:0:0:0:0:0:0:1 fc00::1 fdff::1 fd00:ec2::254 fd20:ce::254 fe80::1 febf::1
      fec0::1 ff02::1 ff0e::1 100::1 100:0:0:1::1 2001:db8::1 3fff::1 2001:10::1 2001:20::1
      2001:30::1 2001:2::1 5f00::1 2620:4f:8000::1 2001:4:112::1 2001:3::1 4000::1 8000::1
      e000:: ::127.0.0.1 ::8.8.8.8 ::ffff:0:8.8.8.8 2002:7f00:1:: 2002:808:808::1 2001::1
      2001:0:4136:e378:8000:63bf:3fff:fdd2 64:ff9b:1::808:808 2606:4700::5efe:7f00:1
      2606:4700::200:5efe:7f00:1 2606:4700:0:1:300:5efe:a00:1 ::ffff:127.0.0.1 ::ffff:7f00:1
      ::ffff:169.254.169.254 0::ffff:10.0.0.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe
      64:ff9b::10.1.2.3 64:ff9b::168.63.129.16
    `),
  )('[%s] is refused', (host) => {
    expect(refusal(`http://[${host}]/`)).toBe('blocked')
  })

  it.each(
    words(`
      8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255
      128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0
      192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 168.63.129.15
      168.63.129.17 1.0.0.0 [2001:4860:4860::8888] [2606:4700::1111] [2a00:1450::1] [3ffe::1]
      [2003::] [2001:200::] [2001:db7:ffff::] [2001:db9::] [2606:4700:0:1:400:5efe:a00:1]
      [64:ff9b::8.8.8.8] [::ffff:8.8.8.8] example.com localhost.example.com notlocalhost
      localhost.localdomain xn--bcher-kva.example example.com.
    `),
  )('%s passes, as far as the text tells', (host) => {
    expect(refusal(`http://${host}/`)).toBe(null)
    expect(refusal(`https://${host}/`)).toBe(null)
  })

  it('is refused with a message that does not say what it is', () => {
    const url = new URL('http://[::ffff:10.1.2.3]/')
    const failure = failureBy(() => nothingAllowed.refuseByText(url))
    expect(failure).toMatchObject({ reason: 'blocked', status: 403 })
    expect(failure.message).not.toMatch(/10\.|::|a01/)
  })
})

describe('ports', () => {
  it.each([0, 1, 21, 22, 25, 79, 81, 442, 444, 3000, 6379, 8080, 8443, 65_535])(
    '%i is refused',
    (port) => {
      expect(refusal(`http://example.com:${port}/`)).toBe('blocked')
      expect(refusal(`https://8.8.8.8:${port}/`)).toBe('blocked')
      expect(nothingAllowed.permits('8.8.8.8', port)).toBe(false)
    },
  )

  it.each(['http://example.com:80/', 'http://example.com:443/', 'https://example.com:80/'])(
    '%s passes',
    (text) => {
      expect(refusal(text)).toBe(null)
    },
  )
})

describe('an allowance', () => {
  const reach = new Reach(['127.0.0.1/32:8080', '10.0.0.0/8:80', '[fd00::/8]:8080', '[::1]:3000'])

  it.each([
    ['http://127.0.0.1:8080/', null],
    ['https://127.1:8080/', null],
    ['http://[::ffff:127.0.0.1]:8080/', null],
    ['http://localhost:8080/', null],
    ['http://a.localhost.:8080/', null],
    ['http://10.9.8.7/', null],
    ['http://[fd12::1]:8080/', null],
    ['http://[::1]:3000/', null],
    ['http://name.example:8080/', null],
    ['http://127.0.0.1/', 'blocked'],
    ['http://127.0.0.2:8080/', 'blocked'],
    ['http://localhost/', 'blocked'],
    ['http://localhost:3000/', 'blocked'],
    ['https://10.9.8.7/', 'blocked'],
    ['http://8.8.8.8:8080/', 'blocked'],
    ['http://[::1]:8080/', 'blocked'],
    ['http://[::127.0.0.1]:8080/', 'blocked'],
    ['http://[fc00::1]:8080/', 'blocked'],
    ['http://name.example:8081/', 'blocked'],
  ])('lets through that address and port alone: %s %s', (text, expected) => {
    expect(refusal(text, reach)).toBe(expected)
  })

  it.each(['127.0.0.1:8080', '127.0.0.1/32:8080', '127.0.0.0/8:8080', '[::ffff:127.0.0.1]:8080'])(
    '%s lets 127.0.0.1:8080 through',
    (entry) => {
      expect(new Reach([entry]).permits('127.0.0.1', 8080)).toBe(true)
    },
  )

  it.each(['[::1]:8080', '[::1/128]:8080', '[::1]/128:8080', '[::]/0:8080', '[0::0001/64]:8080'])(
    '%s lets [::1]:8080 through',
    (entry) => {
      expect(new Reach([entry]).permits('::1', 8080)).toBe(true)
      expect(new Reach([entry]).permits('127.0.0.1', 8080)).toBe(false)
    },
  )

  it.each([
    '',
    '127.0.0.1',
    '127.0.0.1/32',
    ':8080',
    '127.0.0.1:',
    '127.0.0.1:0',
    '127.0.0.1:65536',
    '127.0.0.1/33:8080',
    '127.0.0.1/-1:80',
    '127.1:80',
    '0177.0.0.1:80',
    'localhost:80',
    '*:80',
    '::1:8080',
    '::1/128:8080',
    '[::1]',
    '[::1/129]:80',
    '[::1/64]/64:80',
    '[::1:80',
    '::1]:80',
    '[127.0.0.1]:80',
    '127.0.0.1:80 ',
    ' 127.0.0.1:80',
    '127.0.0.1:+80',
    '127.0.0.1:8e1',
    'http://127.0.0.1:80',
    '[fe80::1%eth0]:80',
    '127.0.0.1:80,10.0.0.1:80',
  ])('%j is none, and the error shows it and the right form', (entry) => {
    expect(() => new Reach(['10.0.0.1:80', entry])).toThrow(TallygateError)
    expect(() => new Reach([entry])).toThrow(
      `an entry of allow must be addresses and a port, such as 127.0.0.1/32:8080 or ` +
        `[fd00::/8]:8080: received ${JSON.stringify(entry)} (TALLYGATE_OPTION)`,
    )
  })
})

describe('what is no address', () => {
  it.each(['', 'example.com', 'localhost', '127.1', '8.8.8.8:80', '[::1]', '2606:4700::1%eth0'])(
    '%j may not be connected to',
    (text) => {
      expect(new Reach(['0.0.0.0/0:80', '[::/0]:80']).permits(text, 80)).toBe(false)
    },
  )
})

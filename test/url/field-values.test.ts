/*
 * How a stranger's text becomes a value: one line that is safe to show, an address of the web, a language
 * tag. Each with what is refused, and properties that hold for any text.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { languageTag } from '../../src/url/language-tag.js'
import { textLine } from '../../src/url/text-line.js'
import { pageAddress, webAddress } from '../../src/url/web-address.js'

const nasty =
  '\t|\n|\0|\u0085|\u00A0|\u200B|\u200C|\u200D|\u2028|\u202E|\u2066|\uFE0F|\uFEFF|\u0301|\uD83D|\uDE00'
const joined = '👩‍👩‍👧|🇩🇪|क्ष|می‌خواهم|\u{E0041}|\u3164| |a|e'
const nastyUnit = fc.constantFrom(...`${nasty}|${joined}`.split('|'))
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.array(nastyUnit, { maxLength: 30 }).map((units) => units.join('')),
)

describe('a line of text', () => {
  const line = (text: string, lengthMax = 300) => textLine(text, lengthMax)

  it.each([
    ['Page', 'Page'],
    ['  A \t\r\n\f B  ', 'A B'],
    ['a\u00A0b\u2003\u3000c\u2028d\u0085e', 'a b c d e'],
    ['a\0b\u0007c\u009Fd\u007F', 'abcd'],
    ['\uFEFFa\u200Bb\u00ADc\u2060d\u180Ee', 'abcde'],
    ['evil\u202Efdp.exe\u202C', 'evilfdp.exe'],
    ['\u200Ea\u200Fb\u061Cc\u2066d\u2069', 'abcd'],
    ['a \u200B b', 'a b'],
    ['hi\u{E0068}\u{E0069}\u{E007F}', 'hi'],
    ['a\uD83Db\uDE00c', 'abc'],
    ['e\u0301\u0323', 'e\u0301\u0323'],
    ['👩‍👩‍👧 ❤️‍🔥 1️⃣ 🇩🇪', '👩‍👩‍👧 ❤️‍🔥 1️⃣ 🇩🇪'],
    ['می‌خواهم', 'می‌خواهم'],
    ['क्‍ष', 'क्‍ष'],
    ['p\u200Da\u200Cypal', 'paypal'],
    ['a\uFE0F\uFE0F\uFE0Fb', 'a\uFE0Fb'],
    ['\u200D\uFE0Fa\u200D \u200Cb\uFE0F', 'a b\uFE0F'],
    ['שלום', 'שלום'],
    ['\uFFFD', '\uFFFD'],
    ['<b>&amp;</b>', '<b>&amp;</b>'],
  ])('of %j is %j', (text, is) => {
    expect(line(text)).toBe(is)
  })

  it.each(['', ' ', '\n\t', '\0', '\u200B\u200D\uFE0F', '\u2066\u2069', '\u3164\u115F', '\uD800'])(
    'is none of %j, which shows nothing',
    (text) => {
      expect(line(text)).toBeNull()
    },
  )

  it.each([
    ['abcdef', 3, 'abc'],
    ['ab cd', 3, 'ab'],
    ['ab😀', 3, 'ab'],
    ['ab😀', 4, 'ab😀'],
    ['a👩‍👩‍👧', 8, 'a'],
    ['a🇩🇪🇫🇷', 6, 'a🇩🇪'],
    ['abe\u0301x', 3, 'ab'],
    ['abe\u0301x', 4, 'abe\u0301'],
    ['a\r\nb', 2, 'a'],
    [`e${'\u0301'.repeat(50)}`, 5, 'e\u0301\u0301\u0301\u0301'],
    [`😀${'\u{1F3FB}'.repeat(50)}`, 5, '😀\u{1F3FB}'],
  ])('of %j within %s is %j, no grapheme cut apart', (text, lengthMax, is) => {
    expect(line(text, lengthMax)).toBe(is)
  })

  it('is within its bound, well-formed, without control characters, and the line of itself', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1, max: 70 }), (text, lengthMax) => {
        const value = line(text, lengthMax)
        if (value === null) return
        expect(value.length).toBeLessThanOrEqual(lengthMax)
        expect(value).not.toMatch(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|[\u200B\u200E\u200F\u202A-\u202E]/u)
        expect(value).not.toMatch(/[\u2060-\u206F\uFEFF]|^\s|\s$|\s\s|[^\S ]/u)
        expect(line(value, lengthMax)).toBe(value)
      }),
      { numRuns: 5000 },
    )
  })

  it('is read from the first 4096 code units', () => {
    expect(line(`${' '.repeat(4000)}Page`)).toBe('Page')
    expect(line(`${' '.repeat(1_000_000)}Page`)).toBeNull()
    expect(line('x'.repeat(1_000_000), 1000)).toBe('x'.repeat(1000))
  })
})

describe('an address of the web', () => {
  const base = 'http://b.test/d/e?q=1'

  it.each([
    ['img/p.png', 'http://b.test/d/img/p.png'],
    ['/r/p.png', 'http://b.test/r/p.png'],
    ['?x', 'http://b.test/d/e?x'],
    ['//c.test/i', 'http://c.test/i'],
    ['https://c.test', 'https://c.test/'],
    ['HTTPS://C.TEST/Path', 'https://c.test/Path'],
    [' \n /a b\t', 'http://b.test/a%20b'],
    ['\u00A0/x\u00A0', 'http://b.test/x'],
    ['/ä?ö', 'http://b.test/%C3%A4?%C3%B6'],
    ['http://ex\u00E4mple.test/', 'http://xn--exmple-cua.test/'],
    ['/x\u202Ey', 'http://b.test/x%E2%80%AEy'],
    ['/\uD800', 'http://b.test/%EF%BF%BD'],
    ['http:/c.test/x', 'http://b.test/c.test/x'],
    ['\\\\c.test\\x', 'http://c.test/x'],
    ['java\nscript', 'http://b.test/d/javascript'],
  ])('of %j is %s', (text, is) => {
    expect(webAddress(text, base)).toBe(is)
  })

  it.each([
    'javascript:1',
    'JaVa\tScRiPt:alert(1)',
    ' javascript:1',
    'data:text/html,x',
    'data:image/png;base64,AAAA',
    'blob:http://b.test/x',
    'file:///etc/passwd',
    'ftp://c.test/',
    'mailto:a@c.test',
    'about:blank',
    'ws://c.test/',
    'view-source:http://c.test/',
    'http://user@c.test/',
    'http://user:secret@c.test/',
    'https://c.test@d.test/',
    '//:x@c.test/',
    'http://',
    'http://c.test:99999/',
    'http://[::1',
    'http://a b/',
    '',
    '   ',
    `/${'x'.repeat(2048)}`,
    `/${'ä'.repeat(400)}`,
    '../'.repeat(700),
  ])('is none of %.40j', (text) => {
    expect(webAddress(text, base)).toBeNull()
    expect(pageAddress(text, base)).toBeNull()
  })

  it('keeps the scheme of its base, and its own fragment; a page is named without', () => {
    expect(webAddress('//c.test/i#a', 'https://b.test/')).toBe('https://c.test/i#a')
    expect(pageAddress('//c.test/i?x#a', 'https://b.test/')).toBe('https://c.test/i?x')
    expect(pageAddress('#', 'https://b.test/x')).toBe('https://b.test/x')
  })

  it('is none where the base is no address', () => {
    expect(webAddress('/x', 'nonsense')).toBeNull()
  })

  it('is http or https, of bounded length, ASCII, without a user, whatever is asked', () => {
    const scheme = fc.constantFrom(
      '',
      'http:',
      'https://',
      '//',
      'javascript:',
      'data:',
      'http://u@',
    )
    fc.assert(
      fc.property(scheme, anyText, (start, rest) => {
        const address = webAddress(start + rest, base)
        if (address === null) return
        expect(address).toMatch(/^https?:\/\/[!-~]+$/)
        expect(address.length).toBeLessThanOrEqual(2048)
        expect(webAddress(address, 'http://z.test/')).toBe(address)
        expect(new URL(address).username).toBe('')
      }),
      { numRuns: 3000 },
    )
  })
})

describe('a language tag', () => {
  it.each([
    ['en', 'en'],
    [' EN ', 'en'],
    ['en_US', 'en-US'],
    ['EN-us', 'en-US'],
    ['pt-br', 'pt-BR'],
    ['zh_hant_tw', 'zh-Hant-TW'],
    ['ZH-CMN-HANS-CN', 'zh-cmn-Hans-CN'],
    ['es-419', 'es-419'],
    ['DE-AT-1996', 'de-AT-1996'],
    ['en-us-U-CA-GREGORY', 'en-US-u-ca-gregory'],
    ['sl-Latn-IT-nedis', 'sl-Latn-IT-nedis'],
    ['haw', 'haw'],
  ])('%j is %s', (text, is) => {
    expect(languageTag(text)).toBe(is)
  })

  const refused =
    '||e|english|en-|-en|en--US|en US|en, fr|de-DE;q=1|en.UTF-8|x-klingon|ен|en-US\0|<b>'

  it.each([...refused.split('|'), 'undefined', `en${'-aaaaaaaa'.repeat(4)}`, 'en'.repeat(500_000)])(
    '%.20j is none',
    (text) => {
      expect(languageTag(text)).toBeNull()
    },
  )
})

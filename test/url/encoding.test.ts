/*
 * Which encoding a page is in, and its text: who is believed first, what a declaration may look like and
 * where it may stand, and that every label of the Encoding Standard is read.
 */
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodingOf, sliceBytes, textOf } from '../../src/url/encoding.js'
import { readPage } from '../../src/url/read-page.js'

const privet = Buffer.from('cff0e8e2e5f2', 'hex')
const bytes = (text: string) => Buffer.from(text, 'latin1')
const encodingIn = (markup: string, contentType: string | null = 'text/html') =>
  encodingOf(bytes(markup), contentType)
const textIn = (body: Uint8Array, contentType: string | null = 'text/html') =>
  [...textOf(body, contentType)].join('')
const titleOf = async (body: Uint8Array, contentType: string | null = 'text/html') =>
  (await readPage(body, contentType, 'http://a.test/')).title

const page = (head: string, title: Uint8Array) =>
  Buffer.concat([bytes(`<!doctype html><html><head>${head}<title>`), title, bytes('</title>')])

describe('a page in another encoding', () => {
  it('URL-11: in windows-1251 by its header is read', async () => {
    expect(await titleOf(page('', privet), 'text/html; charset=windows-1251')).toBe('Привет')
  })

  it('URL-11: in windows-1251 by its <meta> alone is read', async () => {
    for (const contentType of ['text/html', 'text/html; charset=', null]) {
      expect(await titleOf(page('<meta charset=windows-1251>', privet), contentType)).toBe('Привет')
    }
    const pragma = '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">'
    expect(await titleOf(page(pragma, privet))).toBe('Привет')
  })

  it('URL-11: whose header and <meta> differ is read as the header says', async () => {
    const koi8 = page('<meta charset=koi8-r>', privet)
    expect(await titleOf(koi8, 'text/html; charset=windows-1251')).toBe('Привет')
    const utf8 = page('<meta charset=windows-1251>', Buffer.from('Привет'))
    expect(await titleOf(utf8, 'text/html; charset=utf-8')).toBe('Привет')
  })

  it('keeps the quotes and dashes of windows-1252', async () => {
    const title = bytes('\x93It\x92s\x94 \x96 100 \x80')
    expect(await titleOf(page('', title), 'text/html; charset=iso-8859-1')).toBe('“It’s” – 100 €')
  })
})

describe('a declaration in the page', () => {
  const filler = (length: number) => {
    const start = '<!-- <meta charset=koi8-r> --><script>var a = "<meta charset=koi8-r>";//'
    return `${start}${'x'.repeat(length - start.length - 9)}</script>`
  }

  it('URL-13: that begins at byte 900, after comments and scripts, counts', async () => {
    expect(filler(900).length).toBe(900)
    const body = Buffer.concat([bytes(filler(900)), page('<meta charset=windows-1251>', privet)])
    expect(await titleOf(body)).toBe('Привет')
  })

  it.each([0, 500, 511, 1000, 1023, 1024, 4096, 20_000, 32_000])(
    'URL-13: counts behind %s bytes of other things',
    (length) => {
      const before = length < 100 ? '' : filler(length)
      expect(encodingIn(`${before}<meta charset=windows-1251>`)).toBe('windows-1251')
    },
  )

  it('is looked for in 32 KB, and not in half of a tag', () => {
    expect(encodingIn(`${filler(40_000)}<meta charset=windows-1251>`)).toBe('utf-8')
    expect(encodingIn(`${filler(32_768 - 20)}<meta charset=windows-1251>`)).toBe('utf-8')
    expect(encodingIn('<meta charset=windows-1251')).toBe('utf-8')
  })

  it.each([
    '<meta charset="windows-1251">',
    "<meta charset='windows-1251'>",
    '<META CHARSET=WINDOWS-1251>',
    '<meta charset=" windows-1251 ">',
    '<meta charset="windows-1251; any">',
    '<meta charset=windows-1251/>',
    '<meta charset = "cp1251" />',
    '<meta\n\tname=x\fcharset=x-cp1251\n>',
    '<meta charset="windows&#45;1251">',
    '<meta http-equiv=content-type content="text/html; charset=windows-1251">',
    '<meta content="text/html; charset=windows-1251" http-equiv="Content-Type">',
    '<META HTTP-EQUIV=CONTENT-TYPE CONTENT="TEXT/HTML; CHARSET=WINDOWS-1251">',
    '<meta http-equiv=content-type content="text/html; charset = \'windows-1251\'; level=1">',
    `<meta http-equiv=content-type content='text/html; charset="windows-1251" and more'>`,
    '<meta http-equiv=content-type content="charset charset=windows-1251">',
    '<meta http-equiv=content-type content="charset=windows-1251,text/html">',
    '<meta charset=none><meta charset=windows-1251>',
    '<meta charset><meta charset=""><meta charset=windows-1251>',
    '<meta charset=none http-equiv=content-type content="charset=windows-1251">',
    '<body><p><meta charset=windows-1251>',
    '<?xml version="1.0" encoding="windows-1251"?><html>',
    "<?xml version='1.0' encoding = 'WINDOWS-1251' standalone='yes'?><html>",
    '<?xml version="1.0" encoding="koi8-r"?><meta charset=windows-1251>',
  ])('URL-13: is understood as %s', (markup) => {
    expect(encodingIn(markup)).toBe('windows-1251')
  })

  it.each([
    '<!-- <meta charset=windows-1251> -->',
    '<!--> <meta charset=utf-8 --><!-- ><meta charset=windows-1251>',
    '<script>"<meta charset=windows-1251>"</script>',
    '<style><meta charset=windows-1251></style>',
    '<title><meta charset=windows-1251></title>',
    '<textarea><meta charset=windows-1251></textarea>',
    '<template><meta charset=windows-1251></template>',
    '<svg><desc><meta charset=windows-1251></desc></svg>',
    '<p title="<meta charset=windows-1251>">',
    '<metadata charset=windows-1251>',
    '</meta charset=windows-1251>',
    '<meta content="text/html; charset=windows-1251">',
    '<meta http-equiv=refresh content="text/html; charset=windows-1251">',
    '<meta name=charset content=windows-1251>',
    '<meta http-equiv=content-type content="text/html; charset">',
    '<!doctype html><?xml encoding="windows-1251"?>',
    '<?xmlx encoding="windows-1251"?>',
    'charset=windows-1251',
  ])('does not count as %s', (markup) => {
    expect(encodingIn(markup)).toBe('utf-8')
  })

  it.each([
    ['utf-16', 'utf-8'],
    ['utf-16le', 'utf-8'],
    ['UTF-16BE', 'utf-8'],
    ['unicode', 'utf-8'],
    ['x-user-defined', 'windows-1252'],
    ['utf-7', 'utf-8'],
    ['utf-32', 'utf-8'],
    ['latin1', 'windows-1252'],
    ['us-ascii', 'windows-1252'],
    ['gb2312', 'gbk'],
    ['hz-gb-2312', 'replacement'],
  ])('of %s means %s, as the standard says', (label, encoding) => {
    expect(encodingIn(`<meta charset=${label}>`)).toBe(encoding)
    expect(encodingIn(`<?xml version="1.0" encoding="${label}"?>`)).toBe(encoding)
    const pragma = `<meta http-equiv=content-type content="text/html; charset=${label}">`
    expect(encodingIn(pragma)).toBe(encoding)
  })
})

describe('a byte order mark', () => {
  it('URL-13: of UTF-8 beats header and <meta>, and is no text', async () => {
    const body = Buffer.from('\uFEFF<meta charset=koi8-r><title>Привет</title>')
    for (const contentType of ['text/html; charset=windows-1251', 'text/html', null]) {
      expect(encodingOf(body, contentType)).toBe('utf-8')
      expect(await titleOf(body, contentType)).toBe('Привет')
    }
    expect(textIn(body).startsWith('<meta')).toBe(true)
  })

  it('of UTF-16 beats header and <meta>, in either order of bytes', async () => {
    const little = Buffer.from('\uFEFF<title>Привет 😀</title>', 'utf16le')
    const big = Buffer.from(little).swap16()
    expect(await titleOf(little, 'text/html; charset=windows-1251')).toBe('Привет 😀')
    expect(await titleOf(big, 'text/html; charset=utf-8')).toBe('Привет 😀')
  })

  it('may be missing in UTF-16 where the header or an XML declaration shows it', async () => {
    const little = Buffer.from('<?xml version="1.0"?><title>Привет</title>', 'utf16le')
    const big = Buffer.from(little).swap16()
    for (const contentType of [null, 'text/html; charset=none']) {
      expect(await titleOf(little, contentType)).toBe('Привет')
      expect(await titleOf(big, contentType)).toBe('Привет')
    }
    const plain = Buffer.from('<title>Привет</title>', 'utf16le')
    expect(await titleOf(plain, 'text/html; charset=utf-16')).toBe('Привет')
  })
})

describe('the header', () => {
  it.each([
    'text/html; charset=windows-1251',
    'text/html;charset=windows-1251',
    'TEXT/HTML; CHARSET=WINDOWS-1251',
    'text/html; charset="windows-1251"',
    "text/html; charset='windows-1251'",
    'text/html; charset = windows-1251 ; q=1',
    'text/html; level=1; charset=windows-1251;',
    'text/html; charset=windows-1251, text/html',
    'text/html; charset="windows-1251"; boundary="x"',
    'text/html charset=cp1251',
    'text/html; charset=windows-1251 (Cyrillic)',
    'text/html; x-charset=koi8-r; charset=windows-1251',
    'text/html; a="charset=koi8-r"; charset=windows-1251',
  ])('URL-13: is understood as %s', (contentType) => {
    expect(encodingIn('<meta charset=koi8-r>', contentType)).toBe('windows-1251')
  })

  const names = 'ISO-88509-1 none utf-7 utf8mb4 constructor __proto__ ſhift_jis 💥'.split(' ')
  const wrong = [...names, '', '""', "''", '"', '=', 'x'.repeat(100_000)]

  it.each(wrong.map((label) => [label.slice(0, 20), label]))(
    'URL-14: whose charset is %s is passed over, and the page is read',
    async (_, label) => {
      const contentType = `text/html; charset=${label}`
      expect(encodingIn('<title>Page</title>', contentType)).toBe('utf-8')
      expect(encodingIn('<meta charset=koi8-r>', contentType)).toBe('koi8-r')
      expect(encodingIn(`<meta charset="${encodeURI(label)}">`, contentType)).toBe('utf-8')
      expect(await titleOf(bytes('<title>Page</title>'), contentType)).toBe('Page')
      expect(await titleOf(Buffer.from('<title>Straße</title>'), contentType)).toBe('Straße')
    },
  )

  it('never makes a fault, whatever it says', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary' }).map((text) => `text/html; charset=${text}`),
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.constantFrom('charset'.repeat(50_000), `charset${' '.repeat(100_000)}`, 'charset="'),
    )
    fc.assert(
      fc.property(hostile, fc.uint8Array({ maxLength: 40 }), (contentType, body) => {
        expect(textIn(body, contentType)).not.toMatch(/\p{Cs}/u)
      }),
      { numRuns: 500 },
    )
  })
})

describe('the labels of the Encoding Standard', () => {
  // One byte or two that tell the encodings apart, and what they stand for.
  it.each([
    ['utf-8', 'd096', 'Ж'],
    ['ibm866', '86', 'Ж'],
    ['iso-8859-2', 'a6', 'Ś'],
    ['iso-8859-3', 'a6', 'Ĥ'],
    ['iso-8859-4', 'a6', 'Ļ'],
    ['iso-8859-5', 'b6', 'Ж'],
    ['iso-8859-6', 'c7', 'ا'],
    ['iso-8859-7', 'c6', 'Ζ'],
    ['iso-8859-8', 'e0', 'א'],
    ['iso-8859-8-i', 'e0', 'א'],
    ['iso-8859-10', 'a6', 'Ķ'],
    ['iso-8859-13', 'a8', 'Ø'],
    ['iso-8859-14', 'a8', 'Ẁ'],
    ['iso-8859-15', 'a4', '€'],
    ['iso-8859-16', 'a4', '€'],
    ['koi8-r', 'f6', 'Ж'],
    ['koi8-u', 'ae', 'ў'],
    ['macintosh', '8a', 'ä'],
    ['windows-874', 'a1', 'ก'],
    ['windows-1250', '8a', 'Š'],
    ['windows-1251', 'c6', 'Ж'],
    ['windows-1252', '80', '€'],
    ['windows-1253', 'c6', 'Ζ'],
    ['windows-1254', 'd0', 'Ğ'],
    ['windows-1255', 'e0', 'א'],
    ['windows-1256', 'c7', 'ا'],
    ['windows-1257', 'a8', 'Ø'],
    ['windows-1258', 'd2', '\u0309'],
    ['x-mac-cyrillic', '86', 'Ж'],
    ['gbk', 'd6d0', '中'],
    ['gb18030', '81308436', '¥'],
    ['big5', 'a4a4', '中'],
    ['euc-jp', 'c6fc', '日'],
    ['iso-2022-jp', '1b244246 7c', '日'],
    ['shift_jis', '93fa', '日'],
    ['euc-kr', 'b1db', '글'],
    ['utf-16be', '0416', 'Ж'],
    ['utf-16le', '1604', 'Ж'],
    ['x-user-defined', '80', '\uF780'],
  ])('%s is read', (label, hex, character) => {
    const body = Buffer.from(hex.replaceAll(' ', ''), 'hex')
    expect(encodingOf(body, `text/html; charset=${label}`)).toBe(label)
    expect(textIn(body, `text/html; charset=${label}`)).toBe(character)
  })

  it.each(['iso-2022-kr', 'hz-gb-2312', 'iso-2022-cn', 'csiso2022kr', 'replacement'])(
    '%s hides markup from filters, and such a page has no text',
    async (label) => {
      const contentType = `text/html; charset=${label}`
      expect(encodingIn('<title>Page</title>', contentType)).toBe('replacement')
      expect(await titleOf(bytes('<title>Page</title>'), contentType)).toBeNull()
    },
  )
})

describe('text in slices', () => {
  const encodings = ['utf-8', 'utf-16le', 'gb18030', 'shift_jis', 'euc-kr', 'iso-2022-jp', 'koi8-r']

  it.each(encodings)('is the text in one piece, in %s', (encoding) => {
    const contentType = `text/html; charset=${encoding}`
    const unit = fc.uint8Array({ minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(unit, fc.nat(8), (some, shift) => {
        const body = new Uint8Array(sliceBytes + 64).fill(0x41)
        body.set(some, sliceBytes - 20 - shift)
        const slices = [...textOf(body, contentType)]
        expect(slices.length).toBe(2)
        expect(slices.join('')).not.toMatch(/\p{Cs}/u)
        const later = body.subarray(sliceBytes - 40)
        expect(slices.join('').endsWith(textIn(later, contentType).slice(20))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it('has no mark at its end where a page is cut in the middle of a character', () => {
    const emoji = Buffer.from('ab😀')
    for (let length = 2; length < emoji.length; length++) {
      expect(textIn(emoji.subarray(0, length))).toBe('ab')
    }
    expect(textIn(emoji)).toBe('ab😀')
    expect(textIn(Buffer.from('d6', 'hex'), 'text/html; charset=gbk')).toBe('')
    expect(textIn(Buffer.from('3dd8', 'hex'), 'text/html; charset=utf-16le')).toBe('')
  })

  it('has a mark for what is wrong before its end', () => {
    expect(textIn(Buffer.from('61ff62', 'hex'))).toBe('a\uFFFDb')
  })

  it('is none of an empty page', () => {
    expect([...textOf(new Uint8Array(), null)]).toEqual([])
    expect(encodingOf(new Uint8Array(), null)).toBe('utf-8')
  })
})

/*
 * Hostile pages: whatever the bytes, reading one never fails, says the same twice, and what it says is
 * within bounds and safe to show. And the work of a megabyte is done in slices that others' work goes
 * between; no time is asserted, but a reader whose work grew with the square would never get through.
 */
import { describe, expect, it } from 'vitest'
import { seededRandom, type Random } from '../../src/traffic/random.js'
import { sliceBytes } from '../../src/url/encoding.js'
import type { PageFields } from '../../src/url/page.js'
import { readPage } from '../../src/url/read-page.js'
import { hostileBytes, hostilePages } from './hostile-pages.js'

const finalUrl = 'https://b.test/d/e?q'

const tokens = [
  '<title> </title> <title/> <h1> </h1> <html\tlang="en_us"> <html\txml:lang=de> <base\thref="/r/">',
  '<base\thref="javascript:1"> <svg> </svg> <svg/> <desc> </desc> <foreignObject> <math> </math> <mi>',
  '<template> </template> <script> </script> <style> </style> <noscript> </noscript> <!-- --> <!---->',
  '<![CDATA[ ]]> <?xml\tencoding="gbk"?> <!doctype\thtml> <textarea> </textarea> <p> </p> <br> <plaintext>',
  '<meta\tname="description"\tcontent=" <meta\tproperty=og:title\tcontent=\' <meta\tname=twitter:title\tcontent=',
  '<meta\tproperty=og:image\tcontent=" <meta\tproperty=og:url\tcontent=" <meta\tname=og:site_name\tcontent="',
  '<link\trel=canonical\thref=" <link\trel="image_src\tx"\thref=\' <meta\tproperty=og:locale\tcontent=',
  '<meta\thttp-equiv=content-language\tcontent=" <meta\tcharset= <meta\tcharset=utf-16> <meta\tcharset=big5>',
  'href=" content=" name= property= rel= "> \'> /> > < " \' = & ; / &amp; &amp &#x202E; &#0; &#xD800; &#10;',
  '&notin; &#x1F600; javascript: data: http:// //u:p@ https://c.test/x ../ img/p.png #f ?q %zz [::1] \\',
  '\0 \x01 \x1B \x7F \x85 \u00A0 \u00AD \u200B \u200D \u202E \u2028 \u2066 \uFEFF \uFE0F \uFFFE \u0301 \u{E0041}',
  '\u{1F600} \u{1F468}\u200D\u{1F469} \u0436 \u05D0 \u3164 x page en-US x-default undefined null \r \n \f',
].flatMap((line) => line.split(' '))

const contentTypes = [
  null,
  'text/html',
  'text/html; charset=utf-8',
  'application/xhtml+xml',
  'text/html; charset=windows-1251',
  'text/html; charset=utf-16',
  'text/html; charset=gb18030',
  'text/html; charset=iso-2022-jp',
  'text/html; charset=none',
]

const pick = <T>(random: Random, from: readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T

/** Mostly tokens, at times a space, a long run or a byte that fits nothing. */
function soup(random: Random): Buffer {
  const parts: Buffer[] = []
  for (let count = Math.floor(random() * 24); count >= 0; count--) {
    const chance = random()
    const token = Buffer.from(chance < 0.15 ? ' ' : pick(random, tokens))
    if (chance > 0.995) parts.push(Buffer.alloc(token.length * 700, token))
    else if (chance > 0.97) parts.push(Buffer.of(random() * 256))
    else parts.push(token)
  }
  return Buffer.concat(parts)
}

const noise = (random: Random): Buffer =>
  Buffer.from(Array.from({ length: Math.floor(random() * 60) }, () => random() * 256))

const lengthsMax: Readonly<Record<keyof PageFields, number>> = {
  title: 300,
  description: 1000,
  image: 2048,
  siteName: 200,
  canonical: 2048,
  language: 35,
}

const unsafe =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u200B\u200E\u200F\u202A-\u202E\u2060-\u206F\uFEFF\u{E0000}-\u{E007F}]|^\s|\s$|^$/u

/** What is wrong with what was read; null where nothing is. Plain code: it runs 100,000 times. */
function faultOf(page: PageFields): string | null {
  for (const [name, lengthMax] of Object.entries(lengthsMax)) {
    const value = page[name as keyof PageFields]
    if (value === null) continue
    if (typeof value !== 'string') return `${name} is ${typeof value}`
    if (value.length > lengthMax) return `${name} is too long`
    if (unsafe.test(value)) return `${name} is unsafe: ${JSON.stringify(value)}`
  }
  const { image, canonical, language } = page
  for (const address of [image, canonical]) {
    if (address !== null && !/^https?:\/\/[^/?#@]+\/[!-~]*$/.test(address)) return `at ${address}`
  }
  if (canonical?.includes('#') === true) return `canonical has a fragment: ${canonical}`
  if (language !== null && !/^[a-z]{2,3}(?:-[a-zA-Z\d]{1,8})*$/.test(language)) return language
  return Object.keys(page).join() === Object.keys(lengthsMax).join() ? null : 'another shape'
}

async function faultIn(body: Buffer, contentType: string | null): Promise<string | null> {
  const page = await readPage(body, contentType, finalUrl)
  const again = await readPage(new Uint8Array(body), contentType, finalUrl)
  if (JSON.stringify(page) !== JSON.stringify(again)) return 'says something else the second time'
  return faultOf(page)
}

describe('small pages', () => {
  it.each([
    ['of hostile tokens', soup, 100_000],
    ['of noise', noise, 20_000],
  ])('%s are read without a fault', async (_, make, count) => {
    const random = seededRandom(1_760_000_000)
    const faults: string[] = []
    let saidCount = 0
    for (let index = 0; index < count; index++) {
      const body = make(random)
      const contentType = pick(random, contentTypes)
      const page = await readPage(body, contentType, finalUrl)
      const fault = index % 10 === 0 ? await faultIn(body, contentType) : faultOf(page)
      if (fault !== null) faults.push(`${fault}: ${contentType} ${body.toString('base64')}`)
      if (Object.values(page).some((value) => value !== null)) saidCount++
    }
    expect(faults).toEqual([])
    // A fuzz in which nothing is ever found would find no fault.
    expect(saidCount).toBeGreaterThan(make === soup ? count / 10 : -1)
  })

  it('are judged by rules that find a fault', () => {
    const page = { title: 'A', description: null, image: null, siteName: null, canonical: null }
    expect(faultOf({ ...page, language: 'en-US' })).toBeNull()
    for (const bad of [
      { title: 'a\u202Eb' },
      { title: '\uD800' },
      { title: ' a' },
      { title: '' },
      { title: 'x'.repeat(301) },
      { image: 'javascript:1' },
      { image: 'https://u@c.test/' },
      { canonical: 'https://c.test/#a' },
      { language: 'en_US' },
      { title: undefined as unknown as string },
    ]) {
      expect(faultOf({ ...page, language: null, ...bad })).not.toBeNull()
    }
  })
})

describe('a hostile megabyte', () => {
  const slicesMax = Math.ceil(hostileBytes / sliceBytes)

  async function turnsOf(body: Buffer, contentType: string): Promise<number> {
    let turns = 0
    let isReading = true
    const count = () => {
      turns++
      if (isReading) setImmediate(count)
    }
    setImmediate(count)
    expect(faultOf(await readPage(body, contentType, finalUrl))).toBeNull()
    isReading = false
    return turns
  }

  it.each(hostilePages)('of %s is read in slices, without a fault', async (_, body) => {
    expect(body.length).toBe(hostileBytes)
    expect(await turnsOf(body, 'text/html')).toBeLessThanOrEqual(slicesMax + 2)
  })

  it.each(hostilePages.filter((_, index) => index % 5 === 0))(
    'of %s is read in slices as XHTML, without a fault',
    async (_, body) => {
      expect(await turnsOf(body, 'application/xhtml+xml')).toBeLessThanOrEqual(slicesMax + 2)
    },
  )

  it.each([
    'gb18030',
    'big5',
    'euc-kr',
    'euc-jp',
    'shift_jis',
    'iso-2022-jp',
    'utf-16le',
    'koi8-r',
  ])('of noise in %s is read in slices, without a fault', async (label) => {
    const random = seededRandom(7)
    const bytes = Buffer.alloc(hostileBytes).map(() => random() * 256)
    for (const body of [Buffer.from(bytes), Buffer.alloc(hostileBytes, '\x1b$B\x1b(B\x81\xff')]) {
      const turns = await turnsOf(body, `text/html; charset=${label}`)
      expect(turns).toBeLessThanOrEqual(slicesMax + 2)
    }
  })
})

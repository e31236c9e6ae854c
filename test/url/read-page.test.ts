/*
 * What a page says of itself: for each field its sources in their order, what is passed over, and what
 * stays of a page that is broken, hostile or in XHTML.
 */
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pageFields } from '../../src/url/page-fields.js'
import type { PageFields } from '../../src/url/page.js'
import { readPage } from '../../src/url/read-page.js'

const nothing: PageFields = {
  title: null,
  description: null,
  image: null,
  siteName: null,
  canonical: null,
  language: null,
}

const read = (
  markup: string,
  contentType = 'text/html; charset=utf-8',
  url = 'http://b.test/d/e',
) => readPage(Buffer.from(markup), contentType, url)
const titleOf = async (markup: string, contentType?: string) =>
  (await read(markup, contentType)).title
const imageOf = async (markup: string, url?: string) => (await read(markup, undefined, url)).image

describe('a page', () => {
  it('that says everything is read', async () => {
    const markup = `<!doctype html>
      <html lang="pt-br"><head>
        <meta charset="utf-8">
        <title>
          Olá,   &lt;mundo&gt; &amp;amp; 😀
        </title>
        <meta name="description" content="What it &quot;is&quot;">
        <meta property="og:image" content="/i.png?a=1&amp;b=2#x">
        <meta property="og:site_name" content="The Site">
        <link rel="canonical" href="/page?x=1#top">
      </head><body><h1>Other</h1></body></html>`
    expect(await read(markup)).toEqual({
      title: 'Olá, <mundo> &amp; 😀',
      description: 'What it "is"',
      image: 'http://b.test/i.png?a=1&b=2#x',
      siteName: 'The Site',
      canonical: 'http://b.test/page?x=1',
      language: 'pt-BR',
    })
  })

  it.each(['', 'text', '<', '<html>', '<title>', '<meta>', '<link rel=canonical>', '<h1></h1>'])(
    'of %j says nothing, and never the text undefined',
    async (markup) => {
      expect(await read(markup)).toEqual(nothing)
    },
  )

  it('whose own address is none still says what needs no base', async () => {
    const page = await read('<title>A</title><meta property=og:image content=/x>', 'text/html', '')
    expect(page).toEqual({ ...nothing, title: 'A' })
  })
})

describe('the sources of a field', () => {
  /** Markup that says something in a source. */
  const saying = (source: string, value: string): string => {
    const element = /^text of <(title|h1)>$/.exec(source)?.[1]
    if (element !== undefined) return `<${element}>${value}</${element}>`
    const link = /^<link rel=(\S+)>$/.exec(source)?.[1]
    if (link !== undefined) return `<link rel="${link}" href="${value}">`
    const lang = /^<html (\S+)>$/.exec(source)?.[1]
    if (lang !== undefined) return `<html ${lang}="${value}">`
    const pragma = /^<meta http-equiv=(\S+)>$/.exec(source)?.[1]
    if (pragma !== undefined) return `<meta http-equiv="${pragma}" content="${value}">`
    return `<meta property="${source}" content="${value}">`
  }
  const names = Object.keys(pageFields) as (keyof PageFields)[]
  const valuesOf = (name: keyof PageFields) => {
    if (name === 'language') return ['de', 'fr', 'pt-BR', 'zh-Hant']
    const isAddress = name === 'image' || name === 'canonical'
    return ['a', 'b', 'c', 'd', 'e', 'f'].map((text) =>
      isAddress ? `http://b.test/${text}` : text,
    )
  }

  it.each(names)(
    'of %s are asked in their order, wherever they stand in the page',
    async (name) => {
      const { from } = pageFields[name]
      const values = valuesOf(name)
      const said = from.map((source, index) => saying(source, values[index] ?? ''))
      for (let first = 0; first < from.length; first++) {
        const value = values[first]
        expect((await read(said.slice(first).join('\n')))[name]).toBe(value)
        expect((await read(said.slice(first).toReversed().join('\n')))[name]).toBe(value)
      }
    },
  )

  it.each(names)('of %s that are empty or blank are passed over', async (name) => {
    const [value = ''] = valuesOf(name)
    for (const source of pageFields[name].from) {
      for (const blank of ['', '  \n', '&nbsp;', '&#8195;']) {
        const blanks = pageFields[name].from.map((other) => saying(other, blank).repeat(9)).join('')
        expect((await read(blanks))[name]).toBeNull()
        expect((await read(blanks + saying(source, value)))[name]).toBe(value)
      }
    }
  })

  it('URL-17: are those that docs/library.md names, in their order', () => {
    expect(Object.keys(nothing)).toEqual(names)
    const page = readFileSync(new URL('../../docs/library.md', import.meta.url), 'utf8')
    for (const name of names) {
      const [, cell = ''] = new RegExp(`^\\| \`${name}\` +\\|([^|]*)\\|`, 'm').exec(page) ?? []
      const named = Array.from(cell.matchAll(/`([^`]*)`/g), ([, source]) => source)
      expect(named).toEqual(pageFields[name].from.map((source) => source.replace('text of ', '')))
    }
  })

  it('are found by property or name, in any letter case, beside others', async () => {
    for (const attribute of ['property', 'name', 'PROPERTY', 'Name']) {
      expect(await titleOf(`<META ${attribute}=" OG:Title " CONTENT=A>`)).toBe('A')
    }
    const both = await read('<meta name=description property=og:title content=A>')
    expect(both).toMatchObject({ title: 'A', description: 'A' })
    expect(await titleOf('<meta name="text of <title>" content=A>')).toBeNull()
    const tokens = await read('<meta property="og:title og:description" content=A>')
    expect(tokens).toMatchObject({ title: 'A', description: 'A' })
  })

  it('of a link are its rel in any order and letter case', async () => {
    for (const rel of ['canonical', 'CANONICAL', 'nofollow canonical', ' \n canonical\tx ']) {
      expect((await read(`<link href=/x rel="${rel}">`)).canonical).toBe('http://b.test/x')
    }
    for (const rel of ['canonical2', 'x-canonical', 'canonical,x', 'alternate', '']) {
      expect((await read(`<link href=/x rel="${rel}">`)).canonical).toBeNull()
    }
    expect((await read('<a href=/x rel=canonical>')).canonical).toBeNull()
  })

  it('of which the first that is a value wins', async () => {
    const metas = ['data:,x', 'javascript:1', '/1.png', '/2.png'].map(
      (content) => `<meta property=og:image content="${content}">`,
    )
    expect(await imageOf(metas.join(''))).toBe('http://b.test/1.png')
    expect((await read('<html lang="?"><meta property=og:locale content=en_US>')).language).toBe(
      'en-US',
    )
    expect(await titleOf('<title>A</title><title>B</title>')).toBe('A')
    expect(await titleOf('<title></title><title>B</title><h1>C</h1>')).toBe('B')
  })
})

describe('the title', () => {
  const icon = '<svg><title>Icon</title></svg>'

  it.each([
    `<head><title>Page</title></head><body>${icon}`,
    `${icon}<head><title>Page</title></head>`,
    `<html><body>${icon}<title>Page</title>`,
    `${icon}${icon}<title>Page</title>`,
    `<head><title>Page</title></head><body>${icon}${icon}`,
    `${icon}<title>Page</title>${icon}`,
    `<svg><desc><title>x</title></desc><title>Icon</title></svg><title>Page</title>`,
    `<svg><foreignObject><title>x</title></foreignObject></svg><title>Page</title>`,
    `<svg class=logo /><title>Page</title>`,
    `<svg><svg><title>a</title></svg><title>b</title></svg><title>Page</title>`,
    `<math><title>x</title><annotation-xml><svg><title>y</title></svg></annotation-xml></math><title>Page</title>`,
    `<template><title>x</title></template><title>Page</title>`,
    `<noscript><title>x</title></noscript><title>Page</title>`,
    `<script>"<title>x</title>"</script><!-- <title>y</title> --><title>Page</title>`,
    `<svg><title>Icon</title><path d="M0 0"><p>text</p><title>Page</title>`,
    `<svg><title>Icon</title></svg><meta property="og:title" content="Page">`,
    `<svg><title>Icon</title></svg><h1>${icon}Page</h1>`,
  ])('URL-15: is the page’s, never a drawing’s: %s', async (markup) => {
    expect(await titleOf(markup)).toBe('Page')
    expect(await titleOf(markup, 'application/xhtml+xml')).toBe('Page')
  })

  it('URL-15: is none where only drawings have one', async () => {
    expect(await titleOf(`<body>${icon}${icon}`)).toBeNull()
  })

  const sources = [
    '<title>T</title>',
    '<meta property="og:title" content="Foo">',
    '<meta name="twitter:title" content="Bar">',
    '<h1>Baz</h1>',
  ]

  it('URL-17: falls back to og:title, twitter:title, the first <h1>, then to null', async () => {
    for (const empty of ['', '<title></title>', '<title> \n </title>', '<title>&#8203;</title>']) {
      const page = (first: number) => `${empty}${sources.slice(first).join('')}`
      expect(await titleOf(page(1))).toBe('Foo')
      expect(await titleOf(page(2))).toBe('Bar')
      expect(await titleOf(page(3))).toBe('Baz')
      expect(await titleOf(page(4))).toBeNull()
    }
    expect(await titleOf('<meta property=og:title><meta name=twitter:title content>')).toBeNull()
  })

  it.each([
    ['<h1> A <b>b</b>c\n d</h1>', 'A bc d'],
    ['<h1>A<br>B</h1>', 'A B'],
    ['<h1><p>A</p><p>B</p></h1>', 'A B'],
    ['<h1><img alt=x></h1><h1>B</h1>', 'B'],
    ['<h1>A<script>x</script><!-- y --></h1>', 'A'],
    ['<h1>A</h2>B', 'A'],
    ['<h1>A<h1>B', 'A'],
    ['<h1>A', 'A'],
    ['<h1>A<title></title>B</h1>', 'A'],
    ['<h2>A</h2>', null],
  ])('URL-17: of %s is %s', async (markup, is) => {
    expect(await titleOf(markup)).toBe(is)
  })

  it('has its entities decoded once', async () => {
    expect(
      await titleOf('<title>&amp;lt; &#x1F600; &eacute;&hellip; &copy &unknown;</title>'),
    ).toBe('&lt; 😀 é… © &unknown;')
    const meta = '<meta property=og:title content="&amp;amp; &lt;b&gt; &copy=1 &#0;">'
    expect(await titleOf(meta)).toBe('&amp; <b> &copy=1 \uFFFD')
  })

  it('is one line of at most 300 characters, no emoji cut apart', async () => {
    const long = await titleOf(`<title>${'x'.repeat(299)}👩‍👩‍👧</title>`)
    expect(long).toBe('x'.repeat(299))
    expect(await titleOf(`<h1>${'ab '.repeat(400_000)}</h1>`)).toBe('ab '.repeat(100).trim())
    expect(await titleOf(`<title>${'x'.repeat(1_000_000)}`)).toBe('x'.repeat(300))
  })
})

describe('other texts', () => {
  it('are bounded each by their own length', async () => {
    const long = 'x'.repeat(5000)
    const page = await read(
      `<meta name=description content=${long}><meta property=og:site_name content=${long}>`,
    )
    expect([page.description?.length, page.siteName?.length]).toEqual([1000, 200])
  })

  it('have no control characters and no marks that turn the direction', async () => {
    const { description } = await read(
      '<meta name=description content="a\u202Eb\u2028c&#8206;&#7;d\u00A0\t\ne&#xD800;">',
    )
    expect(description).toBe('ab cd e\uFFFD')
  })

  it('count anywhere in the page, but not in what is not the page', async () => {
    expect((await read('<body><p><meta name=description content=A>')).description).toBe('A')
    for (const tag of ['svg', 'math', 'template', 'noscript', 'script', 'iframe', 'xmp']) {
      const inside = tag === 'svg' ? '<desc><meta name=description content=A></desc>' : ''
      const meta = inside || '<meta name=description content=A>'
      const wrapped = tag === 'math' ? `<mi>${meta}</mi>` : meta
      expect((await read(`<${tag}>${wrapped}</${tag}>`)).description).toBeNull()
    }
  })
})

describe('addresses', () => {
  const og = (content: string) => `<meta property="og:image" content="${content}">`

  it('URL-19: are resolved against where the last redirect led', async () => {
    expect(await imageOf(og('img/p.png'), 'http://b.test/d/e')).toBe('http://b.test/d/img/p.png')
  })

  it('URL-19: are resolved against <base>, itself resolved, wherever it stands', async () => {
    const base = '<base href="/r/">'
    expect(await imageOf(base + og('img/p.png'))).toBe('http://b.test/r/img/p.png')
    expect(await imageOf(og('img/p.png') + base)).toBe('http://b.test/r/img/p.png')
    expect(await imageOf(`<base href="//c.test/q">${og('p.png')}`)).toBe('http://c.test/p.png')
    expect(await imageOf(`<base target=_top>${base}${og('p')}`)).toBe('http://b.test/r/p')
  })

  it.each([
    '',
    'javascript:1',
    'data:text/html,x',
    'http://u:p@c.test/',
    'http://[',
    'ftp://c.test/',
  ])('URL-19: are resolved as if there were no <base> where the first is %j', async (href) => {
    const markup = `<base href="${href}"><base href="/r/">${og('p.png')}`
    expect(await imageOf(markup)).toBe('http://b.test/d/p.png')
  })

  it('URL-19: do not heed a <base> in a drawing or a template', async () => {
    const hidden = '<template><base href=/x/></template><svg><desc><base href=/y/></desc></svg>'
    expect(await imageOf(hidden + og('p.png'))).toBe('http://b.test/d/p.png')
  })

  it('URL-19: without a scheme keep that of the page', async () => {
    expect(await imageOf(og('//c.test/i'))).toBe('http://c.test/i')
    expect(await imageOf(og('//c.test/i'), 'https://b.test/')).toBe('https://c.test/i')
  })

  it.each([
    'javascript:1',
    'data:image/png,x',
    ' JAVASCRIPT:1',
    'java&#10;script:1',
    '&#1;data:,x',
  ])('URL-19: of %s are dropped, and the next source is asked', async (bad) => {
    expect(await imageOf(og(bad))).toBeNull()
    expect(await imageOf(`${og(bad)}<meta name=twitter:image content=/t.png>`)).toBe(
      'http://b.test/t.png',
    )
    expect((await read(`<link rel=canonical href="${bad}">`)).canonical).toBeNull()
  })

  it('URL-19: of a canonical page have no fragment', async () => {
    expect((await read('<link rel=canonical href="#a">')).canonical).toBe('http://b.test/d/e')
    expect((await read('<meta property=og:url content="/x?y#z">')).canonical).toBe(
      'http://b.test/x?y',
    )
  })
})

describe('XHTML', () => {
  const xhtml = 'application/xhtml+xml; charset=utf-8'

  it('is read with its own ways to write a title and a language', async () => {
    const markup = `<?xml version="1.0" encoding="utf-8"?>
      <!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
      <html xmlns="http://www.w3.org/1999/xhtml" xml:lang="de-at"><head>
      <script src="a.js"/><style/><title><![CDATA[A & <B>]]> &amp; C</title>
      <base href="/r/"/><link rel="canonical" href="x"/></head><body><noscript/></body></html>`
    expect(await read(markup, xhtml)).toEqual({
      ...nothing,
      title: 'A & <B> & C',
      canonical: 'http://b.test/r/x',
      language: 'de-AT',
    })
  })

  it('with an empty <title/> goes on, where HTML would take the rest for the title', async () => {
    const markup = '<html><head><title/><meta property="og:title" content="A"/></head></html>'
    expect(await titleOf(markup, xhtml)).toBe('A')
    expect(await titleOf(markup, 'text/html; x=xml')).toBe(
      '<meta property="og:title" content="A"/></head></html>',
    )
  })
})

describe('a page that is read', () => {
  it('lets other work have its turn after each slice', async () => {
    const body = Buffer.alloc(1_000_000, '<p>text ')
    let turns = 0
    let isReading = true
    const count = () => {
      turns++
      if (isReading) setImmediate(count)
    }
    setImmediate(count)
    await readPage(body, 'text/html', 'http://b.test/')
    isReading = false
    expect(turns).toBeGreaterThanOrEqual(29)
    expect(turns).toBeLessThanOrEqual(35)
  })

  it('is not kept alive by what was read of it', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const body = Buffer.from(`<meta name=description content="${'ж'.repeat(499_000)}">`)
    const kept: PageFields[] = []
    for (let count = 0; count < 20; count++) {
      kept.push(await readPage(body, 'text/html', 'http://b.test/'))
    }
    collect()
    const before = process.memoryUsage().heapUsed
    expect(kept.map(({ description }) => description?.length)).toEqual(Array(20).fill(1000))
    kept.length = 0
    collect()
    // 20 pages would be 20 MB; a thousand characters each are nothing.
    expect(before - process.memoryUsage().heapUsed).toBeLessThan(5_000_000)
  })

  it('says the same however its bytes are cut off behind what matters', async () => {
    const head = Buffer.from('<title>Straße</title><meta name=description content="é">')
    const rest = fc.uint8Array({ maxLength: 50 })
    await fc.assert(
      fc.asyncProperty(rest, async (bytes) => {
        const page = await readPage(Buffer.concat([head, bytes]), null, 'http://b.test/')
        expect(page).toMatchObject({ title: 'Straße', description: 'é' })
      }),
      { numRuns: 500 },
    )
  })
})

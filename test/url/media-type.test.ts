/*
 * Which answers are pages: by what they say they are, and by how they begin where they say nothing.
 */
import { describe, expect, it } from 'vitest'
import { allClosed, endless, fetcherFor, textOf, webServer, type Answer } from '../support/web.js'

const html = '<title>Page</title>'
const ok = (fields: string, text = html) => `HTTP/1.1 200 OK\r\n${fields}\r\n${text}`

async function fetched(answer: Answer | string) {
  const web = await webServer(answer)
  const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
  await allClosed(web)
  return found
}

describe('an answer that is no page', () => {
  it.each(['application/pdf', 'video/mp4', 'image/png', 'application/json', 'text/plain', 'a/b;c'])(
    'URL-20: %s is given as a type with an empty body, and not read',
    async (type) => {
      const piece = Buffer.alloc(65_536, 'a')
      const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n`
      for (const length of ['', 'Content-Length: 9999999999\r\n']) {
        const found = await fetched(endless(`${head}${length}\r\n`, piece))
        expect(found).toMatchObject({ contentType: type, truncated: false })
        expect(found.body.length).toBe(0)
      }
    },
  )

  it('URL-20: is cut after its head, with at most 64 KB behind it', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n'
    let answeredCount = 0
    const web = await webServer(async (socket) => {
      socket.write(head)
      // As fast as it is taken: each piece waits for the one before to be out.
      for (let count = 0; count < 200 && !socket.destroyed; count++) {
        await new Promise((settle) => socket.write(Buffer.alloc(1_024), settle))
        await new Promise((settle) => setTimeout(settle, 2))
        answeredCount++
      }
    })
    await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
    await allClosed(web)
    expect(answeredCount).toBeLessThan(64)
  })

  it('may be packed in any way', async () => {
    const found = await fetched(ok('Content-Type: image/png\r\nContent-Encoding: zstd\r\n'))
    expect(found).toMatchObject({ contentType: 'image/png' })
  })

  it.each([204, 205])('because it is a %i is an empty page', async (status) => {
    const found = await fetched(`HTTP/1.1 ${status} Nothing\r\nContent-Type: text/html\r\n\r\n`)
    expect(found).toMatchObject({ contentType: 'text/html', truncated: false })
    expect(found.body.length).toBe(0)
  })
})

describe('a page', () => {
  it.each([
    'text/html',
    'TEXT/HTML; Charset="UTF-8"; x=y',
    'text/html;charset=windows-1251',
    ' \ttext/html ; charset=utf-8',
    'Application/XHTML+XML; charset=utf-8',
  ])('URL-20: is %j', async (type) => {
    const found = await fetched(ok(`Content-Type: ${type}\r\n`))
    expect(textOf(found)).toBe(html)
    expect(found.contentType).toBe(type.trim())
  })

  it.each([200, 201, 203, 206, 226, 299])('comes with status %i', async (status) => {
    const found = await fetched(`HTTP/1.1 ${status} Fine\r\nContent-Type: text/html\r\n\r\n${html}`)
    expect(textOf(found)).toBe(html)
  })

  it('has its type on one line, cut', async () => {
    const type = `text/html;\ta="${'x'.repeat(5_000)}"`
    const found = await fetched(ok(`Content-Type: ${type}\r\n`))
    expect(found.contentType).toBe(`text/html; a="${'x'.repeat(242)}`)
  })

  it('is what the first of two types says', async () => {
    const found = await fetched(ok('Content-Type: text/html\r\nContent-Type: image/png\r\n'))
    expect([textOf(found), found.contentType]).toEqual([html, 'text/html'])
  })
})

describe('without a type', () => {
  it.each([
    '<!DOCTYPE html>',
    '<!doctype HTML >',
    '<html>',
    '<HEAD >',
    '<title>x',
    '<!--x',
    '<p>',
    ' \t\r\n<body>',
    '\xef\xbb\xbf<html>',
    '\xef\xbb\xbf\n <html>',
    '<a href="x">',
    '<script>',
    '<meta charset=utf-8>',
    '<LINK rel=icon>',
    '<base href=/>',
  ])('URL-20: %j is a page', async (start) => {
    for (const fields of [
      '',
      'Content-Type:\r\n',
      'Content-Type: html\r\n',
      'Content-Type: ;\r\n',
      'Content-Type: */*\r\n',
      'Content-Type: Application/Unknown; a=b\r\n',
      'Content-Type: unknown/unknown\r\n',
    ]) {
      const text = Buffer.from(start + html, 'latin1').toString('latin1')
      const found = await fetched(ok(fields, text))
      expect(Buffer.from(found.body).toString('latin1')).toBe(text)
    }
  })

  it.each([
    '',
    'plain',
    '%PDF-1.7',
    '\x89PNG\r\n',
    '{"a":1}',
    '<htmlx>',
    '<?xml version="1.0"?>',
    '<',
  ])('URL-20: %j is none', async (text) => {
    const found = await fetched(ok('', text))
    expect(found).toMatchObject({ contentType: null, truncated: false })
    expect(found.body.length).toBe(0)
  })

  it('URL-20: what does not begin as a page is read no further', async () => {
    const web = await webServer(endless(ok('', ''), Buffer.alloc(1_024, ' ')))
    const fetcher = fetcherFor([web], { bytesMax: 1_000_000_000 })
    const found = await fetcher.fetch(new URL(`http://a.example:${web.port}/`))
    expect(found).toMatchObject({ contentType: null, truncated: false })
    expect(found.body.length).toBe(0)
    await allClosed(web)
  })

  it('URL-20: a page is limited by the same cap', async () => {
    const found = await fetched(endless(ok('', '<html>'), Buffer.alloc(65_536, 'a')))
    expect([found.body.length, found.truncated]).toEqual([1_000_000, true])
  })
})

/*
 * What may be asked for by its text, and where redirects may lead by theirs.
 */
import { describe, expect, it } from 'vitest'
import { readRedirect, readTarget, urlLengthMax } from '../../src/url/target.js'
import { failureBy } from '../support/web.js'

describe('a target', () => {
  it.each([
    ['HTTPS://Example.COM:443/Path?q=A#top', 'https://example.com/Path?q=A'],
    ['http://example.com#', 'http://example.com/'],
    ['  http://example.com/\t\n ', 'http://example.com/'],
    ['http://exa\nmple.com/', 'http://example.com/'],
    ['http:\\\\example.com\\a', 'http://example.com/a'],
    ['http://example.com\\@127.0.0.1/', 'http://example.com/@127.0.0.1/'],
    ['http://@example.com/', 'http://example.com/'],
    ['http://bücher.example/ü', 'http://xn--bcher-kva.example/%C3%BC'],
    ['http://2130706433/', 'http://127.0.0.1/'],
    ['http://%31%32%37.1/', 'http://127.0.0.1/'],
  ])('%j is %s', (text, href) => {
    expect(readTarget(text).href).toBe(href)
  })

  it.each([
    undefined,
    null,
    7,
    {},
    ['http://example.com/'],
    '',
    'example.com',
    '/page',
    '//example.com',
    'http://',
    'http://?',
    'http://a b/',
    'http://[::1',
    'http://[fe80::1%25eth0]/',
    'http://1.2.3.4.5/',
    'http://256.0.0.1/',
    'http://example.com:65536/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:text/html,hello',
    'gopher://example.com/',
    'unix:/var/run/docker.sock',
    'localhost:3000',
    'view-source:http://example.com/',
  ])('%j is refused, and the message says what would be right', (text) => {
    const { reason, status, message } = failureBy(() => readTarget(text))
    expect({ reason, status }).toEqual({ reason: 'url', status: 400 })
    expect(message).toMatch(/^url must be an http or https address such as .*: received /)
  })

  it.each(['http://user@example.com/', 'http://user:secret@example.com/', 'http://:secret@x.y/'])(
    '%s is refused without a word of what it holds',
    (text) => {
      const { reason, message } = failureBy(() => readTarget(text))
      expect(reason).toBe('url')
      expect(message).toBe('url must hold no user name or password')
    },
  )

  it('has a bounded length, before and after parsing, and no message grows with it', () => {
    const longest = 'http://example.com/'.padEnd(urlLengthMax, 'a')
    expect(readTarget(longest).href).toBe(longest)
    const growing = `http://example.com/${'ü'.repeat(3_000)}`
    for (const text of [`${longest}a`, growing, 'a'.repeat(1_000_000)]) {
      const { reason, message } = failureBy(() => readTarget(text))
      expect(reason).toBe('url')
      expect(message).toMatch(/^url must have at most 8192 characters: received \d+$/)
    }
    expect(failureBy(() => readTarget('x'.repeat(8_000))).message.length).toBeLessThan(200)
  })
})

describe('a redirect', () => {
  const from = new URL('http://a.example/b/c?d')

  it.each([
    ['e#f', 'http://a.example/b/e'],
    ['/e', 'http://a.example/e'],
    ['?e', 'http://a.example/b/c?e'],
    ['//g.example', 'http://g.example/'],
    ['https://g.example/ü', 'https://g.example/%C3%BC'],
  ])('to %s leads to %s', (location, href) => {
    expect(readRedirect(location, from).href).toBe(href)
  })

  it.each([
    [undefined, 'redirects'],
    ['', 'redirects'],
    ['http://', 'redirects'],
    ['http://1.2.3.4.5/', 'redirects'],
    [`/${'a'.repeat(urlLengthMax)}`, 'redirects'],
    ['ftp://g.example/', 'blocked'],
    ['file:///etc/passwd', 'blocked'],
    ['javascript:alert(1)', 'blocked'],
    ['data:text/html,x', 'blocked'],
    ['http://user:secret@g.example/', 'blocked'],
    ['//user@g.example/', 'blocked'],
  ])('to %s fails: %s', (location, reason) => {
    expect(failureBy(() => readRedirect(location, from)).reason).toBe(reason)
  })
})

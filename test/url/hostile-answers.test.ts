/*
 * Answers that are meant to confuse: each ends as a page or as a UrlFailure, nothing is left open, and
 * nothing goes past the promise as an uncaught error, which vitest would report.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { UrlFailure } from '../../src/url/failure.js'
import {
  allClosed,
  failureOf,
  fetcherFor,
  htmlHead,
  page,
  reasonOf,
  textOf,
  webServer,
} from '../support/web.js'

describe('an answer', () => {
  it.each([
    ['that is HTTP/0.9', '<html><title>x</title>'],
    ['that is empty', ''],
    ['that is a line', 'HTTP/1.1 200 OK'],
    ['that is a head without end', 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n'],
    ['of another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['of another server', '-ERR unknown command\r\n'],
    ['of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['in TLS', '\x15\x03\x01\x00\x02\x02\x28'],
    ['with a status that is none', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['with two lengths', `${htmlHead}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    ['with a length of letters', `${htmlHead}Content-Length: ten\r\n\r\nab`],
    ['with a length below zero', `${htmlHead}Content-Length: -1\r\n\r\nab`],
    [
      'with a length and chunks',
      `${htmlHead}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0`,
    ],
    ['with a folded field', 'HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n a=b\r\n\r\nab'],
    ['with a field that is none', 'HTTP/1.1 200 OK\r\nno field\r\n\r\nab'],
    ['with a zero byte', 'HTTP/1.1 200 OK\r\na: b\0c\r\n\r\nab'],
    ['with bare line feeds', 'HTTP/1.1 200 OK\nContent-Type: text/html\n\nab'],
    [
      'that takes another protocol',
      'HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nab',
    ],
    ['of nothing but hints', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  ])('%s is none', async (_, answer) => {
    const web = await webServer(answer)
    const failure = await failureOf(
      fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`)),
    )
    expect(failure).toMatchObject({
      reason: 'connect',
      message: 'The host gave no answer that is HTTP',
    })
    await allClosed(web)
  })

  it.each([
    ['after early hints', `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${page('x')}`],
    ['after a hundred informational ones', `${'HTTP/1.1 100 Go\r\n\r\n'.repeat(100)}${page('x')}`],
    ['after empty lines', `\r\n\r\n${page('x')}`],
    ['with another behind it', `${page('x')}${page('y')}`],
    ['with garbage behind it', `${page('x')}\0\0\0`],
    ['with trailers', `${htmlHead}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-T: a\r\n\r\n`],
    [
      'in chunks with extensions',
      `${htmlHead}Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n`,
    ],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\nx'],
    [
      'that would be kept alive',
      page('x').replace('Content-L', 'Connection: keep-alive\r\nContent-L'),
    ],
    ['with two thousand fields', `${htmlHead}${'a: b\r\n'.repeat(1_990)}\r\nx`],
    ['that sets cookies', `${htmlHead}Set-Cookie: __proto__=x\r\n__proto__: y\r\n\r\nx`],
  ])('%s is a page', async (_, answer) => {
    const web = await webServer(answer)
    const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
    expect(textOf(found)).toBe('x')
    await allClosed(web)
  })

  it('that comes before the request is taken as it is, and nothing hangs', async () => {
    for (const [answer, outcome] of [
      [page('x'), 'x'],
      ['SSH-2.0-OpenSSH_9.6\r\n', 'connect'],
    ] as const) {
      const server = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.end(answer)
      }).listen(0, '127.0.0.1')
      await once(server, 'listening')
      onTestFinished(() => void server.close())
      const { port } = server.address() as AddressInfo
      const fetching = fetcherFor([{ port }]).fetch(new URL(`http://a.example:${port}/`))
      expect(await fetching.then(textOf, ({ reason }: UrlFailure) => reason)).toBe(outcome)
    }
  })

  it('has a connection of its own, however many are asked for at once', async () => {
    const web = await webServer(page('x'))
    const urls = Array.from({ length: 20 }, () => new URL(`http://a.example:${web.port}/`))
    const fetcher = fetcherFor([web])
    const pages = await Promise.all(urls.map((url) => fetcher.fetch(url)))
    expect(pages.map(textOf)).toEqual(urls.map(() => 'x'))
    expect(web.connectionCount).toBe(20)
    await allClosed(web)
  })

  it('of garbage, in pieces, ends as a page or a failure', async () => {
    const parts = fc.constantFrom(
      'HTTP/1.1 ',
      '200',
      ' OK',
      '\r\n',
      '\r\n\r\n',
      'HTTP/1.1 200 OK\r\n',
      htmlHead,
      '\n',
      '\0',
      'Content-Length: 5\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Content-Encoding: gzip\r\n',
      'Content-Encoding: deflate\r\n',
      'Content-Encoding: br\r\n',
      'Connection: upgrade\r\n',
      'Upgrade: h2c\r\n',
      'Location: /\r\n',
      'HTTP/1.1 302 Found\r\n',
      '5\r\nhello\r\n',
      '0\r\n',
      '\x1f\x8b\x08\0\0\0\0\0\0\x03',
      '\x78\x9c',
      '\xff\xff',
      'a',
      '103',
      '<html>',
      ': ',
      ';',
    )
    let texts: string[] = []
    let isReset = false
    const web = await webServer(async (socket) => {
      for (const text of texts) {
        socket.write(text, 'latin1')
        await new Promise((settle) => setImmediate(settle))
      }
      if (isReset) socket.resetAndDestroy()
      else socket.end()
    })
    const fetcher = fetcherFor([web], { timeoutMs: 1_000 })
    const tries = fc.asyncProperty(
      fc.array(parts, { maxLength: 12 }),
      fc.boolean(),
      async (...made) => {
        ;[texts, isReset] = made
        const url = new URL(`http://a.example:${web.port}/`)
        await fetcher.fetch(url).catch((error: unknown) => {
          if (!(error instanceof UrlFailure)) throw error
        })
      },
    )
    const settings = { numRuns: 1_500, interruptAfterTimeLimit: 6_000 }
    await expect(fc.assert(tries, settings)).resolves.toBeUndefined()
    await allClosed(web)
  })
})

describe('a target that never went through readTarget', () => {
  it.each(['ftp://a.example/', 'http://user:pw@a.example/', `http://a/${'x'.repeat(9_000)}`])(
    '%.40s is refused all the same',
    async (text) => {
      expect(await reasonOf(fetcherFor([]).fetch(new URL(text)))).toBe('url')
    },
  )

  it('is not changed', async () => {
    const web = await webServer(page('x'))
    const url = new URL(`http://a.example:${web.port}/#part`)
    await fetcherFor([web]).fetch(url)
    expect(url.hash).toBe('#part')
  })
})

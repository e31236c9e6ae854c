/*
 * One deadline from the first look-up to the last byte, whatever a server does; and what `close` ends.
 * Nothing stays open afterwards.
 */
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { UrlFailure } from '../../src/url/failure.js'
import { certificate } from '../support/certificates.js'
import {
  allClosed,
  failureOf,
  fetcherFor,
  htmlHead,
  page,
  redirect,
  webServer,
  type Answer,
} from '../support/web.js'

/** Writes a piece at once and again after each interval. */
const drip =
  (head: string, piece: string, everyMs: number): Answer =>
  (socket) => {
    socket.write(head + piece, 'latin1')
    const timer = setInterval(() => socket.write(piece, 'latin1'), everyMs)
    socket.on('close', () => clearInterval(timer))
  }

const manners: Readonly<Record<string, Answer>> = {
  'says nothing': () => undefined,
  'drips its head': drip('HTTP/1.1 200 OK\r\n', 'a: b\r\n', 20),
  'drips one field of its head': drip('HTTP/1.1 200 OK\r\na: ', 'b', 20),
  'drips empty lines before its head': drip('', '\r\n', 20),
  'drips informational answers': drip('', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', 20),
  'drips its body': drip(`${htmlHead}\r\n`, 'a', 20),
  'drips its body in chunks': drip(
    `${htmlHead}Transfer-Encoding: chunked\r\n\r\n`,
    '1\r\na\r\n',
    20,
  ),
  'drips a body packed in nothing': drip(
    `${htmlHead}Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03`,
    '\0\0\0\xff\xff',
    20,
  ),
  'drips a body of no known type': drip('HTTP/1.1 200 OK\r\n\r\n', ' ', 20),
  'drips the trailer of its body': drip(
    `${htmlHead}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n`,
    'a: b\r\n',
    20,
  ),
  'sends a head and no body': (socket) => void socket.write(`${htmlHead}Content-Length: 9\r\n\r\n`),
  'redirects slowly, again and again': (socket) =>
    void setTimeout(() => socket.end(redirect('/')), 90),
}

async function timed(work: Promise<unknown>): Promise<[UrlFailure, number]> {
  const startMs = performance.now()
  const failure = await failureOf(work)
  return [failure, performance.now() - startMs]
}

describe('the deadline', () => {
  it('URL-09: is five seconds for a body, a head and an answer that drip or never come', async () => {
    const cases = [
      drip(`${htmlHead}\r\n`, 'a', 2_000),
      drip('HTTP/1.1 200 OK\r\n', 'a: b\r\n', 2_000),
      () => undefined,
      (socket: net.Socket) => void setTimeout(() => socket.end(redirect('/')), 1_500),
    ]
    const ends = cases.map(async (answer) => {
      const web = await webServer(answer)
      const fetching = fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
      const [failure, ms] = await timed(fetching)
      expect(failure).toMatchObject({ reason: 'timeout', status: 504 })
      expect(failure.message).toBe('The page was not there within 5000 ms')
      expect(ms).toBeGreaterThan(4_500)
      expect(ms).toBeLessThan(5_500)
      await allClosed(web)
    })
    await Promise.all(ends)
  })

  it.each(Object.entries(manners))('ends a server that %s', async (_, answer) => {
    const web = await webServer(answer)
    const fetcher = fetcherFor([web], { timeoutMs: 200 })
    const [failure, ms] = await timed(fetcher.fetch(new URL(`http://a.example:${web.port}/`)))
    expect(failure.reason).toBe('timeout')
    expect(ms).toBeGreaterThan(195)
    expect(ms).toBeLessThan(900)
    await allClosed(web)
  })

  it.each([
    ['says nothing to TLS', ''],
    ['drips a TLS record', '\x16\x03\x03\x40\x00'],
  ])('ends a server that %s', async (_, text) => {
    let openCount = 0
    const server = net.createServer((socket) => {
      openCount++
      socket.on('error', () => undefined)
      socket.write(text, 'latin1')
      const timer = setInterval(() => socket.write(text.slice(-1), 'latin1'), 20)
      socket.on('close', () => {
        openCount--
        clearInterval(timer)
      })
      socket.resume()
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void server.close())
    const { port } = server.address() as net.AddressInfo
    const fetcher = fetcherFor([{ port }], { timeoutMs: 200 })
    const [failure, ms] = await timed(fetcher.fetch(new URL(`https://a.example:${port}/`)))
    expect(failure.reason).toBe('timeout')
    expect(ms).toBeLessThan(900)
    await vi.waitFor(() => expect(openCount).toBe(0))
  })

  it('ends a body that drips through TLS', async () => {
    const certified = certificate({ names: ['a.example'] })
    const web = await webServer(drip(`${htmlHead}\r\n`, 'a', 20), certified)
    const fetcher = fetcherFor([web], { timeoutMs: 200, ca: [certified.cert] })
    const [failure] = await timed(fetcher.fetch(new URL(`https://a.example:${web.port}/`)))
    expect(failure.reason).toBe('timeout')
    await allClosed(web)
  })

  it('ends a connection that is never made', async () => {
    const spy = vi.spyOn(net, 'connect').mockImplementation(() => new net.Socket())
    onTestFinished(() => spy.mockRestore())
    const resolve = () => Promise.resolve(['8.8.8.8', '8.8.4.4', '1.1.1.1'])
    const fetcher = fetcherFor([], { timeoutMs: 400, resolve })
    const [failure, ms] = await timed(fetcher.fetch(new URL('http://a.example/')))
    expect(failure.reason).toBe('timeout')
    expect(ms).toBeLessThan(900)
    expect(spy.mock.results.map(({ value }) => (value as net.Socket).destroyed)).toEqual([
      true,
      true,
    ])
  })

  it('counts the look-up too, which cannot be ended and is left', async () => {
    const fetcher = fetcherFor([], { timeoutMs: 200, resolve: () => new Promise(() => undefined) })
    const [failure, ms] = await timed(fetcher.fetch(new URL('http://a.example/')))
    expect(failure.reason).toBe('timeout')
    expect(ms).toBeLessThan(900)
  })

  it('leaves no timer behind, and tells a resolver that nobody waits any more', async () => {
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const web = await webServer(page('x'))
    const signals: AbortSignal[] = []
    const resolve = (_: string, signal: AbortSignal) => {
      signals.push(signal)
      return Promise.resolve(['127.0.0.1'])
    }
    const fetcher = fetcherFor([web], { resolve })
    const timerCount = timers()
    await fetcher.fetch(new URL(`http://a.example:${web.port}/`))
    expect(timers()).toBe(timerCount)
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  })

  it('leaves what was fetched in time alone', async () => {
    const web = await webServer((socket) => void setTimeout(() => socket.end(page('x')), 100))
    const fetcher = fetcherFor([web], { timeoutMs: 200 })
    const url = new URL(`http://a.example:${web.port}/`)
    expect((await fetcher.fetch(url)).body.length).toBe(1)
    await delay(150)
    expect((await fetcher.fetch(url)).body.length).toBe(1)
  })
})

describe('close', () => {
  it('ends what is running, wherever it is, and starts nothing more', async () => {
    const servers = await Promise.all([
      ...Object.values(manners).map((answer) => webServer(answer)),
      webServer(page('never')),
    ])
    const never = servers.pop() ?? { port: 0, connectionCount: 0 }
    const resolve = (host: string): Promise<string[]> =>
      host === 'slow.example' ? new Promise(() => undefined) : Promise.resolve(['127.0.0.1'])
    const fetcher = fetcherFor([...servers, never], { resolve })
    const urls = servers.map(({ port }) => `http://a.example:${port}/`)
    const running = [...urls, 'http://slow.example/'].map((url) =>
      failureOf(fetcher.fetch(new URL(url))),
    )
    await vi.waitFor(() => expect(servers.every(({ requests }) => requests.length > 0)).toBe(true))
    await fetcher.close()
    for (const failure of await Promise.all(running)) {
      expect(failure).toMatchObject({
        reason: 'connect',
        message: 'Nothing is fetched any more: it was closed',
      })
    }
    await allClosed(...servers)
    const late = await failureOf(fetcher.fetch(new URL(`http://a.example:${never.port}/`)))
    expect(late.reason).toBe('connect')
    expect(never.connectionCount).toBe(0)
    expect((await failureOf(fetcher.fetch(new URL('http://slow.example/')))).reason).toBe('connect')
    await fetcher.close()
  })

  it('of an idle fetcher is done at once', async () => {
    await fetcherFor([]).close()
    expect(process.getActiveResourcesInfo()).not.toContain('TCPSocketWrap')
  })
})

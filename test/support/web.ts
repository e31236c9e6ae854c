/*
 * The web as a fetch meets it, on this machine: servers that send what a test writes to the socket byte for
 * byte, and count what they see, and a fetcher that may reach these and nothing else inside. Nothing of the
 * guard is switched off: each server's address and port is an allowance, and names come from a resolver.
 */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { expect, onTestFinished, vi } from 'vitest'
import { UrlFailure } from '../../src/url/failure.js'
import { PageFetcher, type FetcherOptions } from '../../src/url/fetch-page.js'
import type { Certified } from './certificates.js'

/** What a server does with a request, given as text. */
export type Answer = (socket: Socket, request: string) => unknown

export interface WebServer {
  readonly port: number
  /** Of all connections there were, and of those that are open. */
  connectionCount: number
  openCount: number
  /** Every byte that came in, after TLS. */
  received: string
  /** What servers names were asked for by TLS; false for none. */
  readonly serverNames: (string | false)[]
  /** The requests, one for each connection. */
  readonly requests: string[]
}

/** @param answer a text is the whole answer, after which the server closes. */
export async function webServer(answer: Answer | string, tls?: Certified): Promise<WebServer> {
  const state = { connectionCount: 0, openCount: 0, received: '', serverNames: [], requests: [] }
  const web: WebServer = { port: 0, ...state }
  const sockets = new Set<Socket>()
  const talk = (socket: Socket) => {
    socket.on('error', () => undefined)
    let request = ''
    socket.setEncoding('latin1').on('data', (text: string) => {
      web.received += text
      const isComplete = request.endsWith('\r\n\r\n')
      request += text
      if (isComplete || !request.endsWith('\r\n\r\n')) return
      web.requests.push(request)
      if (typeof answer === 'string') socket.end(answer, 'latin1')
      else void answer(socket, request)
    })
  }
  const server = tls === undefined ? createServer(talk) : createTlsServer(tls, talk)
  server.on('secureConnection', ({ servername }: TLSSocket & { servername: string | false }) => {
    web.serverNames.push(servername)
  })
  server.on('connection', (socket: Socket) => {
    web.connectionCount++
    web.openCount++
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => web.openCount--)
  })
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return Object.assign(web, { port: (server.address() as AddressInfo).port })
}

/** Reaches the servers, each on its own port; every name ends in one of them, at 127.0.0.1. */
export function fetcherFor(
  servers: readonly { port: number }[],
  options: FetcherOptions = {},
): PageFetcher {
  const fetcher = new PageFetcher({
    allow: servers.map(({ port }) => `127.0.0.1/32:${port}`),
    resolve: () => Promise.resolve(['127.0.0.1']),
    ...options,
  })
  onTestFinished(() => fetcher.close())
  return fetcher
}

/** Waits until the servers see no connection any more. */
export async function allClosed(...servers: readonly WebServer[]): Promise<void> {
  const isClosed = () =>
    expect(servers.map(({ openCount }) => openCount)).toEqual(servers.map(() => 0))
  await vi.waitFor(isClosed, { interval: 2 })
}

/** The failure that something ends with; ending in anything else is an error. */
export async function failureOf(work: Promise<unknown>): Promise<UrlFailure> {
  try {
    await work
  } catch (error) {
    if (error instanceof UrlFailure) return error
    throw error
  }
  throw new Error('it did not fail')
}

/** The same of what fails at once. */
export function failureBy(work: () => unknown): UrlFailure {
  try {
    work()
  } catch (error) {
    if (error instanceof UrlFailure) return error
    throw error
  }
  throw new Error('it did not fail')
}

export async function reasonOf(work: Promise<unknown>): Promise<string> {
  return (await failureOf(work)).reason
}

/** The head of an answer with an HTML page, up to its body. */
export const htmlHead = 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n'

/** A whole answer with a page; a redirect with a Location. */
export const page = (html: string) => `${htmlHead}Content-Length: ${html.length}\r\n\r\n${html}`
export const redirect = (location: string, status = 302) =>
  `HTTP/1.1 ${status} Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`

/** Sends `head`, then `piece` again and again for as long as anyone reads. */
export function endless(head: string, piece: Buffer): Answer {
  return (socket) => {
    socket.write(head, 'latin1')
    const write = (): void => {
      while (!socket.destroyed && socket.write(piece)) continue
    }
    socket.on('drain', write)
    write()
  }
}

export const textOf = ({ body }: { body: Uint8Array }) => Buffer.from(body).toString('utf8')

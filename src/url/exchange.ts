/*
 * One GET over a connection that is there already, to the head of its answer. Node's own HTTP client writes
 * and parses; it is given the socket and never dials. The header fields are few and the same for everyone:
 * nothing of the client on whose behalf this happens goes out. What comes in is bounded whatever it is,
 * head, informational answers and the framing of the body included.
 */
import { request, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { UrlFailure } from './failure.js'

/** Marks each request of a fetch, so that a route that fetches can refuse to be fetched in turn. */
export const fetchMarkerHeader = 'tallygate-fetch'

export const headBytesMax = 32 * 1_024

const fixedHeaders = {
  'user-agent': 'tallygate (url-parser)',
  accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.1',
  // Not brotli: a page chooses the window that unpacking it takes, up to 16 MB.
  'accept-encoding': 'gzip, deflate',
  [fetchMarkerHeader]: '1',
  // One connection for one request: nothing that came before or after can be mixed up with it.
  connection: 'close',
}

/** What a socket is destroyed with when it brought more than may be read of it. */
class WireSpent extends Error {}

export function isWireSpent({ errored }: Socket): boolean {
  return errored instanceof WireSpent
}

/** @param wireBytesMax bytes read from the socket after which it is cut. */
export function exchange(socket: Socket, url: URL, wireBytesMax: number): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const asked = request({
      createConnection: () => socket,
      path: url.pathname + url.search,
      setHost: false,
      headers: { host: url.host, ...fixedHeaders },
      maxHeaderSize: headBytesMax,
      insecureHTTPParser: false,
    })
    let cause: Error | undefined
    asked.on('socket', () => {
      socket.on('data', () => {
        if (socket.bytesRead > wireBytesMax) socket.destroy(new WireSpent())
      })
    })
    asked.on('response', (response) => {
      // Whoever reads it hears of its errors too; nobody reads what is turned away.
      response.on('error', () => undefined)
      resolve(response)
    })
    asked.on('error', (error) => (cause = error))
    // Always comes, and is the only event where an answer wants another protocol.
    asked.on('close', () => {
      reject(new UrlFailure('connect', 'The host gave no answer that is HTTP', { cause }))
    })
    asked.end()
  })
}

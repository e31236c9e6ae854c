/*
 * The one place from which connections are made. No byte goes where it may not, because
 *
 *  1. every address is judged, and one that is refused refuses all: a name that leads inside and outside
 *     was made to deceive;
 *  2. the connection goes to a judged address as it stands, so that no name is looked up again;
 *  3. the address that the connected socket itself tells is judged once more, before TLS says its first
 *     word and before a request is written.
 *
 * Whoever has the socket owns it; the signal destroys it in any case.
 */
import net from 'node:net'
import { addAbortSignal } from 'node:stream'
import tls from 'node:tls'
import { UrlFailure } from './failure.js'
import { blocked, type Reach } from './reach.js'

/** A name may have any number of addresses; connecting to all would make a scanner of us. */
const triedMax = 4
/** The next address is tried beside one that is silent for so long. */
const attemptDelayMs = 250

/** @param addresses canonical, at least one. */
export async function dial(
  addresses: readonly string[],
  port: number,
  reach: Reach,
  signal: AbortSignal,
): Promise<net.Socket> {
  signal.throwIfAborted()
  if (!addresses.every((address) => reach.permits(address, port))) throw blocked()
  const socket = await firstConnected(bothFamilies(addresses).slice(0, triedMax), port, signal)
  const { remoteAddress, remotePort } = socket
  if (remoteAddress === undefined || remotePort === undefined) {
    // Reset in the moment that it was made.
    socket.destroy()
    throw unconnected()
  }
  if (reach.permits(remoteAddress, remotePort)) return socket
  socket.destroy()
  throw blocked()
}

/** IPv4 and IPv6 in turn, so that a host without one of them is not stuck with it. */
function bothFamilies(addresses: readonly string[]): string[] {
  const ipv4 = addresses.filter((address) => net.isIPv4(address))
  const ipv6 = addresses.filter((address) => net.isIPv6(address))
  const turns = Array.from({ length: Math.max(ipv4.length, ipv6.length) }, (_, index) => index)
  return turns.flatMap((index) => [
    ...ipv4.slice(index, index + 1),
    ...ipv6.slice(index, index + 1),
  ])
}

/** The next address is tried when one before failed or is slow; the first to connect ends the others. */
function firstConnected(
  addresses: readonly string[],
  port: number,
  signal: AbortSignal,
): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const attempts: net.Socket[] = []
    let openCount = 0
    let isDone = false
    let timer: NodeJS.Timeout | undefined
    const attempt = (): void => {
      clearTimeout(timer)
      const host = addresses[attempts.length]
      if (isDone || signal.aborted || host === undefined) return
      const socket = addAbortSignal(signal, net.connect({ host, port }))
      attempts.push(socket)
      openCount++
      timer = setTimeout(attempt, attemptDelayMs)
      let cause: Error | undefined
      // Stays as long as the socket: an error that comes late has nobody else to hear it.
      socket.on('error', (error) => (cause = error))
      socket.once('close', () => {
        openCount--
        attempt()
        if (openCount > 0) return
        reject(unconnected(cause))
      })
      socket.once('connect', () => {
        isDone = true
        clearTimeout(timer)
        for (const other of attempts) if (other !== socket) other.destroy()
        resolve(socket)
      })
    }
    attempt()
  })
}

function unconnected(cause?: Error): UrlFailure {
  return new UrlFailure('connect', 'The host could not be connected to', { cause })
}

/**
 * TLS over a connection that `dial` made, for the host of the URL. An address is asked for without a server
 * name, and the certificate must be for that address.
 *
 * @param ca certificates that are trusted in place of Node's own.
 */
export function secure(
  socket: net.Socket,
  host: string,
  ca: readonly string[] | undefined,
): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    // Certificates know no dot at the end.
    const name = host.replace(/\.$/, '')
    const secured = tls.connect({
      socket,
      host: name,
      ...(net.isIP(name) === 0 && { servername: name }),
      ...(ca !== undefined && { ca: [...ca] }),
      ALPNProtocols: ['http/1.1'],
      // Stated, because NODE_TLS_REJECT_UNAUTHORIZED could say otherwise.
      rejectUnauthorized: true,
    })
    let cause: Error | undefined
    secured.on('error', (error) => (cause = error))
    secured.once('secureConnect', () => resolve(secured))
    secured.once('close', () => {
      reject(new UrlFailure('tls', 'No secure connection could be made to the host', { cause }))
    })
  })
}

/*
 * Fetches a page on behalf of strangers: over redirects, each judged as if it had been asked for, within
 * one deadline from the first look-up to the last byte. Everything that a fetch opens hangs on its signal,
 * which fires at the deadline, at `close` and when the fetch is done: nothing outlives it. Each hop has a
 * connection of its own, and every failure is a UrlFailure.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { dial, secure } from './dial.js'
import { exchange, headBytesMax, isWireSpent } from './exchange.js'
import { UrlFailure } from './failure.js'
import { markupOf, shownType } from './media-type.js'
import { emptyBody, readBody } from './page-body.js'
import type { FetchedPage } from './page.js'
import { hostOf, literalOf, portOf, Reach } from './reach.js'
import { addressesOf, dnsResolve, type Resolve } from './resolve.js'
import { readRedirect, readTarget } from './target.js'

export const redirectsMax = 5

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** May be read beyond the cap: a head, and the piece that crosses the cap. */
const wireExtraBytes = headBytesMax + 64 * 1_024

export interface FetcherOptions {
  /** DNS by default. */
  readonly resolve?: Resolve | undefined
  /** Addresses and ports beside the public ones, such as `127.0.0.1/32:8080`; none by default. */
  readonly allow?: readonly string[] | undefined
  readonly timeoutMs?: number | undefined
  /** Of the page, unpacked. */
  readonly bytesMax?: number | undefined
  /** Certificates in PEM that are trusted in place of Node's own. */
  readonly ca?: readonly string[] | undefined
}

export class PageFetcher {
  readonly #resolve: Resolve
  readonly #reach: Reach
  readonly #timeoutMs: number
  readonly #bytesMax: number
  readonly #ca: readonly string[] | undefined
  readonly #running = new Map<AbortController, Promise<unknown>>()
  #isClosed = false

  constructor(options: FetcherOptions = {}) {
    this.#resolve = options.resolve ?? dnsResolve()
    this.#reach = new Reach(options.allow)
    this.#timeoutMs = options.timeoutMs ?? 5_000
    this.#bytesMax = options.bytesMax ?? 1_000_000
    this.#ca = options.ca
  }

  /** Throws what is refused by its text alone, before anything is looked up or charged. */
  refuseByText(url: URL): void {
    this.#reach.refuseByText(url)
  }

  /** Rejects with a UrlFailure, and nothing else. */
  fetch(url: URL): Promise<FetchedPage> {
    const end = new AbortController()
    const page = this.#within(end, url)
    this.#running.set(end, page)
    return page
  }

  /** Ends what is running; it rejects. May be called twice. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const end of this.#running.keys()) end.abort(closed())
    await Promise.allSettled(this.#running.values())
  }

  async #within(end: AbortController, url: URL): Promise<FetchedPage> {
    const { signal } = end
    const timer = setTimeout(() => end.abort(this.#tooSlow()), this.#timeoutMs)
    if (this.#isClosed) end.abort(closed())
    try {
      return await abandonable(this.#follow(url, signal), signal)
    } catch (error) {
      throw asFailure(error)
    } finally {
      clearTimeout(timer)
      this.#running.delete(end)
      end.abort()
    }
  }

  async #follow(from: URL, signal: AbortSignal): Promise<FetchedPage> {
    signal.throwIfAborted()
    let url = readTarget(from.href)
    for (let requestCount = 0; requestCount <= redirectsMax; requestCount++) {
      const found = await this.#ask(url, signal)
      if (!(found instanceof URL)) return found
      url = found
    }
    throw new UrlFailure('redirects', `The page redirects more than ${redirectsMax} times`)
  }

  /** One hop: the page, or where it redirects to. */
  async #ask(url: URL, signal: AbortSignal): Promise<FetchedPage | URL> {
    const socket = await this.#connect(url, signal)
    try {
      const response = await exchange(socket, url, this.#bytesMax + wireExtraBytes)
      const { statusCode = 0 } = response
      if (redirectStatuses.has(statusCode)) return readRedirect(locationOf(response), url)
      if (statusCode < 200 || statusCode > 299) {
        throw new UrlFailure('status', `The page answered with status ${statusCode}`)
      }
      return await this.#read(response, socket, url)
    } finally {
      socket.destroy()
    }
  }

  async #connect(url: URL, signal: AbortSignal): Promise<Socket> {
    this.#reach.refuseByText(url)
    const literal = literalOf(url)
    const addresses =
      literal === null ? await addressesOf(hostOf(url), this.#resolve, signal) : [literal]
    const socket = await dial(addresses, portOf(url), this.#reach, signal)
    return url.protocol === 'https:' ? secure(socket, hostOf(url), this.#ca) : socket
  }

  async #read(response: IncomingMessage, socket: Socket, { href }: URL): Promise<FetchedPage> {
    const contentType = shownType(response.headers['content-type'])
    const markup = markupOf(contentType)
    const reading = {
      bytesMax: this.#bytesMax,
      isSniffed: markup === 'unknown',
      isCut: () => isWireSpent(socket),
    }
    const body = markup === 'no' ? emptyBody : await readBody(response, reading)
    return { finalUrl: href, contentType, ...body }
  }

  #tooSlow(): UrlFailure {
    return new UrlFailure('timeout', `The page was not there within ${this.#timeoutMs} ms`)
  }
}

/** Header values come as Latin-1; a Location that is not ASCII is nearly always UTF-8. */
function locationOf({ headers: { location } }: IncomingMessage): string | undefined {
  if (location === undefined) return undefined
  const bytes = Buffer.from(location, 'latin1')
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : location
}

/** A resolver, above all, cannot be made to answer: then nobody waits for it. */
function abandonable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as UrlFailure), { once: true })
    work.then(resolve, reject)
  })
}

/** What nobody foresaw is no answer: its own words could tell of the inside. */
function asFailure(error: unknown): UrlFailure {
  if (error instanceof UrlFailure) return error
  return new UrlFailure('connect', 'The page could not be fetched', { cause: error })
}

function closed(): UrlFailure {
  return new UrlFailure('connect', 'Nothing is fetched any more: it was closed')
}

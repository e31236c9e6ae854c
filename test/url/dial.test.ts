/*
 * Connections: to which of a name's addresses, that each is judged where it arrives too, and that none is
 * left. Where a connection is to arrive elsewhere than it was sent, net.connect is led astray.
 */
import { readdirSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { dial } from '../../src/url/dial.js'
import { Reach } from '../../src/url/reach.js'
import {
  allClosed,
  failureOf,
  fetcherFor,
  page,
  reasonOf,
  textOf,
  webServer,
} from '../support/web.js'
import { withoutComments } from '../support/units/imports.js'
import { certificate } from '../support/certificates.js'

/** Sends each connection to what `lead` makes of its address; null is a place that never answers. */
function astray(lead: (host: string) => { host: string; port: number } | null) {
  const hosts: string[] = []
  const sockets: net.Socket[] = []
  const { connect } = net
  const spy = vi.spyOn(net, 'connect').mockImplementation(((options: net.TcpNetConnectOpts) => {
    hosts.push(options.host ?? '')
    const led = lead(options.host ?? '')
    const socket = led === null ? new net.Socket() : connect(led)
    sockets.push(socket)
    return socket
  }) as typeof net.connect)
  onTestFinished(() => spy.mockRestore())
  return { hosts, sockets }
}

const { signal } = new AbortController()

describe('a connection', () => {
  it('that arrives elsewhere than at a permitted address gets no byte', async () => {
    const inner = await webServer(page('inner'))
    const { hosts } = astray(() => ({ host: '127.0.0.1', port: inner.port }))
    const fetcher = fetcherFor([], { resolve: () => Promise.resolve(['8.8.8.8']) })
    for (const scheme of ['http', 'https']) {
      expect(await reasonOf(fetcher.fetch(new URL(`${scheme}://a.example/`)))).toBe('blocked')
    }
    expect(hosts).toEqual(['8.8.8.8', '8.8.8.8'])
    await vi.waitFor(() => expect(inner).toMatchObject({ connectionCount: 2, openCount: 0 }))
    expect(inner.received).toBe('')
  })

  it('that arrives there gets no TLS greeting either', async () => {
    const greetings: Buffer[] = []
    const inner = net.createServer((socket) => socket.on('data', (data) => greetings.push(data)))
    await new Promise<void>((listening) => inner.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void inner.close())
    const { port } = inner.address() as net.AddressInfo
    astray(() => ({ host: '127.0.0.1', port }))
    const fetcher = fetcherFor([], { resolve: () => Promise.resolve(['8.8.8.8']) })
    expect(await reasonOf(fetcher.fetch(new URL('https://a.example/')))).toBe('blocked')
    await new Promise((settle) => setTimeout(settle, 50))
    expect(greetings).toEqual([])
  })

  it('that is reset in the moment that it is made has failed to connect', async () => {
    const { sockets } = astray(() => null)
    const dialling = dial(['8.8.8.8'], 443, new Reach(), signal)
    sockets[0]?.emit('connect')
    expect(await reasonOf(dialling)).toBe('connect')
    expect(sockets[0]?.destroyed).toBe(true)
  })

  it('is made to no address at all where one of them is refused', async () => {
    const { hosts } = astray(() => null)
    const addresses = ['8.8.8.8', '1.1.1.1', '2606:4700::1111', '10.0.0.1']
    const failure = await failureOf(dial(addresses, 443, new Reach(), signal))
    expect(failure.reason).toBe('blocked')
    expect(hosts).toEqual([])
  })

  it('is tried to the next address where one is refused or silent, families in turn', async () => {
    const web = await webServer(page('found'))
    const { hosts, sockets } = astray((host) => {
      if (host === '8.8.8.8') return { host: '127.0.0.1', port: 1 }
      if (host === '2606:4700::1111') return null
      return { host: '127.0.0.1', port: web.port }
    })
    const reach = new Reach([`127.0.0.1:${web.port}`])
    const addresses = ['8.8.8.8', '8.8.4.4', '1.1.1.1', '2606:4700::1111', '2606:4700::1001']
    const startMs = performance.now()
    const socket = await dial(addresses, 80, reach, signal)
    expect(hosts).toEqual(['8.8.8.8', '2606:4700::1111', '8.8.4.4'])
    expect(performance.now() - startMs).toBeGreaterThan(240)
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, true, false])
    socket.destroy()
    await allClosed(web)
  })

  it('is tried to four addresses and no more', async () => {
    const { hosts } = astray(() => ({ host: '127.0.0.1', port: 1 }))
    const addresses = Array.from({ length: 100 }, (_, index) => `8.8.8.${index}`)
    const failure = await failureOf(dial(addresses, 80, new Reach(), signal))
    expect(failure).toMatchObject({
      reason: 'connect',
      message: 'The host could not be connected to',
    })
    expect(hosts).toEqual(['8.8.8.0', '8.8.8.1', '8.8.8.2', '8.8.8.3'])
  })

  it('is not begun after the signal, and ends with it', async () => {
    const { hosts } = astray(() => null)
    const end = new AbortController()
    const dialling = dial(['8.8.8.8', '8.8.4.4'], 80, new Reach(), end.signal)
    end.abort(new Error('over'))
    expect(await reasonOf(dialling)).toBe('connect')
    await expect(dial(['8.8.8.8'], 80, new Reach(), end.signal)).rejects.toThrow('over')
    await new Promise((settle) => setTimeout(settle, 300))
    expect(hosts).toEqual(['8.8.8.8'])
  })
})

describe('a host that does not take connections', () => {
  it('fails to connect, and the message says nothing of where', async () => {
    const gone = net.createServer()
    await new Promise<void>((listening) => gone.listen(0, '127.0.0.1', listening))
    const { port } = gone.address() as net.AddressInfo
    await new Promise((closed) => gone.close(closed))
    const failure = await failureOf(
      fetcherFor([{ port }]).fetch(new URL(`http://a.example:${port}/`)),
    )
    expect(failure).toMatchObject({ reason: 'connect', status: 502 })
    expect(failure.message).not.toMatch(/127|ECONN|\d/)
    expect(failure.cause).toMatchObject({ code: 'ECONNREFUSED' })
  })
})

describe('TLS', () => {
  const certified = certificate({ names: ['secure.example'], addresses: ['127.0.0.1'] })
  const trusted = { ca: [certified.cert] }

  it('speaks to the host by its name, and to an address without one', async () => {
    const web = await webServer(page('secure'), certified)
    const fetcher = fetcherFor([web], trusted)
    for (const host of ['secure.example', 'SECURE.example.', '127.0.0.1']) {
      expect(textOf(await fetcher.fetch(new URL(`https://${host}:${web.port}/`)))).toBe('secure')
    }
    expect(web.serverNames).toEqual(['secure.example', 'secure.example', false])
    expect(web.requests.map((request) => /host: (.*)\r/.exec(request)?.[1])).toEqual([
      `secure.example:${web.port}`,
      `secure.example.:${web.port}`,
      `127.0.0.1:${web.port}`,
    ])
    await allClosed(web)
  })

  it.each([
    ['of another name', certificate({ names: ['other.example'] }), true],
    ['of nobody whom Node trusts', certified, false],
    ['that ran out', certificate({ names: ['secure.example'], notAfter: '210101000000Z' }), true],
  ])('refuses a certificate %s before the request', async (_, shown, isTrusted) => {
    const web = await webServer(page('secure'), shown)
    const fetcher = fetcherFor([web], isTrusted ? { ca: [shown.cert] } : {})
    const failure = await failureOf(fetcher.fetch(new URL(`https://secure.example:${web.port}/`)))
    expect(failure).toMatchObject({ reason: 'tls', status: 502 })
    expect(failure.message).toBe('No secure connection could be made to the host')
    expect(web.received).toBe('')
    await allClosed(web)
  })

  it('refuses a bad certificate whatever the environment says', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const web = await webServer(page('secure'), certified)
    const fetching = fetcherFor([web]).fetch(new URL(`https://secure.example:${web.port}/`))
    expect(await reasonOf(fetching)).toBe('tls')
  })

  it.each([
    ['plain HTTP', 'HTTP/1.1 200 OK\r\n\r\n'],
    ['nothing', ''],
    ['garbage', '\x16\x03\x01\xff\xff'.repeat(100)],
  ])('fails where a server answers it with %s', async (_, text) => {
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(text, 'latin1'))
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    onTestFinished(() => void server.close())
    const { port } = server.address() as net.AddressInfo
    const fetcher = fetcherFor([{ port }])
    expect(await reasonOf(fetcher.fetch(new URL(`https://a.example:${port}/`)))).toBe('tls')
  })
})

describe('proxies of the environment', () => {
  it('are passed over', async () => {
    const proxy = await webServer(page('by proxy'))
    const web = await webServer(page('direct'))
    for (const name of ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'ALL_PROXY']) {
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`)
    }
    vi.stubEnv('NODE_USE_ENV_PROXY', '1')
    onTestFinished(() => void vi.unstubAllEnvs())
    const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
    expect(textOf(found)).toBe('direct')
    expect(proxy.connectionCount).toBe(0)
  })
})

describe('the sources', () => {
  it('open connections in one file alone', () => {
    const folder = new URL('../../src/url/', import.meta.url)
    const opens = readdirSync(folder).filter((name) => {
      const code = withoutComments(readFileSync(new URL(name, folder), 'utf8'))
      return /(?<!#)\bconnect\(|\bnew (?:\w+\.)?(?:Socket|Agent|Client)\b|(?<![.#])\bfetch\(['"`]/.test(
        code,
      )
    })
    expect(opens).toEqual(['dial.ts'])
  })
})

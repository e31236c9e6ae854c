/*
 * Names: what DNS answers, what a resolver may answer, and that a name is looked up once for each hop.
 */
import { describe, expect, it } from 'vitest'
import { PageFetcher } from '../../src/url/fetch-page.js'
import { addressesOf, dnsResolve, type Resolve } from '../../src/url/resolve.js'
import { nameServer } from '../support/name-server.js'
import {
  failureOf,
  fetcherFor,
  page,
  reasonOf,
  redirect,
  textOf,
  webServer,
} from '../support/web.js'

const { signal } = new AbortController()

describe('DNS', () => {
  it('gives the addresses of both families', async () => {
    const server = await nameServer({
      'both.example': {
        A: ['8.8.8.8', '8.8.4.4'],
        AAAA: ['2001:4860:4860:0000:0000:0000:0000:8888'],
      },
    })
    const resolve = dnsResolve([server.address])
    const found = await addressesOf('both.example', resolve, signal)
    expect(found).toEqual(['8.8.8.8', '8.8.4.4', '2001:4860:4860::8888'])
    expect(server.asked.toSorted()).toEqual(['both.example A', 'both.example AAAA'])
  })

  it.each([
    [{ A: ['8.8.8.8'] }, ['8.8.8.8']],
    [{ A: ['8.8.8.8'], AAAA: 'serverFailed' }, ['8.8.8.8']],
    [{ AAAA: ['2001:4860:4860:0000:0000:0000:0000:8888'] }, ['2001:4860:4860::8888']],
  ] as const)('does with one family: %j', async (zone, addresses) => {
    const { address } = await nameServer({ 'one.example': zone })
    expect(await addressesOf('one.example', dnsResolve([address]), signal)).toEqual(addresses)
  })

  it.each(['none.example', 'unknown.example', 'failed.example', 'a..b', 'x'.repeat(300), '%zz'])(
    'has nothing for %s: a failure',
    async (name) => {
      const { address } = await nameServer({
        'none.example': {},
        'failed.example': { A: 'serverFailed', AAAA: 'serverFailed' },
      })
      const { reason, message } = await failureOf(addressesOf(name, dnsResolve([address]), signal))
      expect({ reason, message }).toEqual({
        reason: 'dns',
        message: 'The name of the host was not found',
      })
    },
  )

  it('that says nothing is left at the deadline, and asked no more', async () => {
    const { address, asked } = await nameServer({
      'slow.example': { A: 'silence', AAAA: 'silence' },
    })
    const fetcher = fetcherFor([], { resolve: dnsResolve([address]), timeoutMs: 200 })
    const startMs = performance.now()
    expect(await reasonOf(fetcher.fetch(new URL('http://slow.example/')))).toBe('timeout')
    expect(performance.now() - startMs).toBeLessThan(400)
    const askedCount = asked.length
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    expect(asked.length).toBe(askedCount)
  })
})

describe('a resolver', () => {
  it.each([
    undefined,
    null,
    [],
    'string',
    {},
    [''],
    ['localhost'],
    ['127.1'],
    [1],
    [null],
    ['8.8.8.8', 'example.com'],
    ['[::1]'],
    ['fe80::1%eth0'],
    ['8.8.8.8:80'],
    ['8.8.8.8/32'],
  ])('that answers %j fails', async (answer) => {
    const fetcher = fetcherFor([], { resolve: (() => answer) as unknown as Resolve })
    expect(await reasonOf(fetcher.fetch(new URL('http://name.example/')))).toBe('dns')
  })

  it.each([
    ['throws', () => { throw new Error('10.1.2.3') }], // prettier-ignore
    ['rejects', () => Promise.reject(new Error('10.1.2.3'))],
    ['rejects with nothing', () => Promise.reject(undefined as unknown as Error)],
  ] as [string, Resolve][])('that %s fails, and its words stay inside', async (_, resolve) => {
    const failure = await failureOf(fetcherFor([], { resolve }).fetch(new URL('http://a.example/')))
    expect(failure.reason).toBe('dns')
    expect(failure.message).not.toContain('10.1.2.3')
  })

  it('is asked for names as they stand, and never for an address or this machine', async () => {
    const asked: string[] = []
    const resolve: Resolve = (host) => {
      asked.push(host)
      return Promise.resolve(['10.0.0.1'])
    }
    const fetcher = fetcherFor([], { resolve })
    for (const host of ['127.1', '[::1]', 'localhost', 'a.localhost.', 'name.example:22']) {
      expect(await reasonOf(fetcher.fetch(new URL(`http://${host}/`)))).toBe('blocked')
    }
    expect(asked).toEqual([])
    for (const host of ['Name.Example', 'dot.example.', 'bücher.example', 'single']) {
      expect(await reasonOf(fetcher.fetch(new URL(`http://${host}/`)))).toBe('blocked')
    }
    expect(asked).toEqual(['name.example', 'dot.example.', 'xn--bcher-kva.example', 'single'])
  })

  it.each([
    ['a private address', ['10.0.0.1']],
    ['a public address and a private one', ['8.8.8.8', '192.168.0.1']],
    ['an allowed address and a private one', ['127.0.0.1', '10.0.0.1']],
    ['an allowed address and a loopback one', ['127.0.0.1', '::1']],
    ['an allowed address and a public one on a port that is not for it', ['127.0.0.1', '8.8.8.8']],
    ['an allowed address and a mapped private one', ['127.0.0.1', '::ffff:10.0.0.1']],
    ['an allowed address and metadata by NAT64', ['127.0.0.1', '64:ff9b::a9fe:a9fe']],
  ])('that gives %s has the name refused whole', async (_, addresses) => {
    const web = await webServer(page('inner'))
    const fetcher = fetcherFor([web], { resolve: () => Promise.resolve(addresses) })
    const failure = await failureOf(fetcher.fetch(new URL(`http://name.example:${web.port}/`)))
    expect(failure.reason).toBe('blocked')
    expect(failure.message).not.toMatch(/\d+\.\d+|::/)
    expect(web.connectionCount).toBe(0)
  })

  it('that changes its mind changes nothing: the connection goes to what was judged', async () => {
    const web = await webServer(page('judged'))
    let askedCount = 0
    const resolve: Resolve = () =>
      Promise.resolve(askedCount++ === 0 ? ['127.0.0.1'] : ['10.0.0.1'])
    const fetcher = fetcherFor([web], { resolve })
    const url = new URL(`http://rebinding.example:${web.port}/`)
    expect(textOf(await fetcher.fetch(url))).toBe('judged')
    expect(askedCount).toBe(1)
    expect(await reasonOf(fetcher.fetch(url))).toBe('blocked')
  })

  it('is asked again for each hop, also for the same name', async () => {
    const web = await webServer(redirect('/again'))
    const answers = [['127.0.0.1'], ['127.0.0.1'], ['169.254.169.254']]
    const fetcher = fetcherFor([web], { resolve: () => Promise.resolve(answers.shift() ?? []) })
    expect(await reasonOf(fetcher.fetch(new URL(`http://a.example:${web.port}/`)))).toBe('blocked')
    expect(web.connectionCount).toBe(2)
  })

  it('that answers after the deadline leads to no connection', async () => {
    const web = await webServer(page('late'))
    let answer: (addresses: string[]) => void = () => undefined
    const resolve: Resolve = () => new Promise((settle) => (answer = settle))
    const fetcher = fetcherFor([web], { resolve, timeoutMs: 50 })
    expect(await reasonOf(fetcher.fetch(new URL(`http://a.example:${web.port}/`)))).toBe('timeout')
    answer(['127.0.0.1'])
    await new Promise((settle) => setTimeout(settle, 50))
    expect(web.connectionCount).toBe(0)
  })
})

describe('without options', () => {
  it('nothing inside is reached', async () => {
    const web = await webServer(page('inner'))
    const fetcher = new PageFetcher()
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
      expect(await reasonOf(fetcher.fetch(new URL(`http://${host}:${web.port}/`)))).toBe('blocked')
    }
    expect(web.connectionCount).toBe(0)
    await fetcher.close()
  })
})

/*
 * Redirects: each hop is judged as if it had been asked for, and there are five at most.
 */
import { describe, expect, it } from 'vitest'
import {
  allClosed,
  failureOf,
  fetcherFor,
  htmlHead,
  page,
  reasonOf,
  redirect,
  textOf,
  webServer,
  type Answer,
} from '../support/web.js'

const pathOf = (request: string) => /^GET (\S+) HTTP\/1\.1\r/.exec(request)?.[1] ?? ''

/** Answers each path with what it stands for. */
const paths =
  (answers: Readonly<Record<string, string>>): Answer =>
  (socket, request) =>
    void socket.end(answers[pathOf(request)] ?? page('elsewhere'), 'latin1')

describe('a redirect inside', () => {
  it.each([301, 302, 303, 307, 308])('URL-01: by %i is refused, unconnected', async (status) => {
    const inner = await webServer(page('inner'))
    const outer = await webServer(redirect(`http://127.0.0.1:${inner.port}/`, status))
    const failure = await failureOf(
      fetcherFor([outer]).fetch(new URL(`http://public.example:${outer.port}/`)),
    )
    expect(failure).toMatchObject({ reason: 'blocked', status: 403 })
    expect(failure.message).not.toContain('127.0.0.1')
    expect(inner.connectionCount).toBe(0)
    await allClosed(outer)
  })

  it('URL-01: at the end of a chain of three is refused, unconnected', async () => {
    const inner = await webServer(page('inner'))
    const outer = await webServer(
      paths({
        '/': redirect('/b'),
        '/b': redirect('http://other.example:PORT/c'),
        '/c': redirect(`http://127.0.0.1:${inner.port}/`),
      }),
    )
    const chain = await webServer((socket, request) => {
      const next = { '/': '/b', '/b': `http://other.example:${outer.port}/c` }[pathOf(request)]
      socket.end(redirect(next ?? ''))
    })
    const fetching = fetcherFor([outer, chain]).fetch(new URL(`http://a.example:${chain.port}/`))
    expect(await reasonOf(fetching)).toBe('blocked')
    expect([chain.connectionCount, outer.connectionCount, inner.connectionCount]).toEqual([2, 1, 0])
  })

  it('URL-01: by a relative Location after a change of host is judged at the new host', async () => {
    const web = await webServer(page('inner'))
    const hops = await webServer((socket, request) => {
      const first = pathOf(request) === '/'
      socket.end(redirect(first ? `http://second.example:${hops.port}/x/y` : '../z'))
    })
    const asked: string[] = []
    const resolve = (host: string) => {
      asked.push(host)
      return Promise.resolve([asked.length < 3 ? '127.0.0.1' : '10.0.0.1'])
    }
    const fetcher = fetcherFor([web, hops], { resolve })
    expect(await reasonOf(fetcher.fetch(new URL(`http://first.example:${hops.port}/`)))).toBe(
      'blocked',
    )
    expect(asked).toEqual(['first.example', 'second.example', 'second.example'])
    expect(hops.requests.map(pathOf)).toEqual(['/', '/x/y'])
  })

  it.each([
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '[::1]',
    '[::ffff:7f00:1]',
    '[::7f00:1]',
    'localhost',
    'localhost.',
    'a.localhost',
    '①②⑦.0.0.1',
    '0',
    '%31%32%37.0.0.1',
    '127.0.0.1.',
  ])('in the spelling %s is refused', async (host) => {
    const inner = await webServer(page('inner'))
    const location = Buffer.from(`http://${host}:${inner.port}/`).toString('latin1')
    const outer = await webServer(redirect(location))
    const fetching = fetcherFor([outer]).fetch(new URL(`http://a.example:${outer.port}/`))
    expect(await reasonOf(fetching)).toBe('blocked')
    expect(inner.connectionCount).toBe(0)
  })

  it.each([
    ['//127.0.0.1/', 'blocked'],
    ['\\\\127.0.0.1\\', 'blocked'],
    ['http:\\\\127.0.0.1', 'blocked'],
    ['ht\ttp://127.0.0.1/', 'blocked'],
    ['http://a.example:22/', 'blocked'],
    ['http://a.example:0/', 'blocked'],
    ['http://good.example@127.0.0.1/', 'blocked'],
    ['http://127.0.0.1\\@good.example/', 'blocked'],
    ['https://user:pw@good.example/', 'blocked'],
    ['ftp://good.example/', 'blocked'],
    ['file:///etc/passwd', 'blocked'],
    ['javascript:alert(1)', 'blocked'],
    ['data:text/html,<title>x</title>', 'blocked'],
    ['gopher://127.0.0.1:6379/_x', 'blocked'],
    ['', 'redirects'],
    ['http://', 'redirects'],
    ['http://[', 'redirects'],
    ['http://1.2.3.4.5/', 'redirects'],
    [`/${'a'.repeat(9_000)}`, 'redirects'],
  ])('to %j fails: %s', async (location, reason) => {
    const outer = await webServer(redirect(location))
    const failure = await failureOf(
      fetcherFor([outer]).fetch(new URL(`http://a.example:${outer.port}/`)),
    )
    expect(failure.reason).toBe(reason)
    expect(failure.message).not.toMatch(/127|pw|etc\//)
    expect(outer.connectionCount).toBe(1)
  })

  it('without a Location leads nowhere', async () => {
    const outer = await webServer('HTTP/1.1 302 Found\r\n\r\n')
    const fetching = fetcherFor([outer]).fetch(new URL(`http://a.example:${outer.port}/`))
    expect(await reasonOf(fetching)).toBe('redirects')
  })
})

describe('a redirect', () => {
  it('URL-07: in a circle of two fails after six requests', async () => {
    const servers = [await webServer(answer), await webServer(answer)]
    function answer(socket: Parameters<Answer>[0], request: string): void {
      const [a, b] = servers.map(({ port }) => port)
      socket.end(redirect(`http://x.example:${request.includes(`:${a}\r`) ? b : a}/`))
    }
    const url = new URL(`http://x.example:${servers[0]?.port}/`)
    const failure = await failureOf(fetcherFor(servers).fetch(url))
    expect(failure).toMatchObject({ reason: 'redirects', status: 502 })
    expect(servers.map(({ connectionCount }) => connectionCount)).toEqual([3, 3])
  })

  it('URL-07: in a chain of fifty fails after six requests', async () => {
    const web = await webServer((socket, request) => {
      socket.end(redirect(String(Number(pathOf(request).slice(1)) + 1)))
    })
    const fetching = fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/0`))
    expect(await reasonOf(fetching)).toBe('redirects')
    expect(web.requests.map(pathOf)).toEqual(['/0', '/1', '/2', '/3', '/4', '/5'])
  })

  it('is followed five times, to an address without fragment, and says where it ended', async () => {
    const web = await webServer((socket, request) => {
      const at = Number(pathOf(request).slice(1))
      socket.end(at === 5 ? page('there') : redirect(`/${at + 1}#part`))
    })
    const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/0#x`))
    expect(textOf(found)).toBe('there')
    expect(found.finalUrl).toBe(`http://a.example:${web.port}/5`)
    await allClosed(web)
  })

  it('may hold UTF-8 or Latin-1', async () => {
    const web = await webServer((socket, request) => {
      const next: Record<string, string> = {
        '/': '/\xc3\xbc',
        '/%C3%BC': '/\xe4',
      }
      const location = next[pathOf(request)]
      socket.end(location === undefined ? page('there') : redirect(location), 'latin1')
    })
    const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
    expect(found.finalUrl).toBe(`http://a.example:${web.port}/%C3%A4`)
    expect(web.connectionCount).toBe(3)
  })

  it('takes the first of two Locations', async () => {
    const web = await webServer(
      paths({ '/': 'HTTP/1.1 302 Found\r\nLocation: /one\r\nLocation: http://10.0.0.1/\r\n\r\n' }),
    )
    const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
    expect(found.finalUrl).toMatch(/\/one$/)
  })

  it.each([100, 101, 300, 304, 305, 306, 310, 400, 404, 429, 500, 503, 599, 999])(
    'is no %i, with or without Location',
    async (status) => {
      const web = await webServer(redirect('/elsewhere', status))
      const failure = await failureOf(
        fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`)),
      )
      expect(failure.reason).toBe(status === 100 ? 'connect' : 'status')
      expect(web.connectionCount).toBe(1)
    },
  )

  it('carries nothing over: no Referer, no cookie, the same few fields for everyone', async () => {
    const web = await webServer((socket, request) => {
      socket.end(
        pathOf(request) === '/?secret'
          ? 'HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\nLocation: /next\r\n\r\n'
          : page('x'),
      )
    })
    await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/?secret`))
    const [first, second] = web.requests.map((request) => request.split('\r\n').slice(1).join('\n'))
    expect(first).toBe(second)
    expect(first).toBe(
      [
        `host: a.example:${web.port}`,
        'user-agent: tallygate (url-parser)',
        'accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.1',
        'accept-encoding: gzip, deflate',
        'tallygate-fetch: 1',
        'connection: close',
        '\n',
      ].join('\n'),
    )
  })

  it('whose body never ends is not waited for, nor its connection kept', async () => {
    let openCount = 0
    const web = await webServer((socket, request) => {
      if (pathOf(request) === '/next') {
        return setTimeout(() => {
          openCount = web.openCount
          socket.end(`${htmlHead}\r\nthere`)
        }, 50)
      }
      return socket.write('HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\nendless')
    })
    const found = await fetcherFor([web]).fetch(new URL(`http://a.example:${web.port}/`))
    expect(textOf(found)).toBe('there')
    expect(openCount).toBe(1)
    await allClosed(web)
  })
})

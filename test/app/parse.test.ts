/*
 * GET /api/parse over real sockets: what it answers, what it refuses, what it charges and what it counts.
 */
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, vi } from 'vitest'
import type { RuleOptions } from '../../src/core/rule.js'
import { fetchMarkerHeader } from '../../src/url/exchange.js'
import { fetchFailureReasons, parseResults } from '../../src/url/observer.js'
import { urlLengthMax } from '../../src/url/target.js'
import { valueOf, type SeriesValue } from '../support/exposition.js'
import { hostedApp, type HostedApp } from '../support/hosted-app.js'
import { endless, htmlHead, page, redirect, webServer } from '../support/web.js'

const at = ({ port }: { port: number }, path = '') => `http://127.0.0.1:${port}/${path}`

/** A port of this machine that nothing listens on. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function appAndWeb(answer: Parameters<typeof webServer>[0], rules?: RuleOptions[]) {
  const web = await webServer(answer)
  const app = await hostedApp({ servers: [web], ...(rules === undefined ? {} : { rules }) })
  return { web, app }
}

function results(series: readonly SeriesValue[]): Record<string, number> {
  const name = 'tallygate_url_parse_requests_total'
  const counts = parseResults.map((result) => [result, valueOf(series, name, { result })] as const)
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

function failures(series: readonly SeriesValue[]): Record<string, number> {
  const name = 'tallygate_url_fetch_failures_total'
  const counts = fetchFailureReasons.map(
    (reason) => [reason, valueOf(series, name, { reason })] as const,
  )
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

const fetchCount = (series: readonly SeriesValue[]) =>
  valueOf(series, 'tallygate_url_fetch_duration_seconds_count')

describe('a page', () => {
  it('is answered with all that is known of it and nothing else', async () => {
    const html = `<html lang="pt-br"><title>Title</title><meta name="description" content="Words">
      <meta property="og:image" content="/i.png"><meta property="og:site_name" content="Site">
      <link rel="canonical" href="/c">`
    const { web, app } = await appAndWeb(page(html))
    const { status, headers, body } = await app.parse(at(web, 'a#top'))
    expect(status).toBe(200)
    expect(body).toEqual({
      url: at(web, 'a'),
      finalUrl: at(web, 'a'),
      title: 'Title',
      description: 'Words',
      image: at(web, 'i.png'),
      siteName: 'Site',
      canonical: at(web, 'c'),
      language: 'pt-BR',
      contentType: 'text/html',
      fetchedAt: new Date(app.clock.wallMs()).toISOString(),
      cached: false,
      truncated: false,
    })
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
  })

  it('URL-11: is read in the encoding that its header names', async () => {
    const title = Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]).toString('latin1')
    const { web, app } = await appAndWeb((socket, request) => {
      const isMeta = request.startsWith('GET /meta')
      const type = isMeta ? 'text/html' : 'text/html; charset=windows-1251'
      const meta = isMeta ? '<meta charset=windows-1251>' : '<meta charset=utf-8>'
      const html = `${meta}<title>${title}</title>`
      socket.end(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n\r\n${html}`, 'latin1')
    })
    for (const path of ['header', 'meta']) {
      expect((await app.parse(at(web, path))).body['title']).toBe('Привет')
    }
  })

  it('URL-20: that is no HTML is not read, and kept all the same', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n'
    const { web, app } = await appAndWeb(endless(head, Buffer.alloc(65_536, '%')))
    const { status, body } = await app.parse(at(web))
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { title: null, contentType: 'application/pdf', cached: false },
    })
    await vi.waitFor(() => expect(web.openCount).toBe(0))
    expect((await app.parse(at(web))).body['cached']).toBe(true)
    expect(web.requests).toHaveLength(1)
  })

  it('URL-08: that never ends is cut at the cap, and what came is parsed', async () => {
    const answer = endless(`${htmlHead}\r\n<title>First</title>`, Buffer.alloc(65_536, 'x '))
    const { web, app } = await appAndWeb(answer)
    const { status, body } = await app.parse(at(web))
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { title: 'First', truncated: true },
    })
    await vi.waitFor(() => expect(web.openCount).toBe(0))
  })
})

describe('what is asked for', () => {
  const wanted = 'url must be an http or https address'
  it.each([
    ['nothing', '', wanted],
    ['an empty text', '?url=', wanted],
    ['no URL', '?url=nonsense', wanted],
    ['a path', '?url=/etc/passwd', wanted],
    ['two URLs', '?url=https://a.test/&url=https://b.test/', wanted],
    ['an object', '?url[x]=https://a.test/', wanted],
    ['a script', '?url=javascript:alert(1)', wanted],
    ['a file', '?url=file:///etc/passwd', wanted],
    ['a password', '?url=https://a:secret@a.test/', 'no user name or password'],
    ['too long a URL', `?url=https://a.test/${'x'.repeat(urlLengthMax)}`, 'at most'],
  ])('as %s is answered 400 with what would be right', async (_, query, detail) => {
    const app = await hostedApp()
    const response = await fetch(`${app.url}/api/parse${query}`)
    const text = await response.text()
    expect(response.status).toBe(400)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('etag')).toBeNull()
    expect(JSON.parse(text)).toEqual({
      type: 'about:blank',
      title: 'Bad request',
      status: 400,
      detail: expect.stringContaining(detail) as unknown,
    })
    expect(text).not.toMatch(/secret|\n\s+at /)
  })

  it.each(['http://127.0.0.1/', 'http://2130706433/', 'http://localhost/', 'http://[::1]/'])(
    'at %s is answered 403, and not where that leads',
    async (url) => {
      const app = await hostedApp()
      const { status, headers, body } = await app.parse(url)
      expect([status, body['title']]).toEqual([403, 'Forbidden'])
      expect(headers.get('content-type')).toBe('application/problem+json')
      expect(JSON.stringify(body)).not.toContain('127.0.0.1')
      expect(results(await app.scrape())).toEqual({ failed: 1 })
    },
  )

  it.each([301, 302, 303, 307, 308])('URL-01: is not had where a %s leads inside', async (code) => {
    const inside = await webServer(page('<title>Inside</title>'))
    const { web, app } = await appAndWeb((socket, request) => {
      const next = /^GET \/(\d)/.exec(request)?.[1] ?? '3'
      socket.end(redirect(next === '1' ? at(inside) : `/${Number(next) - 1}`, code))
    })
    const { status, body } = await app.parse(at(web, '3'))
    expect([status, body['title']]).toEqual([403, 'Forbidden'])
    expect(JSON.stringify(body)).not.toMatch(/Inside|127\.0\.0\.1/)
    expect([inside.connectionCount, web.connectionCount]).toEqual([0, 3])
    expect(failures(await app.scrape())).toEqual({ blocked: 1 })
  })

  it('is not fetched for a fetch of our own', async () => {
    const app = await hostedApp()
    const { status, body } = await app.parse('https://a.test/', { [fetchMarkerHeader]: '1' })
    expect([status, body['detail']]).toEqual([
      403,
      'A page cannot be fetched by way of this very route',
    ])
    expect(results(await app.scrape())).toEqual({})
  })
})

describe('a page that cannot be had', () => {
  it('is answered 502, and tells nothing of the network', async () => {
    const port = await closedPort()
    const app = await hostedApp({ servers: [{ port }] })
    const { status, headers, body } = await app.parse(at({ port }))
    expect([status, body['title'], headers.get('cache-control')]).toEqual([
      502,
      'Bad gateway',
      'no-store',
    ])
    expect(JSON.stringify(body)).not.toMatch(/127\.0\.0\.1|ECONN|EHOST|\bat\b.*:\d+/)
    expect(failures(await app.scrape())).toEqual({ connect: 1 })
  })

  it('URL-09: is answered 504 where it drips, after five seconds', async () => {
    const { web, app } = await appAndWeb((socket) => {
      socket.write(`${htmlHead}Content-Length: 1000\r\n\r\n`)
      const timer = setInterval(() => socket.write('x'), 500)
      socket.on('close', () => clearInterval(timer))
    })
    const startedMs = performance.now()
    const { status, body } = await app.parse(at(web))
    expect([status, body['title']]).toEqual([504, 'Gateway timeout'])
    expect(Math.abs(performance.now() - startedMs - 5_000)).toBeLessThan(500)
    expect(failures(await app.scrape())).toEqual({ timeout: 1 })
  })

  it('URL-23: is tried again with the next request', async () => {
    let isWell = false
    const { web, app } = await appAndWeb((socket) => {
      socket.end(isWell ? page('<title>T</title>') : 'HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n')
    })
    expect((await app.parse(at(web))).status).toBe(502)
    isWell = true
    expect((await app.parse(at(web))).body).toMatchObject({ title: 'T', cached: false })
    expect((await app.parse(at(web))).body).toMatchObject({ title: 'T', cached: true })
  })
})

describe('the cache of the day', () => {
  it('URL-21: has one page for spellings of one URL, and another for another URL', async () => {
    const { web, app } = await appAndWeb(page('<title>T</title>'))
    const { port } = web
    await app.parse(`HTTP://LocalHost:${port}/Path?q=A`)
    const repeat = await app.parse(`http://localhost:${port}/Path?q=A#top`)
    expect(repeat.body).toMatchObject({ cached: true, url: `http://localhost:${port}/Path?q=A` })
    expect(web.requests).toHaveLength(1)
    for (const path of ['Path', 'path', 'a', 'a/', '?a=1&b=2', '?b=2&a=1']) {
      expect((await app.parse(at(web, path))).body['cached']).toBe(false)
    }
    expect(web.requests).toHaveLength(7)
  })

  it('URL-25: gives a page for 24 hours, to the millisecond, also out of the database', async () => {
    const { web, app } = await appAndWeb(page('<title>T</title>'))
    await app.parse(at(web))
    app.clock.advance(86_399_999)
    expect((await app.parse(at(web))).body['cached']).toBe(true)
    await app.pages.flush()
    expect(valueOf(await app.scrape(), 'tallygate_url_cache_entries')).toBe(1)
    app.clock.advance(1)
    expect(valueOf(await app.scrape(), 'tallygate_url_cache_entries')).toBe(0)
    expect((await app.parse(at(web))).body['cached']).toBe(false)
    app.clock.advance(-2 * 86_400_000)
    expect((await app.parse(at(web))).body['cached']).toBe(false)
    expect(web.requests).toHaveLength(3)
  })

  it('goes on in memory while another process holds the file, and is written afterwards', async () => {
    const { web, app } = await appAndWeb(page('<title>T</title>'))
    const other = new Sqlite(app.database.thread.path)
    other.exec('BEGIN IMMEDIATE')
    await app.parse(at(web))
    await app.pages.flush()
    expect((await app.parse(at(web))).body['cached']).toBe(true)
    const rows = other.prepare('SELECT count(*) FROM pages').pluck()
    expect(rows.get()).toBe(0)
    other.exec('COMMIT')
    await app.pages.flush()
    expect(rows.get()).toBe(1)
    other.close()
    const told = app.lines.filter(({ message }) => message.includes('pages'))
    expect(told.map(({ level }) => level)).toEqual(['error', 'info'])
  })
})

describe('the charge', () => {
  const rules: RuleOptions[] = [
    { name: 'ip', key: 'ip', limit: 100, window: '1d' },
    { name: 'parse-url', limit: 2, window: '1h', function: 'parse-url' },
  ]
  const used = async (app: HostedApp, name: string) => {
    const { rules: shown } = await app.gate.stats()
    return shown.find((rule) => rule.name === name)?.totals
  }

  it('is for real fetches alone: not for pages of the cache, refused URLs or shared fetches', async () => {
    const { web, app } = await appAndWeb((socket) => {
      setTimeout(() => socket.end(page('<title>T</title>')), 50)
    }, rules)
    await Promise.all(Array.from({ length: 20 }, () => app.parse(at(web))))
    for (let turn = 0; turn < 20; turn++) await app.parse(at(web))
    for (const url of ['nonsense', 'http://10.0.0.1/', 'http://127.0.0.1:1/']) await app.parse(url)
    expect(web.requests).toHaveLength(1)
    expect(await used(app, 'parse-url')).toEqual({ within: 1, near: 0, over: 0 })
    expect(await used(app, 'ip')).toMatchObject({ over: 0 })
    expect(results(await app.scrape())).toEqual({ miss: 1, shared: 19, hit: 20, failed: 3 })
    expect(fetchCount(await app.scrape())).toBe(1)
  })

  it('declines as a route with a limit does, and gives back what other rules took', async () => {
    const { web, app } = await appAndWeb(page('<title>T</title>'), rules)
    for (const path of ['1', '2']) expect((await app.parse(at(web, path))).status).toBe(200)
    const { status, headers, body } = await app.parse(at(web, '3'))
    expect({ status, body }).toEqual({
      status: 429,
      body: {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Too many requests',
        status: 429,
        detail: expect.stringMatching(
          /^parse-url allows 2 requests in 1h; retry in \d+ s$/,
        ) as unknown,
        'violated-policies': ['parse-url'],
        retryAfterMs: expect.any(Number) as unknown,
      },
    })
    const waitMs = Number(body['retryAfterMs'])
    expect(headers.get('retry-after')).toBe(String(Math.ceil(waitMs / 1_000)))
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(headers.get('ratelimit')).toMatch(/"ip";r=98;.*"parse-url";r=0;/)
    expect(web.requests).toHaveLength(2)
    // Pages of the cache are still to be had.
    expect((await app.parse(at(web, '1'))).body['cached']).toBe(true)
    app.clock.advance(waitMs)
    expect((await app.parse(at(web, '3'))).status).toBe(200)
    await vi.waitFor(async () => {
      const { totals } = await app.gate.stats()
      expect(totals).toEqual({ requests: 5, allowed: 4, declined: 1, exempt: 0 })
    })
    expect(results(await app.scrape())).toEqual({ miss: 3, declined: 1, hit: 1 })
  })

  it("of one client is not another's: each is asked by its own rules", async () => {
    const own: RuleOptions[] = [
      { name: 'parse-url', key: 'ip', limit: 0, window: '1h', function: 'parse-url' },
    ]
    const { web, app } = await appAndWeb(page('<title>T</title>'), own)
    const calls = Array.from({ length: 10 }, (_, n) =>
      app.parse(at(web), { 'x-forwarded-for': `203.0.113.${n}` }),
    )
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses).toEqual(Array(10).fill(429))
    expect([web.connectionCount, results(await app.scrape())]).toEqual([0, { declined: 10 }])
  })

  it('of parallel requests is asked for one of them, and declined ones do not fail the others', async () => {
    const own: RuleOptions[] = [
      { name: 'parse-url', key: 'ip', limit: 1, window: '1h', function: 'parse-url' },
    ]
    const { web, app } = await appAndWeb((socket, request) => {
      const body = page(`<title>${request.split(' ', 2)[1]}</title>`)
      setTimeout(() => socket.end(body), 50)
    }, own)
    const poor = { 'x-forwarded-for': '203.0.113.1' }
    await app.parse(at(web, 'first'), poor)
    const calls = [
      app.parse(at(web, 'page'), poor),
      ...Array.from({ length: 9 }, (_, n) =>
        app.parse(at(web, 'page'), { 'x-forwarded-for': `203.0.113.${n + 2}` }),
      ),
    ]
    const answers = await Promise.all(calls)
    const declined = answers.filter(({ status }) => status === 429).length
    expect(answers.slice(1).map(({ body }) => body['title'])).toEqual(Array(9).fill('/page'))
    // It is declined unless another's fetch had begun before it was asked.
    expect(declined).toBeLessThanOrEqual(1)
    expect(web.requests).toHaveLength(2)
    const { within, near } = (await used(app, 'parse-url')) ?? { within: 0, near: 0 }
    expect(Number(within) + Number(near)).toBe(2)
  })

  it('is not asked for where no rule is for parse-url', async () => {
    const { web, app } = await appAndWeb(page('<title>T</title>'))
    for (let n = 0; n < 100; n++) expect((await app.parse(at(web, String(n)))).status).toBe(200)
    expect(results(await app.scrape())).toEqual({ miss: 100 })
  })
})

describe('a client that goes away', () => {
  it('ends no fetch: the page is kept for the next', async () => {
    let answer: () => void = () => undefined
    const { web, app } = await appAndWeb((socket) => {
      answer = () => void socket.end(page('<title>T</title>'))
    })
    const request = get(`${app.url}/api/parse?url=${encodeURIComponent(at(web))}`)
    request.on('error', () => undefined)
    await vi.waitFor(() => expect(web.requests).toHaveLength(1))
    request.destroy()
    await vi.waitFor(async () => expect((await app.gate.stats()).totals.allowed).toBe(1))
    answer()
    await vi.waitFor(async () => expect(results(await app.scrape())).toEqual({ miss: 1 }))
    expect((await app.parse(at(web))).body['cached']).toBe(true)
  })
})

describe('the metrics', () => {
  it('are all there at 0 from the first scrape', async () => {
    const app = await hostedApp()
    const series = await app.scrape()
    for (const result of parseResults) {
      expect(valueOf(series, 'tallygate_url_parse_requests_total', { result })).toBe(0)
    }
    for (const reason of fetchFailureReasons) {
      expect(valueOf(series, 'tallygate_url_fetch_failures_total', { reason })).toBe(0)
    }
    expect(fetchCount(series)).toBe(0)
    expect(valueOf(series, 'tallygate_url_cache_entries')).toBe(0)
    const reasons = 'blocked dns connect tls timeout redirects status body'
    expect(fetchFailureReasons.join(' ')).toBe(reasons)
  })

  it('say how many pages are kept, at once', async () => {
    const { web, app } = await appAndWeb(page('<title>T</title>'))
    for (let n = 1; n <= 5; n++) {
      await app.parse(at(web, String(n)))
      expect(valueOf(await app.scrape(), 'tallygate_url_cache_entries')).toBe(n)
    }
    expect(fetchCount(await app.scrape())).toBe(5)
  })
})

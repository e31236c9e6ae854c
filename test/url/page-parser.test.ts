/*
 * What a call to the parser costs and gets: a fetch of its own, a share of another's, or a page of the day.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../src/testing/index.js'
import { UrlFailure } from '../../src/url/failure.js'
import { PageCache } from '../../src/url/page-cache.js'
import type { FetchedPage } from '../../src/url/page.js'
import type { ParseOptions } from '../../src/url/options.js'
import { PageParser } from '../../src/url/page-parser.js'
import { epochMs } from '../support/units/limits.js'
import {
  CollectingObserver,
  FakeFetcher,
  FaultyRows,
  fetchedPage,
  timeout,
} from '../support/units/pages.js'

const a = 'https://a.test/'

function bench() {
  const clock = manualClock(epochMs)
  const fetcher = new FakeFetcher()
  const observer = new CollectingObserver()
  const rows = new FaultyRows()
  const cache = new PageCache({
    rows,
    rowsMax: { count: 1_000, bytes: 1e8 },
    wallMs: () => clock.wallMs(),
    entriesMax: 1_000,
    bytesMax: 1e7,
    onFailure: () => undefined,
  })
  const parser = new PageParser({ fetcher, cache, clock, observer })
  const parse = (url: unknown, options?: ParseOptions) => parser.parse(url, options)
  return { clock, fetcher, observer, rows, cache, parse }
}

/** Calls that are answered one by one, by hand. */
function held<T>() {
  const waiting: { resolve: (value: T) => void; reject: (error: unknown) => void }[] = []
  const call = () =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ resolve, reject })
    })
  return { call, waiting }
}

/** What each call came to: `cached`, or the error. */
async function settled(calls: readonly Promise<{ title: string | null }>[]): Promise<unknown[]> {
  const all = await Promise.allSettled(calls)
  return all.map((one) => (one.status === 'fulfilled' ? one.value.title : one.reason))
}

describe('a call', () => {
  it('gives what the page says, and when it was fetched', async () => {
    const { clock, fetcher, parse, observer } = bench()
    fetcher.answer = (url) => {
      clock.advance(1_250)
      return { ...fetchedPage(url), finalUrl: 'https://b.test/', truncated: true }
    }
    expect(await parse('https://a.test/#top')).toEqual({
      url: 'https://a.test/',
      finalUrl: 'https://b.test/',
      title: 'https://a.test/',
      description: null,
      image: null,
      siteName: null,
      canonical: null,
      language: null,
      contentType: 'text/html',
      fetchedAt: new Date(epochMs + 1_250).toISOString(),
      cached: false,
      truncated: true,
    })
    expect([observer.results, observer.fetches]).toEqual([['miss'], [[1.25, null]]])
  })

  it('is answered from the cache for a day, and says so', async () => {
    const { clock, parse, fetcher, observer } = bench()
    const first = await parse(a)
    clock.advance(86_399_999)
    expect(await parse(a)).toEqual({ ...first, cached: true })
    clock.advance(1)
    expect(await parse(a)).toMatchObject({
      cached: false,
      fetchedAt: new Date(clock.wallMs()).toISOString(),
    })
    expect(fetcher.fetched).toHaveLength(2)
    expect(observer.results).toEqual(['miss', 'hit', 'miss'])
  })

  it('keeps pages that are no HTML too', async () => {
    const { fetcher, parse } = bench()
    fetcher.answer = (url) => ({ ...fetchedPage(url), contentType: null, body: new Uint8Array() })
    expect(await parse(a)).toMatchObject({ title: null, contentType: null, cached: false })
    expect(await parse(a)).toMatchObject({ contentType: null, cached: true })
  })

  it('URL-21: is for one page however its scheme, host, port and fragment are written', async () => {
    const { fetcher, parse } = bench()
    await parse('HTTPS://Example.COM:443/Path?q=A')
    expect(await parse('https://example.com/Path?q=A#top')).toMatchObject({ cached: true })
    expect(fetcher.fetched).toEqual(['https://example.com/Path?q=A'])
  })

  it('URL-21: is for another page where path, slash or order of the query differ', async () => {
    const { fetcher, parse } = bench()
    const paths = ['Path', 'path', 'a', 'a/', '?a=1&b=2', '?b=2&a=1', '?q=A', '?q=a']
    for (const path of paths) expect((await parse(a + path)).cached).toBe(false)
    for (const path of paths) expect((await parse(a + path)).title).toBe(a + path)
    expect(fetcher.fetched).toHaveLength(paths.length)
  })

  it('URL-23: is a new attempt after a failure, which is not kept', async () => {
    const { fetcher, parse, observer } = bench()
    const failure = timeout()
    fetcher.answer = () => Promise.reject(failure)
    await expect(parse(a)).rejects.toBe(failure)
    fetcher.answer = fetchedPage
    expect(await parse(a)).toMatchObject({ title: a, cached: false })
    expect(observer.results).toEqual(['failed', 'miss'])
    expect(observer.fetches).toEqual([
      [0, 'timeout'],
      [0, null],
    ])
  })

  it('gets a page whatever becomes of the rows', async () => {
    const { parse, rows, cache } = bench()
    rows.failure = new Error('database is locked')
    expect(await parse(a)).toMatchObject({ cached: false })
    await cache.flush()
    expect(await parse(a)).toMatchObject({ cached: true })
  })
})

describe('parallel calls for one URL', () => {
  it('share one fetch', async () => {
    const { fetcher, parse, observer, rows } = bench()
    const { call, waiting } = held<FetchedPage>()
    fetcher.answer = call
    const calls = Array.from({ length: 50 }, () => parse(a))
    await nextTurn()
    calls.push(parse(`${a}#late`))
    await nextTurn()
    expect(waiting).toHaveLength(1)
    waiting[0]?.resolve(fetchedPage(new URL(a)))
    const pages = await Promise.all(calls)
    expect(pages.every(({ cached, title }) => !cached && title === a)).toBe(true)
    expect(observer.counts()).toEqual({ miss: 1, shared: 50 })
    expect(rows.calls).toEqual(['get'])
    expect(await parse(a)).toMatchObject({ cached: true })
  })

  it('share a failure, and the next call tries again', async () => {
    const { fetcher, parse, observer } = bench()
    const failure = timeout()
    fetcher.answer = () => nextTurn().then(() => Promise.reject(failure))
    // At once where it hears of the failure, while others have not yet.
    const next = parse(a).catch(() => {
      fetcher.answer = fetchedPage
      return parse(a)
    })
    const others = Array.from({ length: 50 }, () => parse(a))
    expect(new Set(await settled(others))).toEqual(new Set([failure]))
    expect(await next).toMatchObject({ title: a })
    expect(fetcher.fetched).toHaveLength(2)
    expect(observer.fetches).toEqual([
      [0, 'timeout'],
      [0, null],
    ])
    expect(observer.counts()).toEqual({ failed: 51, miss: 1 })
  })

  it('share what the rows have', async () => {
    const { parse, cache, rows, fetcher, observer } = bench()
    await parse(a)
    await cache.flush()
    const stored = [...rows.kept]
    const another = bench()
    for (const [url, data] of stored) another.rows.kept.set(url, data)
    const pages = await Promise.all(Array.from({ length: 20 }, () => another.parse(a)))
    expect(pages.every(({ cached }) => cached)).toBe(true)
    expect(another.rows.calls).toEqual(['get'])
    expect([fetcher.fetched.length, another.fetcher.fetched.length]).toEqual([1, 0])
    expect([observer.counts(), another.observer.counts()]).toEqual([{ miss: 1 }, { hit: 20 }])
    another.clock.advance(86_400_000)
    expect(await another.parse(a)).toMatchObject({ cached: false })
  })

  it('for different URLs are fetched side by side', async () => {
    const { fetcher, parse } = bench()
    const { call, waiting } = held<FetchedPage>()
    fetcher.answer = call
    const calls = ['1', '2', '3'].map((path) => parse(a + path))
    await nextTurn()
    expect(waiting).toHaveLength(3)
    for (const { resolve } of waiting.toReversed()) resolve(fetchedPage(new URL(a)))
    await Promise.all(calls)
  })
})

describe('beforeFetch', () => {
  it('is called once before a fetch, and before anything is asked about its host', async () => {
    const { fetcher, parse } = bench()
    const order: string[] = []
    fetcher.answer = (url) => {
      order.push('fetch')
      return fetchedPage(url)
    }
    await parse(a, { beforeFetch: () => nextTurn().then(() => order.push('charge')) })
    expect(order).toEqual(['charge', 'fetch'])
  })

  it('is not called for a page of the cache, a shared fetch, or a URL that is refused', async () => {
    const { parse, fetcher, observer } = bench()
    let charged = 0
    const beforeFetch = () => void charged++
    await Promise.all(Array.from({ length: 50 }, () => parse(a, { beforeFetch })))
    await parse(a, { beforeFetch })
    expect(charged).toBe(1)
    for (const url of ['nonsense', undefined, ['https://a.test/'], 'https://refused.test/']) {
      await expect(parse(url, { beforeFetch })).rejects.toBeInstanceOf(UrlFailure)
    }
    expect([charged, fetcher.fetched.length]).toEqual([1, 1])
    expect(observer.counts()).toEqual({ miss: 1, shared: 49, hit: 1, failed: 4 })
    // What was refused by its text was no fetch.
    expect(observer.fetches).toHaveLength(1)
  })

  it.each([
    [
      'throws',
      (error: unknown) => {
        throw error
      },
    ],
    ['rejects', (error: unknown) => Promise.reject(error)],
    ['rejects later', (error: unknown) => nextTurn().then(() => Promise.reject(error))],
  ])('that %s keeps the fetch from beginning; the call rejects with its error', async (_, fail) => {
    const { parse, fetcher, observer } = bench()
    for (const error of [new Error('limit'), undefined, 'no']) {
      const call = parse(a, { beforeFetch: () => fail(error) }).then(
        () => 'parsed',
        (reason: unknown) => [reason],
      )
      expect(await call).toEqual([error])
    }
    expect([fetcher.fetched, observer.counts(), observer.fetches]).toEqual([
      [],
      { declined: 3 },
      [],
    ])
    expect(await parse(a)).toMatchObject({ cached: false })
  })

  it('that declines one call leaves the fetch to the next that is allowed, and the rest share', async () => {
    const { parse, fetcher, observer } = bench()
    const order: number[] = []
    const errors = Array.from({ length: 10 }, (_, caller) => new Error(`caller ${caller}`))
    const calls = errors.map((error, caller) =>
      parse(a, {
        async beforeFetch() {
          order.push(caller)
          await nextTurn()
          if (caller < 3) throw error
        },
      }),
    )
    expect(await settled(calls)).toEqual([...errors.slice(0, 3), ...Array(7).fill(a)])
    expect([order, fetcher.fetched.length]).toEqual([[0, 1, 2, 3], 1])
    expect(observer.counts()).toEqual({ declined: 3, miss: 1, shared: 6 })
  })

  it('that declines all of them declines each by its own error', async () => {
    const { parse, fetcher, rows } = bench()
    const errors = Array.from({ length: 50 }, (_, caller) => new Error(`caller ${caller}`))
    const calls = errors.map((error) => parse(a, { beforeFetch: () => Promise.reject(error) }))
    expect(await settled(calls)).toEqual(errors)
    expect([fetcher.fetched, rows.calls]).toEqual([[], ['get']])
    // Another line, which looks for itself.
    expect(await parse(a)).toMatchObject({ cached: false })
    expect(rows.calls).toEqual(['get', 'get'])
  })

  it('of a call that waited behind a declined one is asked though another URL is busy', async () => {
    const { parse, fetcher } = bench()
    const { call, waiting } = held<void>()
    const declined = parse(a, { beforeFetch: call })
    const behind = parse(a)
    expect(await parse('https://b.test/')).toMatchObject({ cached: false })
    expect(fetcher.fetched).toEqual(['https://b.test/'])
    waiting[0]?.reject(new Error('limit'))
    expect(await settled([declined, behind])).toEqual([new Error('limit'), a])
  })

  it('of many calls that are declined is asked in time that grows with their number alone', async () => {
    const { parse } = bench()
    let asked = 0
    const beforeFetch = () => {
      asked++
      throw new Error('limit')
    }
    const calls = Array.from({ length: 5_000 }, () => parse(a, { beforeFetch }))
    await Promise.allSettled(calls)
    expect(asked).toBe(5_000)
  })
})

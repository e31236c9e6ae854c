/*
 * The pages of a day: how long one lives, how many there may be, and that no failure of the rows behind
 * reaches anybody.
 */
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import type { Asked } from '../../src/sqlite/asked.js'
import { PageRows } from '../../src/sqlite/pages.js'
import { manualClock } from '../../src/testing/index.js'
import { pageLifetimeMs, writtenPage } from '../../src/url/kept-page.js'
import { PageCache, type PageCacheOptions } from '../../src/url/page-cache.js'
import { temporaryFolder } from '../support/processes.js'
import { askedOf } from '../support/units/asked.js'
import { epochMs } from '../support/units/limits.js'
import { FaultyRows, keptPage } from '../support/units/pages.js'

const a = 'https://a.test/'
const dayMs = 86_400_000

function bench(rows: Asked<PageRows> | null, bounds: Partial<PageCacheOptions> = {}) {
  const clock = manualClock(epochMs)
  const failures: unknown[] = []
  const newCache = () =>
    new PageCache({
      rows,
      rowsMax: { count: 1_000, bytes: 1e8 },
      wallMs: () => clock.wallMs(),
      entriesMax: 1_000,
      bytesMax: 8 * 1024 * 1024,
      onFailure: (error) => failures.push(error),
      ...bounds,
    })
  const cache = newCache()
  const put = (url: string) => cache.put(keptPage(url, clock.wallMs()))
  return { clock, cache, newCache, put, failures }
}

function sqliteRows(): Asked<PageRows> {
  const database = openDatabase(join(temporaryFolder(), 'x.db'), epochMs)
  onTestFinished(() => database.close())
  return askedOf(new PageRows(database), ['get', 'put', 'makeRoom', 'count', 'sweep'])
}

describe.each([
  ['in memory', () => null],
  ['behind which there are rows', () => new FaultyRows()],
])('a page %s', (_, rows) => {
  it('URL-25: is found until it is a day old, to the millisecond', async () => {
    const { clock, cache, put } = bench(rows())
    put(a)
    await cache.flush()
    clock.advance(86_399_999)
    expect((await cache.find(a))?.title).toBe('Page of https://a.test/')
    clock.advance(1)
    expect([cache.peek(a), await cache.find(a)]).toEqual([null, null])
  })

  it('URL-25: is none while the clock is behind its time', async () => {
    const { clock, cache, put } = bench(rows())
    put(a)
    await cache.flush()
    clock.advance(-2 * dayMs)
    expect([cache.peek(a), await cache.find(a)]).toEqual([null, null])
    clock.advance(dayMs)
    expect([cache.peek(a), await cache.find(a)]).toEqual([null, null])
  })

  it('is the last one that was put', async () => {
    const { clock, cache } = bench(rows())
    for (const title of ['one', 'two']) cache.put(keptPage(a, clock.wallMs(), { title }))
    expect(cache.peek(a)?.title).toBe('two')
    expect(await cache.count()).toBe(1)
  })
})

describe('the copy in memory', () => {
  it('URL-25: holds as many pages as it may, the first to come makes room', async () => {
    const { cache, put } = bench(null)
    const urls = Array.from({ length: 5_000 }, (_, n) => `https://a.test/${n}`)
    for (const url of urls) {
      put(url)
      if ((await cache.count()) > 1_000) throw new Error('too many')
    }
    expect(urls.filter((url) => cache.peek(url) !== null)).toEqual(urls.slice(-1_000))
  })

  it('holds as many bytes as it may', async () => {
    const { clock, cache } = bench(null, { bytesMax: 10_000 })
    const title = 'é'.repeat(1_000)
    for (let n = 0; n < 20; n++) {
      cache.put(keptPage(`https://a.test/${n}`, clock.wallMs(), { title }))
    }
    const { length } = Buffer.from(writtenPage(keptPage('https://a.test/19', epochMs, { title })))
    expect(await cache.count()).toBe(Math.floor(10_000 / length))
    for (let n = 0; n < 20; n++) cache.put(keptPage(a, clock.wallMs(), { title }))
    expect(await cache.count()).toBe(Math.floor(10_000 / length))
    const huge = keptPage(a, clock.wallMs(), { title: 'x'.repeat(10_001) })
    cache.put(huge)
    expect([cache.peek(a), await cache.count()]).toEqual([null, 0])
  })

  it('URL-25: loses what has expired, and what was dated ahead, though nobody asks', async () => {
    const { clock, cache, put } = bench(null, { entriesMax: 5_000 })
    for (let n = 0; n < 2_500; n++) put(`https://a.test/${n}`)
    clock.advance(dayMs)
    put(a)
    clock.advance(-1)
    const counts = [await cache.count()]
    for (let turn = 0; turn < 3; turn++) {
      await cache.sweep()
      counts.push(await cache.count())
    }
    // A bounded piece at a time. A millisecond before its day is over, all but one are fresh.
    expect(counts).toEqual([2_501, 2_501, 2_501, 2_500])
    clock.advance(1)
    for (let turn = 0; turn < 3; turn++) await cache.sweep()
    expect(await cache.count()).toBe(0)
  })
})

describe('the rows behind', () => {
  it('have a page after the next flush, and give it to another cache', async () => {
    const rows = sqliteRows()
    const { cache, newCache, put } = bench(rows)
    put(a)
    expect(await newCache().find(a)).toBeNull()
    await cache.flush()
    const another = newCache()
    expect(await another.find(a)).toEqual(cache.peek(a))
    expect(another.peek(a)).toEqual(cache.peek(a))
  })

  it('URL-25: give a page for a day after its fetch, not after it was read', async () => {
    const rows = sqliteRows()
    const { cache, newCache, clock, put } = bench(rows)
    put(a)
    await cache.flush()
    clock.advance(dayMs - 1)
    const another = newCache()
    expect(await another.find(a)).not.toBeNull()
    clock.advance(1)
    expect(another.peek(a)).toBeNull()
  })

  it('are asked by find alone', async () => {
    const rows = new FaultyRows()
    const { cache } = bench(rows)
    expect([cache.peek(a), rows.calls]).toEqual([null, []])
    expect(await cache.find(a)).toBeNull()
    expect(rows.calls).toEqual(['get'])
  })

  it('are written once a flush, however often a page was put', async () => {
    const rows = new FaultyRows()
    const { cache, put } = bench(rows)
    for (let n = 0; n < 50; n++) put(a)
    for (let n = 0; n < 250; n++) put(`https://a.test/${n}`)
    await Promise.all([cache.flush(), cache.flush()])
    // 251 pages, a hundred at a time.
    expect(rows.calls).toEqual(['put', 'put', 'put'])
    await cache.flush()
    expect([rows.calls.length, rows.kept.size]).toEqual([3, 251])
  })

  it('are written once more where a page is put while it is being written', async () => {
    const rows = new FaultyRows()
    const { cache, clock, put } = bench(rows)
    put(a)
    const flushing = cache.flush()
    await Promise.resolve()
    cache.put(keptPage(a, clock.wallMs(), { title: 'newer' }))
    await flushing
    await cache.flush()
    expect(rows.kept.get(a)).toContain('newer')
  })

  it.each([
    ['no JSON', '{"version":1,'],
    ['no page', 'null'],
    ['of another version', writtenPage(keptPage(a, epochMs)).replace('"version":1', '"version":2')],
    ['of another URL', writtenPage(keptPage('https://b.test/', epochMs))],
    ['with a field too few', writtenPage(keptPage(a, epochMs)).replace('"language":null,', '')],
    ['with a field of another type', writtenPage({ ...keptPage(a, epochMs), title: 7 as never })],
    ['with a date that is none', writtenPage(keptPage(a, epochMs, { fetchedAt: 'today' }))],
    ['with a date ahead', writtenPage(keptPage(a, epochMs + 1))],
  ])('that are %s are no pages, and no failure', async (_, data) => {
    const rows = new FaultyRows()
    const { cache, failures } = bench(rows)
    rows.kept.set(a, writtenPage(keptPage(a, epochMs)))
    expect(await cache.find(a)).not.toBeNull()
    rows.kept.set(a, data)
    const { cache: another } = bench(rows)
    expect(await another.find(a)).toBeNull()
    expect(failures).toEqual([])
  })
})

describe('rows that fail', () => {
  it('fail nobody, are told of once, and have every page once they are well again', async () => {
    const rows = new FaultyRows()
    const { cache, put, failures } = bench(rows)
    rows.failure = new Error('disk I/O error')
    put(a)
    for (let turn = 0; turn < 3; turn++) await cache.flush()
    expect(await cache.find('https://b.test/')).toBeNull()
    expect(await cache.count()).toBe(0)
    await cache.sweep()
    expect([cache.peek(a) !== null, failures]).toEqual([true, [rows.failure]])
    rows.failure = null
    await cache.flush()
    expect([[...rows.kept.keys()], failures.at(-1)]).toEqual([[a], null])
    expect([failures.length, await cache.count()]).toEqual([2, 1])
  })

  // A file that was just opened answers when its thread has started, later than a call waits for a page.
  it('that are only starting are waited for, whatever they answer then', async () => {
    const rows = new FaultyRows()
    const { cache, failures } = bench(rows)
    let answer: (data: string | null) => void = () => undefined
    rows.get = () => new Promise((resolve) => (answer = resolve))
    let isStarted = false
    const started = cache.started().then(() => (isStarted = true))
    await nextTurn()
    expect(isStarted).toBe(false)
    answer(null)
    await started
    rows.get = () => Promise.reject(new Error('database is locked'))
    await cache.started()
    expect(failures).toHaveLength(1)
    await bench(null).cache.started()
  })

  it('that do not answer are waited for a moment, by one call', async () => {
    const rows = new FaultyRows()
    const { cache } = bench(rows)
    rows.get = (url) => {
      rows.calls.push(`get ${url}`)
      return new Promise(() => undefined)
    }
    for (let n = 0; n < 50; n++) expect(await cache.find(a)).toBeNull()
    expect(rows.calls).toEqual([`get ${a}`])
  })

  it('are read again once a second, not with every call', async () => {
    const rows = new FaultyRows()
    const { cache, failures } = bench(rows)
    rows.failure = new Error('database is locked')
    for (let n = 0; n < 50; n++) expect(await cache.find(a)).toBeNull()
    expect(rows.calls).toEqual(['get'])
    await cache.flush()
    expect(failures).toEqual([rows.failure])
    rows.failure = null
    rows.kept.set(a, writtenPage(keptPage(a, epochMs)))
    await cache.flush()
    expect(await cache.find(a)).not.toBeNull()
    expect(failures.at(-1)).toBeNull()
  })

  it('hold up no more pages than there is room for in memory', async () => {
    const rows = new FaultyRows()
    const { cache, put } = bench(rows, { entriesMax: 10 })
    rows.failure = new Error('database or disk is full')
    for (let n = 0; n < 1_000; n++) put(`https://a.test/${n}`)
    await cache.flush()
    for (let n = 1_000; n < 1_005; n++) put(`https://a.test/${n}`)
    rows.failure = null
    await cache.flush()
    expect([...rows.kept.keys()].toSorted()).toEqual(
      Array.from({ length: 10 }, (_, n) => `https://a.test/${n + 995}`).toSorted(),
    )
  })
})

it('a page lives for a day', () => {
  expect(pageLifetimeMs).toBe(24 * 60 * 60 * 1_000)
})

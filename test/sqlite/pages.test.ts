/*
 * Page rows: given out for exactly their lifetime, bounded by count and bytes, the oldest making room.
 */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import { PageRows, pieceCountMax, type PageSums } from '../../src/sqlite/pages.js'
import { manualClock } from '../../src/testing/index.js'
import { temporaryFolder } from '../support/processes.js'
import { epochMs } from '../support/units/limits.js'

const dayMs = 86_400_000

function bench(bounds: Partial<PageSums> = {}) {
  const database = openDatabase(join(temporaryFolder(), 'x.db'), epochMs)
  onTestFinished(() => database.close())
  const clock = manualClock(epochMs)
  const { connection } = database
  const rows = new PageRows(database)
  const most = { count: 1_000, bytes: 1_000_000, ...bounds }
  const span = () => ({ afterMs: clock.wallMs() - dayMs, untilMs: clock.wallMs() })
  const get = (url: string) => rows.get(url, span())
  return {
    clock,
    connection,
    rows,
    get,
    count: () => rows.count(span()),
    sweep: () => rows.sweep(span()),
    /** Puts pages of that data now, and makes room; how many pieces that took. */
    put: (urls: readonly string[], data = '{}') => {
      rows.put(urls.map((url) => ({ url, data, fetchedMs: clock.wallMs() })))
      let pieces = 0
      while (rows.makeRoom(most)) pieces++
      return pieces
    },
    stored: () => (connection.prepare('SELECT count(*) AS n FROM pages').get() as { n: number }).n,
    found: (urls: readonly string[]) => urls.filter((url) => get(url) !== null),
  }
}

describe('page rows', () => {
  it('give back what was put, the later of two, and nothing for another URL', () => {
    const { put, get, count } = bench()
    put(['https://a.test/'], '1')
    put(['https://a.test/b'], '2')
    put(['https://a.test/'], '3')
    const urls = ['https://a.test/', 'https://a.test/b', 'https://a.test/B', '']
    expect(urls.map((url) => get(url))).toEqual(['3', '2', null, null])
    expect(count()).toBe(2)
  })

  it('URL-25: live to the millisecond, and are swept afterwards', () => {
    const { put, get, count, sweep, clock, stored } = bench()
    put(['https://a.test/'])
    clock.advance(dayMs - 1)
    expect([get('https://a.test/'), count(), sweep()]).toEqual(['{}', 1, 0])
    clock.advance(1)
    expect([get('https://a.test/'), count()]).toEqual([null, 0])
    expect([sweep(), stored()]).toEqual([1, 0])
  })

  it('URL-25: dated ahead by a clock that was set back are none, and are swept', () => {
    const { put, get, count, sweep, clock, stored } = bench()
    put(['https://a.test/'])
    clock.advance(-1)
    expect([get('https://a.test/'), count()]).toEqual([null, 0])
    clock.advance(1 - 2 * dayMs)
    expect([sweep(), stored()]).toEqual([1, 0])
    clock.advance(2 * dayMs)
    expect(get('https://a.test/')).toBeNull()
  })

  it('URL-25: are at most so many, and the oldest make room', () => {
    const { put, clock, stored, found } = bench()
    const urls = Array.from({ length: 5_000 }, (_, n) => `https://a.test/${n}`)
    for (let first = 0; first < urls.length; first += 100) {
      clock.advance(1)
      put(urls.slice(first, first + 100))
      expect(stored()).toBeLessThanOrEqual(1_000)
    }
    expect(found(urls)).toEqual(urls.slice(-1_000))
  })

  it('are at most so many bytes of UTF-8, and the oldest make room', () => {
    const { put, clock, found } = bench({ bytes: 300 })
    const urls = ['a', 'b', 'c', 'd']
    for (const url of urls) {
      clock.advance(1)
      put([url], 'é'.repeat(50))
    }
    expect(found(urls)).toEqual(['b', 'c', 'd'])
    clock.advance(1)
    put(['b'], 'x'.repeat(201))
    expect(found(urls)).toEqual(['b'])
  })

  it('that alone are more than all may be are not kept', () => {
    const { put, stored } = bench({ bytes: 300 })
    put(['a'], 'x'.repeat(301))
    expect(stored()).toBe(0)
  })

  it('make room and are swept in pieces, so that others get their turn', () => {
    const { rows, put, clock, sweep, stored } = bench({ count: 3_000 })
    put(Array.from({ length: 3_000 }, (_, n) => `https://a.test/${n}`))
    let pieces = 0
    while (rows.makeRoom({ count: 1_100, bytes: 1e6 })) pieces++
    expect([stored(), pieces]).toEqual([1_100, Math.ceil(1_900 / pieceCountMax)])
    clock.advance(dayMs)
    expect([sweep(), sweep(), sweep(), sweep()]).toEqual([500, 500, 100, 0])
  })

  it('are counted and swept by their index alone', () => {
    const { connection } = bench()
    const plan = (sql: string) =>
      connection
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map((step) => (step as { detail: string }).detail)
        .join('; ')
    expect(plan('SELECT count(*), total(size_bytes) FROM pages')).toContain('COVERING INDEX')
    expect(
      plan('SELECT rowid FROM pages WHERE fetched_ms <= 1 OR fetched_ms > 2 LIMIT 5'),
    ).not.toMatch(/SCAN pages(?! USING COVERING)/)
  })

  it('take hostile URLs as URLs like any other', () => {
    const { put, get } = bench()
    const urls = ['__proto__', "'; DROP TABLE pages; --", '\u0000', 'x'.repeat(100_000)]
    for (const url of urls) put([url], String(url.length))
    expect(urls.map((url) => get(url))).toEqual(urls.map((url) => String(url.length)))
  })
})

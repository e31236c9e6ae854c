/*
 * Page rows: given out for exactly their lifetime, bounded by count and bytes, the oldest making room.
 */
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/sqlite/database.js'
import { SqlitePageRows, type PageRowsOptions } from '../../src/sqlite/pages.js'
import { manualClock } from '../../src/testing/index.js'
import { temporaryFolder } from '../support/processes.js'
import { epochMs } from '../support/units/limits.js'

const dayMs = 86_400_000

function bench(bounds: Partial<PageRowsOptions> = {}) {
  const database = openDatabase(join(temporaryFolder(), 'x.db'), epochMs)
  onTestFinished(() => database.close())
  const clock = manualClock(epochMs)
  const wallMs = () => clock.wallMs()
  const options = { wallMs, lifetimeMs: dayMs, rowsMax: 1_000, bytesMax: 1_000_000, ...bounds }
  const { connection } = database
  return {
    clock,
    connection,
    rows: new SqlitePageRows(database, options),
    put: (url: string, data = '{}') => ({ url, data, fetchedMs: clock.wallMs() }),
    stored: () => (connection.prepare('SELECT count(*) AS n FROM pages').get() as { n: number }).n,
    urlsOf: async (rows: SqlitePageRows, urls: readonly string[]) => {
      const found = await Promise.all(urls.map((url) => rows.get(url)))
      return urls.filter((_, index) => found[index] !== null)
    },
  }
}

describe('page rows', () => {
  it('give back what was put, the later of two, and nothing for another URL', async () => {
    const { rows, put } = bench()
    await rows.put([put('https://a.test/', '1'), put('https://a.test/b', '2')])
    await rows.put([put('https://a.test/', '3')])
    const urls = ['https://a.test/', 'https://a.test/b', 'https://a.test/B', '']
    expect(await Promise.all(urls.map((url) => rows.get(url)))).toEqual(['3', '2', null, null])
    expect(await rows.count()).toBe(2)
  })

  it('URL-25: live to the millisecond, and are swept afterwards', async () => {
    const { rows, put, clock, stored } = bench()
    await rows.put([put('https://a.test/')])
    clock.advance(dayMs - 1)
    expect([await rows.get('https://a.test/'), await rows.count()]).toEqual(['{}', 1])
    expect(await rows.sweep()).toBe(0)
    clock.advance(1)
    expect([await rows.get('https://a.test/'), await rows.count()]).toEqual([null, 0])
    expect([await rows.sweep(), stored()]).toEqual([1, 0])
  })

  it('URL-25: dated ahead by a clock that was set back are none, and are swept', async () => {
    const { rows, put, clock, stored } = bench()
    await rows.put([put('https://a.test/')])
    clock.advance(-1)
    expect([await rows.get('https://a.test/'), await rows.count()]).toEqual([null, 0])
    clock.advance(1 - 2 * dayMs)
    expect([await rows.sweep(), stored()]).toEqual([1, 0])
    clock.advance(2 * dayMs)
    expect(await rows.get('https://a.test/')).toBeNull()
  })

  it('URL-25: are at most so many, and the oldest make room', async () => {
    const { rows, put, clock, stored, urlsOf } = bench()
    const urls = Array.from({ length: 5_000 }, (_, n) => `https://a.test/${n}`)
    for (let first = 0; first < urls.length; first += 100) {
      clock.advance(1)
      await rows.put(urls.slice(first, first + 100).map((url) => put(url)))
      expect(stored()).toBeLessThanOrEqual(1_000)
    }
    expect(await urlsOf(rows, urls)).toEqual(urls.slice(-1_000))
  })

  it('are at most so many bytes of UTF-8, and the oldest make room', async () => {
    const { rows, put, clock, urlsOf } = bench({ bytesMax: 300 })
    const urls = ['a', 'b', 'c', 'd']
    for (const url of urls) {
      clock.advance(1)
      await rows.put([put(url, 'é'.repeat(50))])
    }
    expect(await urlsOf(rows, urls)).toEqual(['b', 'c', 'd'])
    clock.advance(1)
    await rows.put([put('b', 'x'.repeat(201))])
    expect(await urlsOf(rows, urls)).toEqual(['b'])
  })

  it('that alone are more than all may be are not kept', async () => {
    const { rows, put, stored } = bench({ bytesMax: 300 })
    await rows.put([put('a', 'x'.repeat(301))])
    expect(stored()).toBe(0)
  })

  it('make room for bounds that were lowered, with the turn of others in between', async () => {
    const { rows, put, connection, clock, stored } = bench({ rowsMax: 3_000 })
    const many = Array.from({ length: 3_000 }, (_, n) => put(`https://a.test/${n}`))
    await rows.put(many)
    const options = { wallMs: () => clock.wallMs(), lifetimeMs: dayMs, rowsMax: 10, bytesMax: 1e6 }
    const smaller = new SqlitePageRows({ connection } as never, options)
    let turns = 0
    const turn = () => {
      turns++
      timer = setImmediate(turn)
    }
    let timer = setImmediate(turn)
    await smaller.put([put('https://b.test/')])
    clearImmediate(timer)
    expect([stored(), turns >= 5]).toEqual([10, true])
  })

  it('are swept in pieces, with the turn of others in between', async () => {
    const { rows, put, clock, stored } = bench({ rowsMax: 3_000 })
    await rows.put(Array.from({ length: 2_600 }, (_, n) => put(`https://a.test/${n}`)))
    clock.advance(dayMs)
    let turns = 0
    const turn = () => {
      turns++
      timer = setImmediate(turn)
    }
    let timer = setImmediate(turn)
    expect(await rows.sweep()).toBe(2_600)
    clearImmediate(timer)
    expect([stored(), turns >= 5]).toEqual([0, true])
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

  it('take hostile URLs as URLs like any other', async () => {
    const { rows, put } = bench()
    const urls = ['__proto__', "'; DROP TABLE pages; --", '\u0000', 'x'.repeat(100_000)]
    await rows.put(urls.map((url) => put(url, String(url.length))))
    expect(await Promise.all(urls.map((url) => rows.get(url)))).toEqual(
      urls.map((url) => String(url.length)),
    )
  })
})

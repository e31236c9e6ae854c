/*
 * `tallygate/url` as a program uses it: what it takes, what it refuses, and that nothing of it is left over.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { manualClock } from '../../src/testing/index.js'
import { createUrlParser, UrlFailure, type UrlParserOptions } from '../../src/url/index.js'
import { temporaryFolder } from '../support/processes.js'
import { distUrl, runModule } from '../support/units/dist.js'
import { epochMs, messageOf } from '../support/units/limits.js'
import { page, webServer } from '../support/web.js'

function parserOf(web: { port: number }, options: UrlParserOptions = {}) {
  const parser = createUrlParser({ allow: [`127.0.0.1/32:${web.port}`], ...options })
  onTestFinished(() => parser.close())
  return { ...parser, url: `http://127.0.0.1:${web.port}/` }
}

describe('a parser', () => {
  it('parses, its functions taken by themselves', async () => {
    const web = await webServer(page('<title>T</title>'))
    const { parse, close, url } = parserOf(web)
    expect(await parse(url)).toMatchObject({ url, title: 'T', cached: false, truncated: false })
    expect(await parse(new URL(`${url}#top`))).toMatchObject({ url, title: 'T', cached: true })
    await close()
    await expect(parse(url)).rejects.toMatchObject({ name: 'UrlFailure', status: 502 })
  })

  it('asks the resolver that it was given, and goes where that says', async () => {
    const web = await webServer(page('<title>T</title>'))
    const hosts: string[] = []
    const resolve = async (host: string) => {
      hosts.push(host)
      return ['127.0.0.1']
    }
    const { parse } = parserOf(web, { resolve })
    const url = `http://Example.test:${web.port}/`
    expect(await parse(url)).toMatchObject({ url: `http://example.test:${web.port}/`, title: 'T' })
    expect(hosts).toEqual(['example.test'])
  })

  it('rejects with a status that says how it failed', async () => {
    const web = await webServer('HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n')
    const { parse, url } = parserOf(web)
    const statusOf = async (asked: string) => {
      const failure = (await parse(asked).catch((error: unknown) => error)) as UrlFailure
      expect(failure).toBeInstanceOf(UrlFailure)
      return [failure.status, failure.reason]
    }
    expect(await statusOf('nonsense')).toEqual([400, 'url'])
    expect(await statusOf(7 as never)).toEqual([400, 'url'])
    expect(await statusOf('http://169.254.169.254/')).toEqual([403, 'blocked'])
    expect(await statusOf(url)).toEqual([502, 'status'])
  })

  it('cuts a page at the bytes, and gives up after the time that it was given', async () => {
    const web = await webServer(page(`<title>T</title>${'x'.repeat(1_000)}`))
    const { parse, url } = parserOf(web, { bytesMax: 100 })
    expect(await parse(url)).toMatchObject({ title: 'T', truncated: true })
    const silent = await webServer(() => undefined)
    const { parse: briefly, url: nothing } = parserOf(silent, { timeoutMs: 50 })
    await expect(briefly(nothing)).rejects.toMatchObject({ status: 504 })
  })

  it('URL-25: keeps as many pages as it was told, for a day of its clock', async () => {
    const web = await webServer(page('<title>T</title>'))
    const clock = manualClock(epochMs)
    const { parse, url } = parserOf(web, { entriesMax: 2, clock })
    const isCached = async (path: string) => (await parse(url + path)).cached
    expect([await isCached('1'), await isCached('2'), await isCached('3')]).toEqual([
      false,
      false,
      false,
    ])
    expect([await isCached('3'), await isCached('2'), await isCached('1')]).toEqual([
      true,
      true,
      false,
    ])
    clock.advance(86_400_000)
    expect(await isCached('1')).toBe(false)
  })
})

describe('a parser with a database', () => {
  it('keeps pages in it, whoever opens it next', async () => {
    const web = await webServer(page('<title>T</title>'))
    const database = join(temporaryFolder(), 'a', 'b', 'pages.db')
    const first = parserOf(web, { database })
    const { fetchedAt } = await first.parse(first.url)
    await first.close()
    const second = parserOf(web, { database })
    expect(await second.parse(second.url)).toMatchObject({ fetchedAt, cached: true })
    expect(web.requests).toHaveLength(1)
  })

  it('writes once a second', async () => {
    const web = await webServer(page('<title>T</title>'))
    const database = join(temporaryFolder(), 'pages.db')
    const { parse, url } = parserOf(web, { database })
    await parse(url)
    const other = new Sqlite(database, { readonly: true })
    const count = other.prepare('SELECT count(*) FROM pages').pluck()
    expect(count.get()).toBe(0)
    await expect.poll(() => count.get(), { timeout: 3_000 }).toBe(1)
    other.close()
  })

  it('that is locked warns once, and parses on', async () => {
    const web = await webServer(page('<title>T</title>'))
    const database = join(temporaryFolder(), 'pages.db')
    const warnings: unknown[] = []
    const warn = vi.spyOn(process, 'emitWarning')
    warn.mockImplementation((...given: unknown[]) => void warnings.push(given))
    onTestFinished(() => warn.mockRestore())
    const { parse, url } = parserOf(web, { database })
    const other = new Sqlite(database)
    other.exec('BEGIN IMMEDIATE')
    await parse(url)
    await expect.poll(() => warnings.length, { timeout: 5_000 }).toBe(1)
    await after(1_100)
    expect(await parse(url)).toMatchObject({ cached: true })
    other.exec('COMMIT')
    const count = other.prepare('SELECT count(*) FROM pages').pluck()
    await expect.poll(() => count.get(), { timeout: 3_000 }).toBe(1)
    other.close()
    const message = `pages cannot be kept in ${database}; they wait in memory: database is locked`
    expect(warnings).toEqual([[message, { type: 'TallygateWarning', code: 'TALLYGATE_DATABASE' }]])
  })

  it('that is none is refused, and no file is made for options that are refused', () => {
    const folder = temporaryFolder()
    expect(messageOf(() => createUrlParser({ database: folder }))).toMatch(
      /^Cannot open the database .*\(TALLYGATE_DATABASE\)$/,
    )
    const database = join(folder, 'x.db')
    expect(messageOf(() => createUrlParser({ database, allow: ['nonsense'] }))).toContain('allow')
    expect(existsSync(database)).toBe(false)
  })
})

describe('close', () => {
  it('ends what is running, and may be called twice', async () => {
    const web = await webServer(() => undefined)
    const { parse, close, url } = parserOf(web, { database: join(temporaryFolder(), 'x.db') })
    const running = parse(url).catch((error: unknown) => error)
    await expect.poll(() => web.requests.length).toBe(1)
    await Promise.all([close(), close()])
    expect(await running).toMatchObject({ name: 'UrlFailure', status: 502 })
    await close()
    await expect(parse(url)).rejects.toMatchObject({ name: 'UrlFailure', status: 502 })
  })

  it('is not needed for a process to end', async () => {
    const database = join(temporaryFolder(), 'x.db')
    const { status, stderr } = await runModule(`
      import { createUrlParser } from '${distUrl('url/index.js')}'
      const parsers = [createUrlParser(), createUrlParser({ database: ${JSON.stringify(database)} })]
      for (const { parse } of parsers) await parse('http://127.0.0.1/').catch(() => undefined)`)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})

describe('an option', () => {
  const refused = (options: object) => messageOf(() => createUrlParser(options))

  it.each([
    [{ timeout: 5 }, `unknown option "timeout": did you mean timeoutMs?`],
    [
      { xyzzy: 5 },
      `unknown option "xyzzy": known options are resolve, allow, timeoutMs, bytesMax, entriesMax, database, clock`,
    ],
    [{ resolve: '127.0.0.1' }, 'resolve must be a function of a host: received "127.0.0.1"'],
    [
      { allow: '10.0.0.1:80' },
      `allow must be a list such as ['127.0.0.1/32:8080']: received "10.0`,
    ],
    [{ allow: [7] }, `allow must be a list such as ['127.0.0.1/32:8080']: received [7]`],
    [{ allow: ['10.0.0.1'] }, 'received "10.0.0.1"'],
    [{ timeoutMs: 0 }, 'timeoutMs must be a whole number from 1 to 600000: received 0'],
    [{ timeoutMs: '5s' }, 'timeoutMs must be a whole number from 1 to 600000: received "5s"'],
    [{ bytesMax: 1.5 }, 'bytesMax must be a whole number from 1 to 100000000: received 1.5'],
    [{ entriesMax: NaN }, 'entriesMax must be a whole number from 1 to 100000: received NaN'],
    [
      { entriesMax: 1e9 },
      'entriesMax must be a whole number from 1 to 100000: received 1000000000',
    ],
    [{ database: '' }, 'database must be a path: received ""'],
    [{ database: 7 }, 'database must be a path: received 7'],
    [{ clock: Date }, 'clock must have the methods monotonicMs, wallMs: received'],
  ])('%j is refused', (options, sentence) => {
    expect(refused(options)).toMatch(/^Cannot create a URL parser: .*\(TALLYGATE_OPTION\)$/)
    expect(refused(options)).toContain(sentence)
  })

  it('that is undefined is the default; options that are none are refused', async () => {
    const none = { resolve: undefined, allow: undefined, timeoutMs: undefined, clock: undefined }
    await createUrlParser(none).close()
    expect(refused(null as never)).toContain('options must be an object: received null')
  })

  it.each([
    [{ beforFetch: () => 1 }, 'unknown option "beforFetch": did you mean beforeFetch?'],
    [{ beforeFetch: 'charge' }, 'beforeFetch must be a function: received "charge"'],
    [null, 'options must be an object: received null'],
  ])(
    '%j of a call is refused: nothing is fetched without its charge',
    async (options, sentence) => {
      const web = await webServer(page(''))
      const { parse, url } = parserOf(web)
      await expect(parse(url, options as never)).rejects.toMatchObject({
        code: 'TALLYGATE_OPTION',
        message: expect.stringContaining(`Cannot parse a URL: ${sentence}`) as unknown,
      })
      expect(web.connectionCount).toBe(0)
    },
  )
})

/*
 * Bodies: how much is read of them, packed or not, and when one is no page.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { FetcherOptions } from '../../src/url/fetch-page.js'
import type { FetchedPage } from '../../src/url/page.js'
import { certificate, type Certified } from '../support/certificates.js'
import {
  allClosed,
  endless,
  failureOf,
  fetcherFor,
  htmlHead,
  page,
  reasonOf,
  textOf,
  webServer,
  type Answer,
} from '../support/web.js'

/** One fetch of what a server answers; afterwards nothing may be open. */
async function fetched(
  answer: Answer | string,
  options: FetcherOptions = {},
  tls?: Certified,
): Promise<FetchedPage> {
  const web = await webServer(answer, tls)
  const scheme = tls === undefined ? 'http' : 'https'
  const fetcher = fetcherFor([web], { ...options, ...(tls && { ca: [tls.cert] }) })
  try {
    return await fetcher.fetch(new URL(`${scheme}://a.example:${web.port}/`))
  } finally {
    await allClosed(web)
  }
}

/** Sends a body in pieces of `pieceBytes`, all at once by default. */
const body =
  (fields: string, bytes: Buffer, pieceBytes = Math.max(1, bytes.length)): Answer =>
  async (socket) => {
    socket.setNoDelay(true).write(`${htmlHead}${fields}\r\n`)
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      socket.write(bytes.subarray(at, at + pieceBytes))
      await new Promise((settle) => setImmediate(settle))
    }
    socket.end()
  }

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** How much larger the process becomes meanwhile, at most. */
async function growthBytes(work: () => Promise<unknown>): Promise<number> {
  collectGarbage()
  const { rss } = process.memoryUsage()
  let peak = 0
  const look = () => (peak = Math.max(peak, process.memoryUsage().rss))
  const watch = setInterval(look, 2)
  await work()
  clearInterval(watch)
  look()
  return peak - rss
}

const letters = (count: number) => Buffer.alloc(count, 'a')
const titled = '<title>Early</title>'

describe('an endless body', () => {
  const a64k = letters(65_536)

  it.each([
    ['without a length', '', a64k],
    ['with a length that is too large', 'Content-Length: 99999999999999\r\n', a64k],
    [
      'in chunks',
      'Transfer-Encoding: chunked\r\n',
      Buffer.concat([Buffer.from('10000\r\n'), a64k, Buffer.from('\r\n')]),
    ],
  ])('URL-08: %s is cut at the cap, and what came is the page', async (_, fields, piece) => {
    const first = /chunked/.test(fields) ? `14\r\n${titled}\r\n` : titled
    const found = await fetched(endless(`${htmlHead}${fields}\r\n${first}`, piece))
    expect(found.truncated).toBe(true)
    expect(found.body.length).toBe(1_000_000)
    expect(textOf(found).startsWith(titled)).toBe(true)
  })

  it('URL-08: through TLS as well', async () => {
    const found = await fetched(
      endless(`${htmlHead}\r\n${titled}`, a64k),
      {},
      certificate({ names: ['a.example'] }),
    )
    expect(found).toMatchObject({ truncated: true })
    expect(found.body.length).toBe(1_000_000)
  })

  it('URL-08: behind a length that is too small ends there', async () => {
    const fields = `Content-Length: ${titled.length}\r\n`
    const found = await fetched(endless(`${htmlHead}${fields}\r\n${titled}`, a64k))
    expect([textOf(found), found.truncated]).toEqual([titled, false])
  })

  it('URL-08: takes less memory than twice the cap', async () => {
    // So large that what the collector lets lie, some ten megabytes, is little beside it.
    const bytesMax = 100_000_000
    const answer = endless(`${htmlHead}\r\n`, a64k)
    await fetched(answer)
    const growth = await growthBytes(async () => {
      expect((await fetched(answer, { bytesMax })).body.length).toBe(bytesMax)
    })
    expect(growth).toBeLessThan(2 * bytesMax)
  })

  it.each([
    ['of chunk sizes', 'Transfer-Encoding: chunked\r\n\r\n', '0'.repeat(65_536)],
    ['of chunks of one byte', 'Transfer-Encoding: chunked\r\n\r\n', '1\r\na\r\n'.repeat(9_000)],
    [
      'of packing without content',
      'Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\0\0\0\0\0\0\x03',
      '\0\0\0\xff\xff'.repeat(9_000),
    ],
  ])('%s is cut too, though it stays below the cap', async (_, fields, piece) => {
    const found = await fetched(endless(htmlHead + fields, Buffer.from(piece, 'latin1')))
    expect(found.truncated).toBe(true)
    expect(found.body.length).toBeLessThan(1_000_000)
  })

  it.each([
    ['of empty lines before the head', '', '\r\n'.repeat(30_000)],
    ['of informational answers', '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(999)],
    ['of header fields', 'HTTP/1.1 200 OK\r\n', 'a: b\r\n'.repeat(9_000)],
    ['of one header field', 'HTTP/1.1 200 OK\r\na: ', 'b'.repeat(60_000)],
    ['of one header name', 'HTTP/1.1 200 OK\r\n', 'b'.repeat(60_000)],
    ['of a reason', 'HTTP/1.1 200 ', 'b'.repeat(60_000)],
  ])('%s is no answer', async (_, head, piece) => {
    const failure = await failureOf(fetched(endless(head, Buffer.from(piece))))
    expect(failure.reason).toBe('connect')
  })

  it('of extensions to a chunk, or of trailers, is none either', async () => {
    const chunked = `${htmlHead}Transfer-Encoding: chunked\r\n\r\n1`
    expect(await reasonOf(fetched(endless(`${chunked};a=`, a64k)))).toBe('body')
    const trailers = Buffer.from('a: b\r\n'.repeat(9_000))
    expect(await reasonOf(fetched(endless(`${chunked}\r\na\r\n0\r\n`, trailers)))).toBe('body')
  })
})

describe('the cap', () => {
  it.each([
    [999, false],
    [1_000, false],
    [1_001, true],
    [200_000, true],
  ])('of 1000 makes %i bytes truncated: %s', async (count, truncated) => {
    for (const answer of [
      body('', letters(count)),
      body(`Content-Length: ${count}\r\n`, letters(count)),
      body('Content-Encoding: gzip\r\n', gzipSync(letters(count))),
    ]) {
      const found = await fetched(answer, { bytesMax: 1_000 })
      expect([found.body.length, found.truncated]).toEqual([Math.min(count, 1_000), truncated])
    }
  })

  it('holds no more memory than the page for a small one', async () => {
    const found = await fetched(page('small'))
    expect(found.body.buffer.byteLength).toBe(5)
  })
})

describe('a packed body', () => {
  const text = Buffer.from(`<title>Ünïcode</title>${'packed '.repeat(300)}`)
  const packings = {
    gzip: gzipSync(text),
    'X-GZIP': gzipSync(text),
    deflate: deflateSync(text),
    'deflate, as some send it': deflateRawSync(text),
    identity: text,
    ',, identity ,': text,
    'identity, gzip': gzipSync(text),
    'gzip in two members': Buffer.concat([
      gzipSync(text.subarray(0, 99)),
      gzipSync(text.subarray(99)),
    ]),
  }

  it.each(Object.entries(packings))(
    'by %s is unpacked, in pieces of any size',
    async (name, bytes) => {
      const fields = `Content-Encoding: ${name.replace(/,? (as|in two|with).*/, '')}\r\n`
      for (const pieceBytes of [bytes.length, 1_000, 7, 1]) {
        const found = await fetched(body(fields, bytes, pieceBytes))
        expect(Buffer.from(found.body).equals(text)).toBe(true)
        expect(found.truncated).toBe(false)
      }
    },
  )

  it.each([
    ['gzip, gzip', gzipSync(gzipSync(text))],
    ['gzip, br', brotliCompressSync(gzipSync(text))],
    ['gzip, gzip, gzip, gzip', text],
    ['zstd', text],
    ['br', brotliCompressSync(text)],
    ['compress', text],
    ['aes128gcm', text],
    ['gzip;q=1', gzipSync(text)],
    ['constructor', text],
  ])('by %s is refused unread', async (name, bytes) => {
    const failure = await failureOf(fetched(body(`Content-Encoding: ${name}\r\n`, bytes)))
    expect(failure).toMatchObject({
      reason: 'body',
      message: 'The page is packed in a way that was not asked for',
    })
  })

  it('named in two fields counts as packed twice', async () => {
    const fields = 'Content-Encoding: gzip\r\nContent-Encoding: br\r\n'
    expect(await reasonOf(fetched(body(fields, gzipSync(text))))).toBe('body')
  })

  it.each(['gzip', 'deflate'] as const)('by %s that is cut or damaged is no page', async (name) => {
    const whole = packings[name]
    const damaged = Buffer.concat([whole.subarray(0, 12), Buffer.alloc(40, 0xff)])
    for (const bytes of [
      whole.subarray(0, whole.length - 1),
      whole.subarray(0, 1),
      damaged,
      text,
    ]) {
      const failure = await failureOf(fetched(body(`Content-Encoding: ${name}\r\n`, bytes)))
      expect(failure).toMatchObject({
        reason: 'body',
        message: 'The page could not be read to its end',
      })
    }
  })

  it.each(['gzip', 'deflate'])('by %s of nothing at all is an empty page', async (name) => {
    for (const length of ['', 'Content-Length: 0\r\n']) {
      const found = await fetched(`${htmlHead}Content-Encoding: ${name}\r\n${length}\r\n`)
      expect([found.body.length, found.truncated]).toEqual([0, false])
    }
  })
})

describe('a megabyte that unpacks to a gigabyte', () => {
  const zeros = Buffer.alloc(1_000_000_000)
  const bombs = {
    gzip: gzipSync(zeros, { level: 1 }),
    deflate: deflateSync(zeros, { level: 1 }),
  }

  it.each(Object.entries(bombs))('by %s costs no more than the cap', async (name, bomb) => {
    const answer = body(`Content-Encoding: ${name}\r\n`, bomb)
    await fetched(answer)
    const growth = await growthBytes(async () => {
      const found = await fetched(answer)
      expect([found.body.length, found.truncated]).toEqual([1_000_000, true])
    })
    expect(growth).toBeLessThan(8_000_000)
  })
})

describe('a body that ends before its time', () => {
  it.each([
    ['behind a length', `${htmlHead}Content-Length: 9\r\n\r\nhalf`],
    ['in chunks', `${htmlHead}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n`],
    ['in the middle of a chunk', `${htmlHead}Transfer-Encoding: chunked\r\n\r\n9\r\nhalf`],
    ['at a chunk that is none', `${htmlHead}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n`],
    [
      'at a chunk longer than it says',
      `${htmlHead}Transfer-Encoding: chunked\r\n\r\n2\r\nhalf\r\n`,
    ],
  ])('%s is no page', async (_, answer) => {
    const failure = await failureOf(fetched(answer))
    expect(failure).toMatchObject({ reason: 'body', status: 502 })
  })

  it('by a reset is none, unless its end is the end of the connection', async () => {
    const resetAfter = (fields: string): Answer => {
      return (socket) => {
        socket.write(`${htmlHead}${fields}\r\nhalf`)
        setTimeout(() => socket.resetAndDestroy(), 30)
      }
    }
    expect(await reasonOf(fetched(resetAfter('Content-Length: 9\r\n')))).toBe('body')
    expect(textOf(await fetched(resetAfter('')))).toBe('half')
  })

  it('is a page where it had gone past the cap', async () => {
    const answer: Answer = (socket) => {
      socket.write(`${htmlHead}Content-Length: 5000\r\n\r\n${'a'.repeat(2_000)}`)
      setTimeout(() => socket.resetAndDestroy(), 30)
    }
    const found = await fetched(answer, { bytesMax: 1_000 })
    expect([found.body.length, found.truncated]).toEqual([1_000, true])
  })
})

/*
 * Reads a body as it comes, unpacks it and keeps at most so many bytes of what it unpacks to. Nothing is
 * read ahead: the decoder takes the next piece when the one before was kept, and at the cap everything
 * ends. So a megabyte that unpacks to a gigabyte costs no more than a page of a megabyte.
 *
 * A body that ends before its time is a failure; one that was cut here is a page, and truncated. One of no
 * stated length ends with its connection, however that ends.
 */
import type { IncomingMessage } from 'node:http'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { UrlFailure } from './failure.js'
import { looksLikeHtml, sniffedBytes } from './media-type.js'

export interface PageBody {
  readonly body: Uint8Array
  readonly truncated: boolean
}

export const emptyBody: PageBody = { body: new Uint8Array(), truncated: false }

interface Reading {
  readonly bytesMax: number
  /** The bytes must tell whether it is HTML; it is read no further where they do not. */
  readonly isSniffed: boolean
  /** Whether the connection was cut because it brought too much. */
  readonly isCut: () => boolean
}

export async function readBody(
  response: IncomingMessage,
  { bytesMax, isSniffed, isCut }: Reading,
): Promise<PageBody> {
  const decoder = decoderOf(response)
  const kept = new BoundedBytes(bytesMax)
  let isWanted = !isSniffed
  let truncated = false
  try {
    for await (const chunk of await unpacked(response, decoder)) {
      truncated = !kept.add(chunk as Uint8Array)
      if (!isWanted && kept.length >= sniffedBytes) {
        isWanted = looksLikeHtml(kept.bytes())
        if (!isWanted) return emptyBody
      }
      if (truncated) break
    }
  } catch (cause) {
    if (!isCut()) throw new UrlFailure('body', 'The page could not be read to its end', { cause })
    truncated = true
  }
  const body = kept.bytes()
  return isWanted || looksLikeHtml(body) ? { body, truncated } : emptyBody
}

type Decoder = (firstByte: number) => Transform

const decoders = new Map<string, Decoder>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  // With the header of zlib, as it should be, or without, as some send it.
  ['deflate', (firstByte) => ((firstByte & 0x0f) === 8 ? createInflate() : createInflateRaw())],
])

/** null where nothing was packed. More than one encoding is refused: in between there is no cap. */
function decoderOf({ headers }: IncomingMessage): Decoder | null {
  const names = (headers['content-encoding'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity')
  if (names.length === 0) return null
  const decoder = names.length === 1 ? decoders.get(names[0] ?? '') : undefined
  if (decoder !== undefined) return decoder
  throw new UrlFailure('body', 'The page is packed in a way that was not asked for')
}

/** A body without a byte is empty, whatever packing was announced. */
async function unpacked(
  response: IncomingMessage,
  decoder: Decoder | null,
): Promise<AsyncIterable<unknown>> {
  if (decoder === null) return response
  const chunks = (response as Readable).iterator() as AsyncIterableIterator<Uint8Array>
  const first = await chunks.next()
  if (first.done === true) return response
  const packed = async function* (): AsyncGenerator<Uint8Array> {
    yield first.value
    yield* chunks
  }
  // Errors of either end reach whoever reads the decoder.
  return pipeline(packed, decoder(first.value[0] ?? 0), () => undefined)
}

/** The first bytes of a stream, however small the pieces that it comes in. */
class BoundedBytes {
  readonly #bytesMax: number
  /** Pages of memory that are never written are never there. */
  #kept = new Uint8Array()
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get length(): number {
    return this.#length
  }

  /** @returns whether all of `chunk` had room. */
  add(chunk: Uint8Array): boolean {
    if (this.#kept.length === 0) this.#kept = new Uint8Array(this.#bytesMax)
    const part = chunk.subarray(0, this.#bytesMax - this.#length)
    this.#kept.set(part, this.#length)
    this.#length += part.length
    return part.length === chunk.length
  }

  bytes(): Uint8Array {
    const part = this.#kept.subarray(0, this.#length)
    // A small page does not hold on to the room for a large one.
    return this.#length * 2 < this.#bytesMax ? part.slice() : part
  }
}

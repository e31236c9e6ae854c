/*
 * Which encoding a page is in, and its text. As the HTML standard has it: a byte order mark beats the
 * header, the header beats what the page says of itself; a label that names no encoding is passed over, and
 * where nothing names one it is UTF-8. What the page says is read by the same reader as the page, so that a
 * <meta> in a comment or in a script's string is none, and over 32 KB instead of the standard's 1024 bytes.
 *
 * @exodus/bytes decodes, since Node's own TextDecoder does not know every label, and Node 20's reads the
 * quotes and dashes of windows-1252 as control characters. encoding-sniffer counts the <meta> in a script.
 */
import { getBOMEncoding, normalizeEncoding, TextDecoder } from '@exodus/bytes/encoding.js'
import { MarkupReader, type MarkupListener } from './markup-reader.js'

const searchedBytesMax = 32_768
const contentLengthMax = 1024

/** Bytes that are decoded and read at a time, which takes a millisecond or two. */
export const sliceBytes = 32_768

/** The page's text in slices. What a page cut in the middle of a character has of it is left out. */
export function* textOf(body: Uint8Array, contentType: string | null): Generator<string> {
  const encoding = encodingOf(body, contentType)
  // The standard's name for encodings that smuggle markup past filters: such a page has no text.
  if (encoding === 'replacement') return
  const decoder = new TextDecoder(encoding)
  for (let start = 0; start < body.length; start += sliceBytes) {
    yield decoder.decode(body.subarray(start, start + sliceBytes), { stream: true })
  }
}

/** @returns the name of an encoding of the Encoding Standard, in lower case. */
export function encodingOf(body: Uint8Array, contentType: string | null): string {
  return (
    getBOMEncoding(body) ??
    encodingNamed(charsetIn(contentType)) ??
    utf16XmlEncoding(body) ??
    declaredEncoding(body) ??
    'utf-8'
  )
}

/** The charset in a media type, with or without quotes; null where it has none: `x-charset` is none. */
function charsetIn(mediaType: string | null): string | null {
  const found = /(?<![-"'])charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']+))/i.exec(
    mediaType ?? '',
  )
  return found?.[1] ?? found?.[2] ?? found?.[3] ?? null
}

/** What follows a label, such as `; q=1`, is passed over. */
function encodingNamed(text: string | null): string | null {
  const [label] = /[^\s;,"'/]+/.exec(text ?? '') ?? []
  return label === undefined ? null : normalizeEncoding(label)
}

/** `<?x` in two bytes a character; whatever it then declares cannot be told from the outside. */
function utf16XmlEncoding(body: Uint8Array): string | null {
  const start = Buffer.from(body.subarray(0, 6)).toString('hex')
  if (start === '3c003f007800') return 'utf-16le'
  return start === '003c003f0078' ? 'utf-16be' : null
}

function declaredEncoding(body: Uint8Array): string | null {
  // Each byte as a character: tags are ASCII in whatever encoding may be declared this way.
  const start = Buffer.from(body.subarray(0, searchedBytesMax)).toString('latin1')
  let found: string | null = null
  const listener: MarkupListener = {
    element(name, attribute) {
      if (name !== 'meta') return
      found = encodingOfMeta(attribute)
      if (found !== null) reader.stop()
    },
    text() {},
    end() {},
  }
  const reader = new MarkupReader(listener)
  reader.write(start)
  return found ?? encodingOfXmlDeclaration(start)
}

function encodingOfMeta(attribute: (name: string) => string | null): string | null {
  const named = asDeclared(encodingNamed(attribute('charset')))
  if (named !== null || attribute('http-equiv')?.toLowerCase() !== 'content-type') return named
  const content = attribute('content')?.slice(0, contentLengthMax) ?? null
  return asDeclared(encodingNamed(charsetIn(content)))
}

function encodingOfXmlDeclaration(start: string): string | null {
  const declaration = /^<\?xml\s[^>]{0,1000}/.exec(start)?.[0] ?? ''
  const [, label = null] = /\sencoding\s*=\s*["']([^"']*)["']/.exec(declaration) ?? []
  return asDeclared(encodingNamed(label))
}

/** A declaration that could be read as ASCII is not in UTF-16; the standard says what is meant. */
function asDeclared(encoding: string | null): string | null {
  if (encoding === 'utf-16le' || encoding === 'utf-16be') return 'utf-8'
  return encoding === 'x-user-defined' ? 'windows-1252' : encoding
}

/*
 * What a page's markup says of it. Markup is hostile: reading takes time in proportion to its length
 * whatever it is, other work gets its turn after each slice, and what is kept of it is bounded.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { textOf } from './encoding.js'
import { MarkupReader } from './markup-reader.js'
import { pageFields } from './page-fields.js'
import { PageSources } from './page-sources.js'
import type { PageFields } from './page.js'
import { webAddress } from './web-address.js'

/**
 * Never rejects, whatever the body.
 * @param contentType names the encoding, and XHTML; null where none was sent.
 * @param finalUrl what addresses in the page are relative to, unless its <base> says otherwise.
 */
export async function readPage(
  body: Uint8Array,
  contentType: string | null,
  finalUrl: string,
): Promise<PageFields> {
  const sources = new PageSources(Object.values(pageFields).flatMap(({ from }) => from))
  const reader = new MarkupReader(sources, { isXml: /^[^;]*\bxml\b/i.test(contentType ?? '') })
  for (const text of textOf(body, contentType)) {
    reader.write(text)
    if (reader.isStopped) break
    await nextTurn()
  }
  reader.end()
  sources.close()
  return fieldsOf(sources, finalUrl)
}

function fieldsOf(sources: PageSources, finalUrl: string): PageFields {
  const base = webAddress(sources.baseHref ?? '', finalUrl) ?? finalUrl
  const values = Object.entries(pageFields).map(([name, { from, as }]) => {
    const texts = from.flatMap((source) => sources.textsOf(source))
    return [name, firstValue(texts, (text) => as(text, base))] as const
  })
  return Object.fromEntries(values) as Record<keyof PageFields, string | null>
}

function firstValue(
  texts: readonly string[],
  read: (text: string) => string | null,
): string | null {
  for (const text of texts) {
    const value = read(text)
    if (value !== null) return value
  }
  return null
}

/*
 * What a Content-Type says, and what the first bytes say where it is missing.
 */

/** As much as WHATWG's sniffing looks at. */
export const sniffedBytes = 1_445

const shownLengthMax = 256

/** As good as none, says WHATWG. */
const typesOfNothing: ReadonlySet<string> = new Set([
  'unknown/unknown',
  'application/unknown',
  '*/*',
])

/** A header value on one line, cut; null where there is none. */
export function shownType(contentType: string | undefined): string | null {
  const line = (contentType ?? '').replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  return line === '' ? null : line.slice(0, shownLengthMax)
}

/** Whether a page may be had of it: HTML, XHTML, or `unknown`, where the bytes must tell. */
export function markupOf(contentType: string | null): 'yes' | 'no' | 'unknown' {
  const type =
    /^[^;]*/
      .exec(contentType ?? '')?.[0]
      .trim()
      .toLowerCase() ?? ''
  if (!/^[^\s/]+\/[^\s/]+$/.test(type) || typesOfNothing.has(type)) return 'unknown'
  return type === 'text/html' || type === 'application/xhtml+xml' ? 'yes' : 'no'
}

/**
 * The signatures that WHATWG's sniffing takes for HTML, after a byte order mark as well, and what else a head
 * without a tag of its own begins with.
 */
const htmlStart =
  /^(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|link|base)[ >])/i

export function looksLikeHtml(bytes: Uint8Array): boolean {
  return htmlStart.test(Buffer.from(bytes.subarray(0, sniffedBytes)).toString('latin1'))
}

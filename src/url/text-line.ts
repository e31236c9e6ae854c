/*
 * A stranger's text as one line that is safe to show: no white space but single spaces, no control
 * characters, none of the invisible ones that turn the direction of text or hide words in it, no half of a
 * surrogate pair. A joiner or a variation selector stays only where it has something to act on: emoji,
 * Arabic and Indic scripts need them.
 */

/** Bounds of the regular expressions' work; a page may hold a megabyte of it. */
const readLengthMax = 4096

// VS: variation selectors. DI: whatever shows nothing, such as zero-width spaces, direction marks and tags.
const invisible = /(?![\p{White_Space}\p{VS}\u200C\u200D])[\p{Cc}\p{Cs}\p{DI}\uFFF9-\uFFFB]/gu
const straySelector = /(?<![^\p{White_Space}\p{VS}\u200C\u200D])\p{VS}/gu
const strayJoiner =
  /(?<![^\p{ASCII}\p{White_Space}\u200C\u200D])[\u200C\u200D]|[\u200C\u200D](?![^\p{ASCII}\p{White_Space}\p{VS}\u200C\u200D])/gu

const graphemes = new Intl.Segmenter()

/** @returns at most `lengthMax` UTF-16 code units, no grapheme cut apart; null where nothing is left. */
export function textLine(text: string, lengthMax: number): string | null {
  const line = text
    .slice(0, readLengthMax)
    .replaceAll(invisible, '')
    .replaceAll(straySelector, '')
    .replaceAll(strayJoiner, '')
    .replaceAll(/\p{White_Space}+/gu, ' ')
    .trim()
  // A joiner has lost what it joined.
  const cut = line.slice(0, cutAt(line, lengthMax)).replace(/[ \u200C\u200D]+$/, '')
  return cut === '' ? null : ownCopy(cut)
}

/** Where a line ends that may have so many code units. */
function cutAt(line: string, lengthMax: number): number {
  if (line.length <= lengthMax) return line.length
  const start = graphemes.segment(line).containing(lengthMax)?.index ?? 0
  if (start > 0) return start
  // One grapheme that long is a letter under a heap of accents: cut between two code points.
  const isPair = (line.codePointAt(lengthMax - 1) ?? 0) > 0xffff
  return isPair ? lengthMax - 1 : lengthMax
}

/** V8 keeps all of a string alive for a piece of it: a title in a cache would hold its page. */
function ownCopy(text: string): string {
  return Buffer.from(text).toString()
}

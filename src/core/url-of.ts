/*
 * The URL that a text is, as WHATWG parses it. Not by `URL.canParse`: in Node 20.20 it errs on Latin-1 text
 * once it is hot, and says false of http://bücher.example.
 */

/** null where the text is none. */
export function urlOf(text: string, base?: URL | string): URL | null {
  try {
    return new URL(text, base)
  } catch {
    return null
  }
}

/*
 * Collects what a page says in the sources that it is asked for, in the order of the page, by the names
 * that the table of fields uses. Sources count anywhere in the page: streamed pages have their <meta> in the
 * body. It keeps a few texts of a source, each of bounded length, so that a bad one does not hide a good one.
 */
import type { MarkupListener } from './markup-reader.js'

const textsMax = 4
const textLengthMax = 4096
const tokensLengthMax = 256

export class PageSources implements MarkupListener {
  readonly #texts: ReadonlyMap<string, string[]>
  /** The element whose text is being gathered, <title> or <h1>, and what was gathered. */
  #gathered: { readonly source: string; text: string } | null = null
  #baseHref: string | null = null

  constructor(sources: readonly string[]) {
    this.#texts = new Map(sources.map((source) => [source, []]))
  }

  /** What the first <base> that has one says, which decides even where it is empty or impossible. */
  get baseHref(): string | null {
    return this.#baseHref
  }

  textsOf(source: string): readonly string[] {
    return this.#texts.get(source) ?? []
  }

  element(name: string, attribute: (name: string) => string | null): void {
    switch (name) {
      case 'title':
      case 'h1':
        return this.#gather(name)
      case 'base':
        this.#baseHref ??= attribute('href')
        return
      case 'html':
        this.#note('<html lang>', attribute('lang'))
        return this.#note('<html xml:lang>', attribute('xml:lang'))
      case 'meta':
        return this.#noteMeta(attribute)
      case 'link':
        for (const rel of tokensIn(attribute('rel'))) {
          this.#note(`<link rel=${rel}>`, attribute('href'))
        }
        return
      case 'br':
      case 'div':
      case 'p':
        return this.text(' ')
    }
  }

  text(text: string): void {
    const gathered = this.#gathered
    if (gathered === null || gathered.text.length >= textLengthMax) return
    gathered.text += text
  }

  end(name: string): void {
    // A heading is closed by the end of any heading.
    if (name === 'title' || /^h[1-6]$/.test(name)) this.close()
  }

  /** What was begun is all there is. */
  close(): void {
    if (this.#gathered === null) return
    const { source, text } = this.#gathered
    this.#gathered = null
    this.#note(source, text)
  }

  #gather(name: string): void {
    this.close()
    this.#gathered = { source: `text of <${name}>`, text: '' }
  }

  #noteMeta(attribute: (name: string) => string | null): void {
    const content = attribute('content')
    // `<meta name=description property=og:description>` is both.
    const names = new Set([...tokensIn(attribute('property')), ...tokensIn(attribute('name'))])
    for (const name of names) this.#note(name, content)
    const [pragma] = tokensIn(attribute('http-equiv'))
    if (pragma !== undefined) this.#note(`<meta http-equiv=${pragma}>`, content)
  }

  #note(source: string, text: string | null): void {
    const texts = this.#texts.get(source)
    if (texts === undefined || texts.length === textsMax) return
    if (text !== null && /\S/.test(text)) texts.push(text.slice(0, textLengthMax))
  }
}

/** The words of an attribute that holds a set of them, in lower case. */
function tokensIn(value: string | null): string[] {
  const text = (value ?? '').slice(0, tokensLengthMax).toLowerCase()
  return text.split(/[\t\n\f\r ]+/).filter((token) => token !== '')
}

/*
 * What a tag stands in, as far as it changes what the tag means: drawings (SVG), formulas (MathML), the
 * places in both where HTML goes on, and templates. Their titles and links are not the page's.
 * Only these are remembered, not every element: a page of 300,000 nested elements costs nothing, and the
 * depth of what is remembered has a bound, so that an end tag is looked for in a short list.
 */
import { foreignContent, Token } from 'parse5'

type Language = 'html' | 'svg' | 'math'

interface Enclosure {
  readonly name: string
  /** What the tags inside belong to. */
  readonly holds: Language
}

const placesOfHtml: Readonly<Record<Language, ReadonlySet<string>>> = {
  html: new Set(['template']),
  svg: new Set(['foreignobject', 'desc', 'title']),
  math: new Set(['mi', 'mo', 'mn', 'ms', 'mtext']),
}

/** Elements whose end is looked for, so each of that name has to be known, whatever language it is in. */
const remembered: ReadonlySet<string> = new Set([
  'svg',
  'math',
  'annotation-xml',
  ...Object.values(placesOfHtml).flatMap((names) => [...names]),
])

const depthMax = 100

export class Nesting {
  readonly #open: Enclosure[] = []

  get isEmpty(): boolean {
    return this.#open.length === 0
  }

  /** Deeper than any author goes: what is inside what is no longer known. */
  get isTooDeep(): boolean {
    return this.#open.length > depthMax
  }

  /** Whether tags here belong to a drawing or a formula. */
  get isForeign(): boolean {
    return this.#here !== 'html'
  }

  get #here(): Language {
    return this.#open.at(-1)?.holds ?? 'html'
  }

  /**
   * Takes in a start tag.
   * @param isEmptyElement whether its slash closes it, be it HTML or not, as in XML.
   * @returns whether it is an element of HTML.
   */
  open(tag: Token.TagToken, isEmptyElement: boolean): boolean {
    // HTML's own tags end a drawing that its author forgot to close, as the standard lists them.
    if (this.isForeign && foreignContent.causesExit(tag)) this.#leaveForeign()
    const holds = this.#contentOf(tag)
    const isHtml = !this.isForeign && (holds === null || holds === 'html')
    const isClosed = tag.selfClosing && (isEmptyElement || !isHtml)
    if (holds !== null && !isClosed) this.#open.push({ name: tag.tagName, holds })
    return isHtml
  }

  /** Takes in an end tag; one of an element that is not remembered changes nothing. */
  close(name: string): void {
    if (name === 'p' || name === 'br') this.#leaveForeign()
    for (let index = this.#open.length - 1; index >= 0; index--) {
      const enclosure = this.#open[index]
      if (enclosure?.name === name) {
        this.#open.length = index
        return
      }
      // What a template holds cannot close what is around it.
      if (enclosure?.name === 'template' && enclosure.holds === 'html') return
    }
  }

  /** What an element holds that is to be remembered; null of any other. */
  #contentOf(tag: Token.TagToken): Language | null {
    const name = tag.tagName
    const here = this.#here
    if (placesOfHtml[here].has(name) || (here === 'math' && isHtmlAnnotation(tag))) return 'html'
    const isInAnnotation = this.#open.at(-1)?.name === 'annotation-xml'
    if (name === 'svg' && (here === 'html' || isInAnnotation)) return 'svg'
    if (name === 'math' && here === 'html') return 'math'
    return here !== 'html' && remembered.has(name) ? here : null
  }

  #leaveForeign(): void {
    while (this.isForeign) this.#open.pop()
  }
}

function isHtmlAnnotation(tag: Token.TagToken): boolean {
  if (tag.tagName !== 'annotation-xml') return false
  const encoding = Token.getTokenAttr(tag, 'encoding')?.toLowerCase() ?? ''
  return encoding === 'text/html' || encoding === 'application/xhtml+xml'
}

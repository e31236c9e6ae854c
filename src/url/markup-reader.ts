/*
 * Reads markup piece by piece and tells a listener what of it is the page's own: tags and text of HTML that
 * stand in no drawing, formula, template, script, style, frame or <noscript> (as a browser that runs
 * scripts sees it). Entities are decoded, names are in lower case, an attribute's first spelling counts.
 *
 * Below is parse5's tokenizer, which is linear in whatever comes; what the tree builder would tell it
 * is told here. Not the tree builder itself, whose work grows with the square of hostile nesting, and not
 * parse5-sax-parser: 1 MB of `<svg>` takes it seconds, and it never leaves the drawing `<svg/>`.
 */
import { Token, TokenizerMode, type Tokenizer } from 'parse5'
import { Nesting } from './nesting.js'
import { SliceTokenizer } from './slice-tokenizer.js'

export interface MarkupListener {
  /** @param attribute the value of the attribute of that name, null where there is none. */
  element(name: string, attribute: (name: string) => string | null): void
  /** Several in a row may be one text; a run of white space comes as one space. */
  text(text: string): void
  end(name: string): void
}

const textModes: ReadonlyMap<string, Tokenizer['state']> = new Map([
  ['title', TokenizerMode.RCDATA],
  ['textarea', TokenizerMode.RCDATA],
  ['script', TokenizerMode.SCRIPT_DATA],
  ['style', TokenizerMode.RAWTEXT],
  ['xmp', TokenizerMode.RAWTEXT],
  ['iframe', TokenizerMode.RAWTEXT],
  ['noembed', TokenizerMode.RAWTEXT],
  ['noframes', TokenizerMode.RAWTEXT],
  ['noscript', TokenizerMode.RAWTEXT],
  ['plaintext', TokenizerMode.PLAINTEXT],
])

export class MarkupReader {
  readonly #listener: MarkupListener
  readonly #isXml: boolean
  readonly #tokenizer: Tokenizer
  readonly #nesting = new Nesting()
  /** The open element that holds text and no elements, such as `script`. */
  #textElement: string | null = null
  #isStopped = false

  /** @param options.isXml read as XHTML: `<title/>` is closed, and CDATA is text wherever it stands. */
  constructor(listener: MarkupListener, { isXml = false } = {}) {
    this.#listener = listener
    this.#isXml = isXml
    this.#tokenizer = new SliceTokenizer(
      {},
      {
        onStartTag: (tag) => this.#open(tag),
        onEndTag: (tag) => this.#close(tag.tagName),
        onCharacter: ({ chars }) => this.#text(chars),
        onWhitespaceCharacter: () => this.#text(' '),
        onNullCharacter: ignore,
        onComment: ignore,
        onDoctype: ignore,
        onEof: ignore,
        onParseError: null,
      },
    )
    this.#tokenizer.inForeignNode = isXml
  }

  /** Whether nothing more will be told, whatever is written. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  write(markup: string): void {
    if (!this.#isStopped) this.#tokenizer.write(markup, false)
  }

  /** No more will come; a tag that is cut off is none. */
  end(): void {
    if (!this.#isStopped) this.#tokenizer.write('', true)
  }

  stop(): void {
    this.#isStopped = true
    this.#tokenizer.pause()
  }

  #open(tag: Token.TagToken): void {
    // Only XML has tags in there; HTML's tokenizer takes them for text.
    if (this.#textElement !== null) return
    const isHtml = this.#nesting.open(tag, this.#isXml)
    if (this.#nesting.isTooDeep) return this.stop()
    this.#tokenizer.inForeignNode = this.#isXml || this.#nesting.isForeign
    if (!isHtml) return
    const isClosed = this.#isXml && tag.selfClosing
    if (!isClosed) this.#enterText(tag.tagName)
    if (!this.#nesting.isEmpty) return
    this.#listener.element(tag.tagName, (name) => Token.getTokenAttr(tag, name))
    if (isClosed) this.#listener.end(tag.tagName)
  }

  #enterText(name: string): void {
    const mode = textModes.get(name)
    if (mode === undefined) return
    this.#textElement = name
    if (!this.#isXml) this.#tokenizer.state = mode
  }

  #close(name: string): void {
    const isText = this.#textElement !== null
    if (isText && this.#textElement !== name) return
    this.#textElement = null
    if (this.#nesting.isEmpty) return this.#listener.end(name)
    // The end of a <title> in a drawing's <desc> does not end the drawing's own <title>.
    if (isText) return
    this.#nesting.close(name)
    this.#tokenizer.inForeignNode = this.#isXml || this.#nesting.isForeign
  }

  #text(text: string): void {
    const isRead = this.#textElement === null || this.#textElement === 'title'
    if (isRead && this.#nesting.isEmpty) this.#listener.text(text)
  }
}

function ignore(): void {}

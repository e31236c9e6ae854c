/*
 * What is known of a page, on its way from the wire to the answer.
 */

/** What a fetch brought back. */
export interface FetchedPage {
  /** Where the last redirect led, without fragment. */
  readonly finalUrl: string
  /** The media type with its parameters as it was sent, on one line, cut to a sane length; null where none was. */
  readonly contentType: string | null
  /** Empty where the page is neither HTML nor XHTML. */
  readonly body: Uint8Array
  /** Whether the body went on past the cap. */
  readonly truncated: boolean
}

/** What its markup says; null where it does not. Addresses are absolute and http or https. */
export interface PageFields {
  readonly title: string | null
  readonly description: string | null
  readonly image: string | null
  readonly siteName: string | null
  readonly canonical: string | null
  /** A language tag such as `pt-BR`. */
  readonly language: string | null
}

/** What a parse of a URL gives, and `/api/parse` answers. */
export interface ParsedPage extends PageFields {
  /** What was asked for, as WHATWG writes it, without fragment. */
  readonly url: string
  readonly finalUrl: string
  readonly contentType: string | null
  /** ISO 8601, in UTC. */
  readonly fetchedAt: string
  /** Whether it came from the cache. */
  readonly cached: boolean
  /** Whether the page was longer than is read; what came of it was parsed. */
  readonly truncated: boolean
}

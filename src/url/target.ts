/*
 * What may be asked for, from its text alone: an http or https address without user name or password, of
 * bounded length. What WHATWG's parser makes of the text is the one spelling from here on: it is judged,
 * fetched and the key of the cache, so that no second reading can differ. The fragment is dropped, because
 * no server ever sees it.
 */
import { shown } from '../core/errors.js'
import { urlOf } from '../core/url-of.js'
import { UrlFailure } from './failure.js'

/** Of the text, and of what the parser makes of it. */
export const urlLengthMax = 8_192

const wanted = 'url must be an http or https address such as https://example.com/page'

export function readTarget(text: unknown): URL {
  if (typeof text !== 'string') throw new UrlFailure('url', `${wanted}: received ${shown(text)}`)
  if (text.length > urlLengthMax) throw new UrlFailure('url', tooLong(text.length))
  const url = parsed(text)
  if (url === null || !isWeb(url)) {
    throw new UrlFailure('url', `${wanted}: received ${shown(text)}`)
  }
  // Not shown: what holds a password does not belong into a message.
  if (hasCredentials(url)) throw new UrlFailure('url', 'url must hold no user name or password')
  if (url.href.length > urlLengthMax) throw new UrlFailure('url', tooLong(url.href.length))
  return url
}

/** Where the Location of a redirect leads, judged like the address that a stranger asked for. */
export function readRedirect(location: string | undefined, from: URL): URL {
  // An empty one would lead to the same page again.
  const url = location === undefined || location === '' ? null : parsed(location, from)
  if (url === null) {
    throw new UrlFailure('redirects', 'The page redirects without a usable address')
  }
  if (!isWeb(url) || hasCredentials(url)) {
    throw new UrlFailure('blocked', 'The page redirects to what is no plain web address')
  }
  if (url.href.length > urlLengthMax) {
    throw new UrlFailure('redirects', 'The page redirects to an address that is too long')
  }
  return url
}

export function isWeb({ protocol }: URL): boolean {
  return protocol === 'http:' || protocol === 'https:'
}

export function hasCredentials({ username, password }: URL): boolean {
  return username !== '' || password !== ''
}

/** Without fragment; null where it cannot be parsed. */
function parsed(text: string, base?: URL): URL | null {
  const url = urlOf(text, base)
  if (url !== null) url.hash = ''
  return url
}

function tooLong(length: number): string {
  return `url must have at most ${urlLengthMax} characters: received ${length}`
}

/*
 * An address that a page names, resolved as a browser would. One that leads elsewhere than to the web
 * (`javascript:`, `data:`), carries a user's name or password, or is too long is none.
 */
import { urlOf } from '../core/url-of.js'
import { hasCredentials, isWeb } from './target.js'

const addressLengthMax = 2048

/** @param base what it is relative to, an absolute address. */
export function webAddress(text: string, base: string): string | null {
  return resolve(text, base)?.href ?? null
}

/** The same without fragment, which names a place in a page and no page. */
export function pageAddress(text: string, base: string): string | null {
  const url = resolve(text, base)
  if (url === null) return null
  url.hash = ''
  return url.href
}

function resolve(text: string, base: string): URL | null {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.length > addressLengthMax) return null
  const url = urlOf(trimmed, base)
  if (url === null || !isWeb(url) || hasCredentials(url)) return null
  return url.href.length <= addressLengthMax ? url : null
}

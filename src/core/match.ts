/*
 * Which requests a rule is for, by method and path. A pattern is compared with the path as it stands in the
 * request, not decoded, because that is what Express routes by; letter case and a trailing slash count
 * where the app says so. A `*` at the end stands for one or more characters, whatever they are.
 *
 * Patterns are compiled once to one expression for each of the four ways to compare; nothing in them can
 * backtrack. Where Express would be stricter, as with several slashes at the end, the rule applies too: it
 * must never be passed by a spelling.
 */
import type { Facts } from './facts.js'
import type { MatchOptions } from './rule-options.js'

export class RequestMatch {
  /** As written, in capitals; null for every method. */
  readonly methods: readonly string[] | null
  /** As written; null for every path. */
  readonly paths: readonly string[] | null
  readonly #methods: ReadonlySet<string> | null
  /** By `wayOf`. */
  readonly #paths: readonly RegExp[] | null

  /** @param options known to be right, see `matchFault`. */
  constructor({ methods, paths }: MatchOptions) {
    this.methods = methods?.map((method) => method.toUpperCase()) ?? null
    this.paths = paths === undefined ? null : [...paths]
    this.#methods = this.methods === null ? null : withHead(this.methods)
    this.#paths = this.paths === null ? null : compiled(this.paths)
  }

  /** Whether these facts are of such a request; without the facts it asks for they are not. */
  includes({ method, path, isPathCaseSensitive, isPathStrict }: Facts): boolean {
    if (this.#methods !== null) {
      if (typeof method !== 'string' || !this.#methods.has(method.toUpperCase())) return false
    }
    if (this.#paths === null) return true
    if (typeof path !== 'string') return false
    const way = wayOf(isPathCaseSensitive === true, isPathStrict === true)
    return this.#paths[way]?.test(path) === true
  }
}

/** A handler for GET answers HEAD too. */
function withHead(methods: readonly string[]): ReadonlySet<string> {
  return new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)
}

function compiled(paths: readonly string[]): RegExp[] {
  return [0, 1, 2, 3].map((way) => {
    const isCaseSensitive = (way & 1) !== 0
    const isStrict = (way & 2) !== 0
    const sources = paths.map((path) => sourceOf(path, isStrict))
    return new RegExp(`^(?:${sources.join('|')})$`, isCaseSensitive ? '' : 'i')
  })
}

function wayOf(isCaseSensitive: boolean, isStrict: boolean): number {
  return (isCaseSensitive ? 1 : 0) + (isStrict ? 2 : 0)
}

function sourceOf(path: string, isStrict: boolean): string {
  if (path.endsWith('*')) return `${escaped(path.slice(0, -1))}[^]+`
  if (isStrict) return escaped(path)
  // Beyond one slash: a router mounted at /api answers for /api// as for /api.
  return path === '/' ? '/+' : `${escaped(path.replace(/\/+$/, ''))}/*`
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+./?[\\\]^{|}-]/g, String.raw`\$&`)
}

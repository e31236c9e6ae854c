/*
 * A rule's `key` made ready, and what it finds in the facts: a header, what a function says, or several
 * parts joined. The three plain keys, global, ip and session, are found in facts.ts on the way of every
 * request; this is for the others.
 *
 * Parts are joined with kind and length before each, so two lists of parts never come to one text, whatever
 * a client sends. Cost: one short text a key, and what a function of the rule costs.
 */
import type { Facts } from './facts.js'
import { keyKinds, type Key, type KeyMaker } from './key.js'
import { refusePromise } from './rule-functions.js'
import type { KeyFunction, KeyOption } from './rule-options.js'

/** One thing that a key is made of. */
export type KeyPart =
  | { readonly kind: 'ip' | 'session' }
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'function'; readonly find: KeyFunction }

/** A key before it is hashed. */
export interface FoundKey {
  readonly kind: number
  readonly text: string
}

export const headerPrefix = 'header:'

/** The parts of a key that is known to be right; none for everybody together. */
export function keyPartsOf(key: KeyOption): readonly KeyPart[] {
  const list: readonly unknown[] = Array.isArray(key) ? key : [key]
  return list.filter((part) => part !== 'global').map((part) => partOf(part as KeyOption))
}

/** How a key is called in metrics, statistics and messages: `ip+header:x-api-key`. */
export function keyNameOf(parts: readonly KeyPart[]): string {
  if (parts.length === 0) return 'global'
  return parts
    .map((part) => (part.kind === 'header' ? headerPrefix + part.name : part.kind))
    .join('+')
}

function partOf(part: KeyOption): KeyPart {
  if (typeof part === 'function') return { kind: 'function', find: part }
  if (part === 'ip' || part === 'session') return { kind: part }
  return { kind: 'header', name: String(part).slice(headerPrefix.length).toLowerCase() }
}

export interface KeyedRule {
  readonly name: string
  readonly keyParts: readonly KeyPart[]
  readonly ipv6Prefix: number
}

/** What the parts of a rule's key find; null where one of them finds nothing. */
export function foundKey(rule: KeyedRule, facts: Facts, maker: KeyMaker): FoundKey | Key | null {
  const { keyParts } = rule
  if (keyParts.length === 0) return maker.everybody
  if (keyParts.length === 1) return foundPart(keyParts[0] as KeyPart, rule, facts, maker)
  let text = ''
  for (const part of keyParts) {
    const found = foundPart(part, rule, facts, maker)
    if (found === null) return null
    text += `${found.kind}:${found.text.length}:${found.text}`
  }
  return { kind: keyKinds.list, text }
}

function foundPart(part: KeyPart, rule: KeyedRule, facts: Facts, maker: KeyMaker): FoundKey | null {
  switch (part.kind) {
    case 'ip':
      return isThere(facts.ip) ? maker.address(textOf(facts.ip), rule.ipv6Prefix) : null
    case 'session':
      return isThere(facts.session) ? { kind: keyKinds.session, text: textOf(facts.session) } : null
    case 'header':
      return ofHeader(part.name, facts)
    case 'function':
      return ofResult(part.find(facts), rule.name)
  }
}

function ofHeader(name: string, { headers }: Facts): FoundKey | null {
  if (!isThere(headers) || !Object.hasOwn(headers, name)) return null
  const value: unknown = headers[name]
  if (Array.isArray(value)) return ofTexts(value.map(textOf), keyKinds.header)
  return isThere(value) ? { kind: keyKinds.header, text: textOf(value) } : null
}

/** One text is that text, none is nothing. @param kind that of one text. */
function ofTexts(texts: readonly string[], kind: number): FoundKey | null {
  const [first] = texts
  if (first === undefined) return null
  if (texts.length === 1) return { kind, text: first }
  return { kind: keyKinds.texts, text: texts.map((text) => `${text.length}:${text}`).join('') }
}

/**
 * What a client sends may well decide what such a function gives, an object out of a query for instance. So
 * what is no text fails no request, and frees none from the rule: all such requests share one key.
 *
 * @throws TypeError where it is a promise: that is the function's fault, whatever the request.
 */
function ofResult(result: unknown, rule: string): FoundKey | null {
  if (!isThere(result)) return null
  if (typeof result === 'string') return { kind: keyKinds.function, text: result }
  // An empty list is no text: a client that can send one must not be let off.
  if (Array.isArray(result) && result.length > 0 && result.every(isText)) {
    return ofTexts(result, keyKinds.function)
  }
  if (typeof result === 'bigint' || (typeof result === 'number' && Number.isFinite(result))) {
    return { kind: keyKinds.function, text: String(result) }
  }
  refusePromise(result, `the key of rule '${rule}'`)
  return { kind: keyKinds.odd, text: '' }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** Callers without types hand in null for "none", and numbers for ids: neither may throw on a request. */
export function isThere<T>(fact: T): fact is NonNullable<T> {
  return fact !== undefined && fact !== null
}

export function textOf(fact: unknown): string {
  return typeof fact === 'string' ? fact : String(fact)
}

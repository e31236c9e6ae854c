/*
 * Whether a rule's `key` is right, and what a reader of the message could not guess where it is not.
 */
import { headerPrefix } from './key-parts.js'
import { isPlainFunction } from './rule-functions.js'

const partCountMin = 2
const partCountMax = 4
const headerNameLengthMax = 100

/** A token of RFC 9110, which is what the name of a header is made of. */
const token = /^[\w!#$%&'*+.^`|~-]+$/

/** What is wrong with a `key`, empty where there is nothing more to say; null where it is right. */
export function keyFault(value: unknown): string | null {
  if (value === 'global') return null
  return Array.isArray(value) ? listFault(Array.from(value as unknown[])) : partFault(value)
}

function listFault(parts: readonly unknown[]): string | null {
  if (parts.includes('global')) return 'global means nothing beside another key'
  if (parts.some((part) => Array.isArray(part))) return 'a list holds no lists'
  if (parts.length < partCountMin || parts.length > partCountMax) {
    return `a list joins ${partCountMin} to ${partCountMax} keys`
  }
  for (const part of parts) {
    const fault = partFault(part)
    if (fault !== null) return fault
  }
  const names = parts.map((part) => (typeof part === 'string' ? part.toLowerCase() : part))
  const isTwice = names.some((name, index) => names.indexOf(name) !== index)
  return isTwice ? 'a key twice means nothing' : null
}

function partFault(part: unknown): string | null {
  if (part === 'ip' || part === 'session') return null
  if (typeof part === 'function') {
    return isPlainFunction(part) ? null : 'a decision is made at once: not by an async function'
  }
  if (typeof part !== 'string' || !part.startsWith(headerPrefix)) return ''
  const name = part.slice(headerPrefix.length)
  if (name.length > headerNameLengthMax) {
    return `the name of a header has at most ${headerNameLengthMax} characters here`
  }
  return token.test(name) ? null : 'no header can have that name'
}

/*
 * What is known of a request when a rule asks whom to count, and the key that follows from it. Keys of
 * different kinds begin with different letters, so an address and a session never share one; long ones
 * are replaced by a digest, so a key takes bounded memory whatever a client sends.
 */
import { createHash } from 'node:crypto'
import { clientAddress } from './address.js'
import type { CompiledRule } from './rule.js'

/** All optional: a rule whose key is not there does as its `absent` says. */
export interface Facts {
  /** Client address. */
  ip?: string | undefined
  /** Id of an established session. */
  session?: string | undefined
  headers?: Readonly<Record<string, string | string[] | undefined>> | undefined
  method?: string | undefined
  path?: string | undefined
  /** A rule's key by rule name, in place of the one that its `key` finds. */
  keys?: Readonly<Record<string, string>> | undefined
}

const keyLengthMax = 64

/** The key that a rule counts these facts under; null: the rule does not apply. */
export function keyOf(rule: CompiledRule, facts: Facts): string | null {
  const { keys, session, ip } = facts
  if (isThere(keys) && Object.hasOwn(keys, rule.name) && isThere(keys[rule.name])) {
    return bounded('k', keys[rule.name])
  }
  if (rule.key === 'global') return 'g'
  if (rule.key === 'session') {
    if (isThere(session)) return bounded('s', session)
    if (rule.absent === 'skip') return null
  }
  return isThere(ip) ? bounded('a', clientAddress(textOf(ip), rule.ipv6Prefix)) : null
}

/** Callers without types hand in null for "none", and numbers for ids: neither may throw on a request. */
function isThere<T>(fact: T): fact is NonNullable<T> {
  return fact !== undefined && fact !== null
}

function textOf(fact: unknown): string {
  return typeof fact === 'string' ? fact : String(fact)
}

function bounded(kind: string, fact: unknown): string {
  const text = textOf(fact)
  if (text.length <= keyLengthMax) return kind + text
  // Not as UTF-8, which has no half surrogate pairs: texts that differ in one would share a key.
  return `#${kind}${createHash('sha256').update(text, 'utf16le').digest('base64url')}`
}

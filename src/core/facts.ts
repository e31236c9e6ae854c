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
  if (facts.keys !== undefined && Object.hasOwn(facts.keys, rule.name)) {
    // Whatever plain JavaScript puts there is a key; undefined is none.
    const given = facts.keys[rule.name] as string | number | undefined
    if (given !== undefined) return bounded('k', String(given))
  }
  if (rule.key === 'global') return 'g'
  if (rule.key === 'session') {
    if (facts.session !== undefined) return bounded('s', facts.session)
    if (rule.absent === 'skip') return null
  }
  return facts.ip === undefined ? null : bounded('a', clientAddress(facts.ip, rule.ipv6Prefix))
}

function bounded(kind: string, text: string): string {
  if (text.length <= keyLengthMax) return kind + text
  // Not as UTF-8, which has no half surrogate pairs: texts that differ in one would share a key.
  return `#${kind}${createHash('sha256').update(text, 'utf16le').digest('base64url')}`
}

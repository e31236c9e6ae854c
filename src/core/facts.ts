/*
 * What is known of a request when a rule asks whom to count, and the key that follows from it. A key is a
 * kind and a text: keys of different kinds never meet, so an address and a session never share one,
 * whatever their texts are.
 */
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

export const keyKinds = { global: 0, address: 1, session: 2, given: 3 } as const

/** Whom a rule counts. */
export interface Key {
  /** One of `keyKinds`. */
  readonly kind: number
  readonly text: string
}

const everybody: Key = { kind: keyKinds.global, text: '' }

/** One thing asked of a store: the rules that apply, whom each counts, and at what cost. */
export interface Question {
  /** In the order of the configuration. */
  readonly rules: readonly CompiledRule[]
  /** The key of each rule. */
  readonly keys: readonly Key[]
  /** Whole cost units, at least 1 where any rule applies. */
  readonly cost: number
}

/**
 * Which of these rules apply, and under which keys. Rules that count the same client get the same key
 * object, so that a store hashes it once; where all apply, `rules` is the list that was given.
 */
export function questionOf(rules: readonly CompiledRule[], facts: Facts, cost: number): Question {
  const keys: Key[] = []
  let applied: CompiledRule[] | null = null
  let address: Key | null = null
  let addressPrefix = 0
  for (let index = 0; index < rules.length; index++) {
    const rule = rules[index] as CompiledRule
    let key = ownKey(rule, facts)
    if (key === null && countsAddress(rule) && isThere(facts.ip)) {
      if (address === null || addressPrefix !== rule.ipv6Prefix) {
        address = addressKey(facts.ip, rule.ipv6Prefix)
        addressPrefix = rule.ipv6Prefix
      }
      key = address
    }
    if (key === null) {
      applied ??= rules.slice(0, index)
      continue
    }
    keys.push(key)
    applied?.push(rule)
  }
  return { rules: applied ?? rules, keys, cost }
}

/** The key that a rule counts these facts under; null: the rule does not apply. */
export function keyOf(rule: CompiledRule, facts: Facts): Key | null {
  return questionOf([rule], facts, 1).keys[0] ?? null
}

function ownKey(rule: CompiledRule, facts: Facts): Key | null {
  const { keys, session } = facts
  if (isThere(keys) && Object.hasOwn(keys, rule.name) && isThere(keys[rule.name])) {
    return { kind: keyKinds.given, text: textOf(keys[rule.name]) }
  }
  if (rule.key === 'global') return everybody
  if (rule.key === 'session' && isThere(session)) {
    return { kind: keyKinds.session, text: textOf(session) }
  }
  return null
}

function countsAddress(rule: CompiledRule): boolean {
  return rule.key === 'ip' || rule.absent === 'address'
}

function addressKey(ip: unknown, ipv6Prefix: number): Key {
  return { kind: keyKinds.address, text: clientAddress(textOf(ip), ipv6Prefix) }
}

/** Callers without types hand in null for "none", and numbers for ids: neither may throw on a request. */
function isThere<T>(fact: T): fact is NonNullable<T> {
  return fact !== undefined && fact !== null
}

function textOf(fact: unknown): string {
  return typeof fact === 'string' ? fact : String(fact)
}

/*
 * What is known of a request when a rule asks whom to count, and the question that follows from it: which
 * rules apply, and under which keys.
 */
import { keyKinds, type Key, type KeyMaker } from './key.js'
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
 * object; where all apply, `rules` is the list that was given.
 */
export function questionOf(
  rules: readonly CompiledRule[],
  facts: Facts,
  cost: number,
  maker: KeyMaker,
): Question {
  // Its length at once: a list that is pushed to gets room for seventeen.
  const keys = Array<Key>(rules.length)
  let count = 0
  let applied: CompiledRule[] | null = null
  let session: Key | null = null
  for (let index = 0; index < rules.length; index++) {
    const rule = rules[index] as CompiledRule
    let key = givenKey(rule, facts, maker)
    if (key === null) {
      if (rule.key === 'global') key = maker.everybody
      else if (rule.key === 'session' && isThere(facts.session)) {
        key = session ??= maker.of(keyKinds.session, textOf(facts.session))
      } else if (countsAddress(rule) && isThere(facts.ip)) {
        key = maker.address(textOf(facts.ip), rule.ipv6Prefix)
      }
    }
    if (key === null) {
      applied ??= rules.slice(0, index)
      continue
    }
    keys[count++] = key
    applied?.push(rule)
  }
  if (applied !== null) keys.length = count
  return { rules: applied ?? rules, keys, cost }
}

/** The key that a rule counts these facts under; null: the rule does not apply. */
export function keyOf(rule: CompiledRule, facts: Facts, maker: KeyMaker): Key | null {
  return questionOf([rule], facts, 1, maker).keys[0] ?? null
}

/** `keys` of the facts takes precedence over what the rule's `key` would find. */
function givenKey(rule: CompiledRule, { keys }: Facts, maker: KeyMaker): Key | null {
  if (!isThere(keys) || !Object.hasOwn(keys, rule.name) || !isThere(keys[rule.name])) return null
  return maker.of(keyKinds.given, textOf(keys[rule.name]))
}

function countsAddress(rule: CompiledRule): boolean {
  return rule.key === 'ip' || rule.absent === 'address'
}

/** Callers without types hand in null for "none", and numbers for ids: neither may throw on a request. */
function isThere<T>(fact: T): fact is NonNullable<T> {
  return fact !== undefined && fact !== null
}

function textOf(fact: unknown): string {
  return typeof fact === 'string' ? fact : String(fact)
}

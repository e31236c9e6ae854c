/*
 * What is known of a request when a rule asks whom to count, and the question that follows from it: which
 * rules apply, and under which keys.
 */
import { foundKey, isThere, textOf } from './key-parts.js'
import { keyKinds, type Key, type KeyMaker } from './key.js'
import type { CompiledRule } from './rule.js'

/** All optional: a rule whose key is not there does as its `absent` says. */
export interface Facts {
  /** Client address. */
  ip?: string | undefined
  /** Id of an established session. */
  session?: string | undefined
  /** By name in lower case, as Node has them. */
  headers?: Readonly<Record<string, string | string[] | undefined>> | undefined
  method?: string | undefined
  /** As it stands in the request, not decoded, without the query. */
  path?: string | undefined
  /** Whether letter case tells paths apart; not unless said, as in Express. */
  isPathCaseSensitive?: boolean | undefined
  /** Whether a slash at the end tells paths apart; not unless said, as in Express. */
  isPathStrict?: boolean | undefined
  /** Whether this is a CORS preflight: it is counted under keys of its own, by the same rules. */
  isPreflight?: boolean | undefined
  /** The request itself where there is one, for functions of rules: in Express its `request`. */
  request?: unknown
  /** A rule's key by rule name, in place of the one that its `key` finds. */
  keys?: Readonly<Record<string, string>> | undefined
}

/** One thing asked of a store: the rules that apply, whom each counts, and at what cost. */
export interface Question {
  /** In the order of the configuration; of a rule with plans the plan. */
  readonly rules: readonly CompiledRule[]
  /** The key of each rule. */
  readonly keys: readonly Key[]
  /** Whole cost units, at least 1 where any rule applies. */
  readonly cost: number
}

/**
 * Which of these rules apply, and under which keys. Rules that count the same client get the same key
 * object; where all apply as they are, `rules` is the list that was given. Candidates follow their rule in
 * it, and share its key.
 */
export function questionOf(
  rules: readonly CompiledRule[],
  facts: Facts,
  cost: number,
  allKeys: KeyMaker,
): Question {
  const maker = facts.isPreflight === true ? allKeys.preflights : allKeys
  // Its length at once: a list that is pushed to gets room for seventeen.
  const keys = Array<Key>(rules.length)
  let count = 0
  let applied: CompiledRule[] | null = null
  let session: Key | null = null
  let key: Key | null = null
  for (let index = 0; index < rules.length; index++) {
    let rule = rules[index] as CompiledRule
    if (rule.candidateOf !== null) {
      // Its rule's key, which is there already.
    } else if (rule.isPlain) {
      key = givenKey(rule, facts, maker)
      if (key === null) {
        if (rule.key === 'global') key = maker.everybody
        else if (rule.key === 'session' && isThere(facts.session)) {
          key = session ??= maker.of(keyKinds.session, textOf(facts.session))
        } else if (countsAddress(rule) && isThere(facts.ip)) {
          key = maker.address(textOf(facts.ip), rule.ipv6Prefix)
        }
      }
    } else {
      key = rule.match === null || rule.match.includes(facts) ? keyOf(rule, facts, maker) : null
      if (key !== null && rule.plans !== null) {
        rule = rule.plans.of(rule, facts)
        applied ??= rules.slice(0, index)
      }
    }
    if (key === null) {
      applied ??= rules.slice(0, index)
      continue
    }
    keys[count++] = key
    applied?.push(rule)
  }
  if (count < rules.length) keys.length = count
  return { rules: applied ?? rules, keys, cost }
}

/** The key that a rule counts these facts under, whatever it matches; null where there is none. */
export function keyOf(rule: CompiledRule, facts: Facts, allKeys: KeyMaker): Key | null {
  const maker = facts.isPreflight === true ? allKeys.preflights : allKeys
  const given = givenKey(rule, facts, maker)
  if (given !== null) return given
  const found = foundKey(rule, facts, maker)
  if (found !== null) return 'low' in found ? found : maker.of(found.kind, found.text)
  if (!countsAddress(rule) || !isThere(facts.ip)) return null
  return maker.address(textOf(facts.ip), rule.ipv6Prefix)
}

/** The rule as it is for these facts: with plans, the plan that they have. */
export function planOf(rule: CompiledRule, facts: Facts): CompiledRule {
  return rule.plans === null ? rule : rule.plans.of(rule, facts)
}

/** Whether a rule may look at more of the facts than whom they are of. */
export function readsRequest({ match, plans, keyParts }: CompiledRule): boolean {
  return match !== null || plans !== null || keyParts.some(({ kind }) => kind === 'function')
}

/** `keys` of the facts takes precedence over what the rule's `key` would find. */
function givenKey(rule: CompiledRule, { keys }: Facts, maker: KeyMaker): Key | null {
  if (!isThere(keys) || !Object.hasOwn(keys, rule.name) || !isThere(keys[rule.name])) return null
  return maker.of(keyKinds.given, textOf(keys[rule.name]))
}

function countsAddress(rule: CompiledRule): boolean {
  return rule.key === 'ip' || rule.absent === 'address'
}

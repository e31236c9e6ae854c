/*
 * The RateLimit fields of the IETF drafts 08 to 11 (draft-ietf-httpapi-ratelimit-headers):
 *
 *   RateLimit-Policy: "ip";q=400;w=60, "session";q=200;w=60
 *   RateLimit: "ip";r=398;t=71, "session";r=199;t=71
 *
 * Every rule that may be told is named. `w` is left out where the window is not whole seconds, `t` where
 * there is no end to the wait. What the rules alone decide is made once: for nearly all requests that is the
 * whole policy, because they are allowed, at one attempt, by one of a few lists of rules.
 */
import type { RuleVerdict } from '../../core/decision.js'
import type { CompiledRule } from '../../core/rule.js'
import { isTold, waitMsOf, type Dialect, type Fields, type Reported } from './dialect.js'
import { wholeSeconds } from './seconds.js'

/** What stands for a rule in each field; of the state the part before the numbers. */
interface RuleText {
  readonly rule: CompiledRule
  readonly policy: string
  readonly stateStart: string
}

/** What is told of allowed attempts at one list of rules. */
interface ListText {
  readonly rules: readonly CompiledRule[]
  readonly policy: string
  /** Of each told rule its part of the state, and the place of its verdict. */
  readonly stateStarts: readonly string[]
  readonly entries: readonly number[]
}

/** With a session, without one, a preflight, a route or two with rules of its own. */
const listsMax = 8

export function draft8(): Dialect {
  // By the rule's index; a live change makes a new compiled rule, whose text takes the place of the old.
  const texts: RuleText[] = []
  const textOf = (rule: CompiledRule): RuleText => {
    const known = texts[rule.index]
    return known?.rule === rule ? known : (texts[rule.index] = newText(rule))
  }
  const lists: ListText[] = []
  return function writeDraft8(attempts, fields) {
    const first = attempts[0]
    if (attempts.length > 1 || first === undefined || !first.decision.allowed) {
      return writeAll(attempts, fields, textOf)
    }
    const list = knownList(lists, first.question.rules) ?? newList(lists, first, textOf)
    const { policy, stateStarts, entries } = list
    if (policy === '') return
    const { verdicts } = first.decision
    let state = ''
    for (let turn = 0; turn < entries.length; turn++) {
      const { remaining, resetMs } = verdicts[entries[turn] as number] as RuleVerdict
      if (turn > 0) state += ', '
      state += stateItem(stateStarts[turn] as string, remaining, resetMs)
    }
    fields.setHeader('RateLimit-Policy', policy)
    fields.setHeader('RateLimit', state)
  }
}

type TextOf = (rule: CompiledRule) => RuleText

function writeAll(attempts: readonly Reported[], fields: Fields, textOf: TextOf): void {
  let policy = ''
  let state = ''
  for (let turn = 0; turn < attempts.length; turn++) {
    const reported = attempts[turn] as Reported
    const { rules } = reported.question
    let entry = 0
    for (let index = 0; index < rules.length; index++) {
      const rule = rules[index] as CompiledRule
      // Candidates have no entry of their own in a decision.
      if (rule.candidateOf !== null) continue
      const verdict = reported.decision.verdicts[entry++] as RuleVerdict
      if (!isTold(attempts, turn, rule, verdict)) continue
      const text = textOf(rule)
      const separator = policy === '' ? '' : ', '
      const waitMs = waitMsOf(reported, verdict)
      policy += separator + text.policy
      state += separator + stateItem(text.stateStart, verdict.remaining, waitMs)
    }
  }
  if (policy === '') return
  fields.setHeader('RateLimit-Policy', policy)
  fields.setHeader('RateLimit', state)
}

/** Where a rule does not apply the list is a new one each time, of the same rules. */
function knownList(lists: readonly ListText[], rules: readonly CompiledRule[]): ListText | null {
  for (let index = 0; index < lists.length; index++) {
    const list = lists[index] as ListText
    if (list.rules === rules || isSame(list.rules, rules)) return list
  }
  return null
}

function isSame(one: readonly CompiledRule[], other: readonly CompiledRule[]): boolean {
  if (one.length !== other.length) return false
  for (let index = 0; index < one.length; index++) {
    if (one[index] !== other[index]) return false
  }
  return true
}

function newList(lists: ListText[], reported: Reported, textOf: TextOf): ListText {
  const list = listTextOf(reported, textOf)
  if (lists.length === listsMax) lists.shift()
  lists.push(list)
  return list
}

/** An enforced rule of an allowed attempt has not declined: whether it is told depends on the rule alone. */
function listTextOf({ question }: Reported, textOf: TextOf): ListText {
  const { rules } = question
  const told = rules
    .filter(({ candidateOf }) => candidateOf === null)
    .map((rule, entry) => ({ rule, entry, text: textOf(rule) }))
    .filter(({ rule }) => rule.mode === 'enforce' && rule.expose)
  return {
    rules,
    policy: told.map(({ text }) => text.policy).join(', '),
    stateStarts: told.map(({ text }) => text.stateStart),
    entries: told.map(({ entry }) => entry),
  }
}

function newText(rule: CompiledRule): RuleText {
  const window = rule.windowMs % 1000 === 0 ? `;w=${rule.windowMs / 1000}` : ''
  return {
    rule,
    policy: `"${rule.name}";q=${rule.limit}${window}`,
    stateStart: `"${rule.name}";r=`,
  }
}

function stateItem(stateStart: string, remaining: number, waitMs: number): string {
  return waitMs === Infinity
    ? `${stateStart}${remaining}`
    : `${stateStart}${remaining};t=${wholeSeconds(waitMs)}`
}

/*
 * The RateLimit fields of the IETF drafts 08 to 11 (draft-ietf-httpapi-ratelimit-headers):
 *
 *   RateLimit-Policy: "ip";q=400;w=60, "session";q=200;w=60
 *   RateLimit: "ip";r=398;t=71, "session";r=199;t=71
 *
 * Every rule that may be told is named. `w` is left out where the window is not whole seconds, `t` where
 * there is no end to the wait. The parts that a rule alone decides are made once for each compiled rule.
 */
import type { RuleVerdict } from '../../core/decision.js'
import type { CompiledRule } from '../../core/rule.js'
import { isTold, waitMsOf, type Dialect, type Reported } from './dialect.js'
import { wholeSeconds } from './seconds.js'

/** What stands for a rule in each field; of the state the part before the numbers. */
interface RuleText {
  readonly policy: string
  readonly stateStart: string
}

export function draft8(): Dialect {
  // A live change makes a new compiled rule, so what is kept here is never out of date.
  const texts = new WeakMap<CompiledRule, RuleText>()
  return function writeDraft8(attempts, fields) {
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
        const text = texts.get(rule) ?? textOf(rule, texts)
        const separator = policy === '' ? '' : ', '
        policy += separator + text.policy
        state += separator + stateItem(text, verdict.remaining, waitMsOf(reported, verdict))
      }
    }
    if (policy === '') return
    fields.setHeader('RateLimit-Policy', policy)
    fields.setHeader('RateLimit', state)
  }
}

function textOf(rule: CompiledRule, texts: WeakMap<CompiledRule, RuleText>): RuleText {
  const window = rule.windowMs % 1000 === 0 ? `;w=${rule.windowMs / 1000}` : ''
  const text = {
    policy: `"${rule.name}";q=${rule.limit}${window}`,
    stateStart: `"${rule.name}";r=`,
  }
  texts.set(rule, text)
  return text
}

function stateItem({ stateStart }: RuleText, remaining: number, waitMs: number): string {
  return waitMs === Infinity
    ? `${stateStart}${remaining}`
    : `${stateStart}${remaining};t=${wholeSeconds(waitMs)}`
}

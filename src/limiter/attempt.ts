/*
 * An attempt that was made: what was asked, the answer, and what it took, for giving it back. Every request
 * makes one and few are given back, so what it took is kept as two numbers a rule, and written out as
 * receipts when somebody asks.
 */
import type { Measure } from '../core/algorithm.js'
import type { Decision } from '../core/decision.js'
import type { Question } from '../core/facts.js'
import type { Key } from '../core/key.js'
import type { CompiledRule } from '../core/rule.js'
import type { Receipt } from '../stores/store.js'

/**
 * Which rules give back: those that are enforced, where the request was declined, for one in shadow lives as
 * if it alone decided; or all, where the request is not to count for anybody.
 */
export type RefundFrom = 'enforced' | 'all'

export class Attempt {
  readonly question: Question
  readonly decision: Decision
  /** When each rule of the question took, and how much; null where there is nothing to give back. */
  #takes: readonly number[] | null

  /** @param measures of the rules, as the store found them; they hold only now. */
  constructor(question: Question, decision: Decision, measures: readonly Measure[]) {
    this.question = question
    this.decision = decision
    this.#takes = decision.allowed ? takesOf(question, measures) : null
  }

  /** Of enforced rules that are not strict; none where it was declined, or has been given back. */
  get receipts(): Receipt[] {
    return this.#receiptsFrom('enforced')
  }

  #receiptsFrom(from: RefundFrom): Receipt[] {
    const takes = this.#takes
    const receipts: Receipt[] = []
    if (takes === null) return receipts
    const { rules, keys } = this.question
    for (let index = 0; index < rules.length; index++) {
      const rule = rules[index] as CompiledRule
      if (rule.strict || (from === 'enforced' && rule.mode !== 'enforce')) continue
      const takenAtMs = takes[2 * index] as number
      const taken = takes[2 * index + 1] as number
      receipts.push({ rule, key: keys[index] as Key, takenAtMs, taken })
    }
    return receipts
  }

  /** The receipts, once: what is given back must not be given back again. */
  handOver(from: RefundFrom): Receipt[] {
    const receipts = this.#receiptsFrom(from)
    this.#takes = null
    return receipts
  }
}

function takesOf({ rules }: Question, measures: readonly Measure[]): number[] {
  const takes = Array<number>(2 * rules.length)
  for (let index = 0; index < rules.length; index++) {
    const { takenAtMs, taken } = measures[index] as Measure
    takes[2 * index] = takenAtMs
    takes[2 * index + 1] = taken
  }
  return takes
}

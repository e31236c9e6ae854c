/*
 * A limit that is a function of the facts: one number for each plan that clients may have. For each number
 * that the function gives the rule is compiled once more and kept, so algorithms, headers and decisions read
 * `rule.limit` as ever. All these share the rule's index, and by it the table of keys: a key that moves to
 * another plan keeps its usage.
 *
 * There are at most 64: a plan is one of few, not a number for each client. Cost: the call of the function
 * and one look-up an attempt.
 */
import { shown } from './errors.js'
import type { Facts } from './facts.js'
import type { CompiledRule } from './rule.js'
import { refusePromise } from './rule-functions.js'
import type { LimitFunction } from './rule-options.js'

const planCountMax = 64

export class Plans {
  readonly #limitOf: LimitFunction
  /** The rule compiled for each limit that was given. */
  readonly #byLimit = new Map<unknown, CompiledRule>()
  #greatest: CompiledRule | null = null
  #least: CompiledRule | null = null

  constructor(limitOf: LimitFunction) {
    this.#limitOf = limitOf
  }

  /** The greatest limit given so far, 0 where none was. */
  get limitMax(): number {
    return this.#greatest?.limit ?? 0
  }

  /** The rule with the least limit above 0 that was given so far; null where none was. */
  get least(): CompiledRule | null {
    return this.#least
  }

  /**
   * The rule with the limit that these facts have.
   *
   * @throws RangeError naming the rule and what the function gave, where that is no limit.
   */
  of(rule: CompiledRule, facts: Facts): CompiledRule {
    const limit: unknown = this.#limitOf(facts)
    return this.#byLimit.get(limit) ?? this.#add(rule, limit)
  }

  /** Takes over the limits of an earlier state of the rule, if the same function gives them. */
  adopt(rule: CompiledRule, before: Plans): void {
    if (before.#limitOf !== this.#limitOf) return
    for (const limit of before.#byLimit.keys()) {
      if (isWholeTo(limitMaxOf(rule), limit)) this.#add(rule, limit)
    }
  }

  #add(rule: CompiledRule, given: unknown): CompiledRule {
    const max = limitMaxOf(rule)
    if (!isWholeTo(max, given)) {
      refusePromise(given, `the limit of rule '${rule.name}'`)
      throw new RangeError(
        `Cannot decide: the limit of rule '${rule.name}' must be a whole number from 0 to ${max}: ` +
          `its function gave ${typeof given === 'number' ? shown(given) : kindOf(given)}`,
      )
    }
    if (this.#byLimit.size >= planCountMax) {
      throw new RangeError(
        `Cannot decide: the limit of rule '${rule.name}' must be one of at most ${planCountMax} ` +
          `numbers: its function gave one more, ${given}`,
      )
    }
    // −0 is 0.
    const limit = given + 0
    const plan = Object.freeze({ ...rule, ...limitFields(limit, limit, rule.near), planOf: rule })
    this.#byLimit.set(limit, plan)
    if (this.#greatest === null || limit > this.#greatest.limit) this.#greatest = plan
    if (limit > 0 && (this.#least === null || limit < this.#least.limit)) this.#least = plan
    return plan
  }
}

/** What follows from a limit. */
export function limitFields(limit: number, capacity: number, near: number) {
  return { limit, capacity, nearUsage: near * capacity * nearTolerance }
}

/** 0.29 · 100 is 28.999999999999996 in doubles, and 29 of 100 is not above 29 %. */
const nearTolerance = 1 + 2 ** -50

/** What is told of a rule's limit where no request is at hand: with plans the greatest so far. */
export function shownLimit(rule: CompiledRule): number {
  return rule.plans === null ? rule.limit : rule.plans.limitMax
}

/** Likewise of its capacity; a rule with plans has no `burst`. */
export function shownCapacity(rule: CompiledRule): number {
  return rule.plans === null ? rule.capacity : rule.plans.limitMax
}

/**
 * The rule by which keys are judged whose facts nobody knows, when room is made or expired ones are swept:
 * that of the least limit, so that no key is let go early.
 */
export function strictestOf(rule: CompiledRule): CompiledRule {
  return rule.plans?.least ?? rule
}

function limitMaxOf({ algorithm, maxEntries }: CompiledRule): number {
  return algorithm.keepsEntries ? Math.min(rollingLimitMax, maxEntries) : limitMax
}

export const limitMax = 2 ** 32 - 1
/** A rolling window keeps each attempt. */
export const rollingLimitMax = 10_000

/** Whether a value is a whole number from 0 to `max`. */
export function isWholeTo(max: number, value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max
}

/** Not the value: it may come out of what a client sent. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

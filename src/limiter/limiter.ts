/*
 * The limiter: which rules apply to an attempt and under which keys, one question to the store, and the
 * answer in words. It knows no HTTP, and nothing of how a store keeps its state. With a store in this
 * process every answer is there at once.
 */
import { blankMeasure, type Measure } from '../core/algorithm.js'
import type { Decision } from '../core/decision.js'
import { shown, TallygateError } from '../core/errors.js'
import { keyOf, type Facts } from '../core/facts.js'
import type { DecisionObserver } from '../core/observer.js'
import { compileRule, type CompiledRule, type RuleOptions } from '../core/rule.js'
import type { Answer, Attempt, KeyCounts, Store } from '../stores/store.js'
import { decisionOf, verdictOf } from './decision-of.js'

export interface AttemptOptions {
  /** Whole cost units, 1 unless said; a cost of 0 takes nothing and no rule applies. */
  cost?: number | undefined
  /** Only the rules of that function. */
  function?: string | undefined
  /** The general rules and those of that function, in one attempt. */
  also?: string | undefined
}

/** What may be changed while the limiter runs: `limit`, `mode`, `near` keep the state of the keys. */
export type RuleChanges = Partial<Omit<RuleOptions, 'name' | 'function' | 'key' | 'absent'>>

const fixedFields: ReadonlySet<string> = new Set(['name', 'key', 'function', 'absent'])

const noRules: readonly CompiledRule[] = []

export class RuleLimiter {
  readonly rules: readonly CompiledRule[]
  readonly store: Store
  readonly #options: RuleOptions[]
  readonly #rules: CompiledRule[]
  readonly #observer: DecisionObserver | null
  #general: readonly CompiledRule[] = []
  #byFunction: ReadonlyMap<string, readonly CompiledRule[]> = new Map()
  #withGeneral: ReadonlyMap<string, readonly CompiledRule[]> = new Map()

  /** `options` are the rules as written, of which `rules` were compiled. */
  constructor(
    options: readonly RuleOptions[],
    rules: readonly CompiledRule[],
    store: Store,
    observer: DecisionObserver | null,
  ) {
    // Copies: a rule changed by the caller afterwards must not come in with the next live change.
    this.#options = Array.from(options, (one) => ({ ...one }))
    this.#rules = [...rules]
    this.rules = this.#rules
    this.store = store
    this.#observer = observer
    this.#group()
  }

  /** Asks the store for one attempt and tells the observer; the middleware reads the attempt itself. */
  attempt(facts: Facts, options?: AttemptOptions): Answer<Attempt> {
    const attempt = this.#prepare(facts, options)
    const answer = this.store.decide(attempt)
    return whenDone(answer, () => this.#observed(attempt))
  }

  /** Decides one attempt: takes from every rule that applies, or from none. */
  decide(facts: Facts, options?: AttemptOptions): Answer<Decision> {
    const answer = this.attempt(facts, options)
    return answer instanceof Promise ? answer.then(decisionOf) : decisionOf(answer)
  }

  /** What `decide` would answer; takes nothing, leaves no trace, is not counted. */
  peek(facts: Facts, options?: AttemptOptions): Answer<Decision> {
    const attempt = this.#prepare(facts, options)
    return whenDone(this.store.peek(attempt), () => decisionOf(attempt))
  }

  /** Asks again, without a trace, how the rules of an attempt stand; for reports after a refund. */
  review(attempt: Attempt): Answer<Attempt> {
    const again = attemptOver(attempt.rules, attempt.keys, attempt.cost)
    return whenDone(this.store.peek(again), () => again)
  }

  /** Gives back what an attempt took, from the window in which it was counted; strict rules keep it. */
  refund(attempt: Attempt): Answer<void> {
    return this.store.refund(attempt)
  }

  /** Forgets one key of a rule. */
  reset(name: string, facts: Facts): Answer<void> {
    const rule = this.rule(name)
    const key = keyOf(rule, facts)
    return key === null ? undefined : this.store.reset(rule, key)
  }

  /**
   * Gives back (`delta` < 0) or adds (`delta` > 0) whole cost units in the current window of one key.
   *
   * @throws RangeError where `delta` is no whole number.
   */
  adjust(name: string, facts: Facts, delta: number): Answer<void> {
    if (!Number.isSafeInteger(delta)) {
      throw new RangeError(`Cannot adjust '${name}': delta must be whole: received ${shown(delta)}`)
    }
    const rule = this.rule(name)
    const key = keyOf(rule, facts)
    return key === null ? undefined : this.store.adjust(rule, key, delta)
  }

  /** Changes a rule while it runs; a changed window or algorithm starts its keys afresh. */
  configure(name: string, changes: RuleChanges): void {
    const before = this.rule(name)
    const given = Object.entries(changes ?? {}).filter(([, value]) => value !== undefined)
    const fixed = given.find(([field]) => fixedFields.has(field))?.[0]
    if (fixed !== undefined) {
      throw new TallygateError(
        'TALLYGATE_RULE_FIELD',
        `Cannot change rule '${name}': ${fixed} stays as it was created`,
      )
    }
    const options = { ...this.#options[before.index], ...Object.fromEntries(given) } as RuleOptions
    const after = compileRule(options, before.index)
    this.#options[before.index] = options
    this.#rules[before.index] = after
    const afresh = after.windowMs !== before.windowMs || after.algorithm !== before.algorithm
    this.store.configure(after, afresh)
    this.#group()
  }

  /** @throws TallygateError where there is no rule of that name. */
  rule(name: string): CompiledRule {
    const rule = this.#rules.find((candidate) => candidate.name === name)
    if (rule !== undefined) return rule
    throw new TallygateError(
      'TALLYGATE_RULE_NAME',
      `No such rule: must be one of ${this.#rules.map((known) => known.name).join(', ')}: ` +
        `received ${shown(name)}`,
    )
  }

  /** Whether some rule, whatever its mode, is for that function. */
  hasFunction(name: string): boolean {
    return this.#rules.some((rule) => rule.function === name)
  }

  keyCounts(rule: CompiledRule): KeyCounts {
    return this.store.keyCounts(rule)
  }

  close(): Answer<void> {
    return this.store.close()
  }

  #group(): void {
    const active = this.#rules.filter((rule) => rule.mode !== 'disabled')
    const names = new Set(this.#rules.flatMap((rule) => rule.function ?? []))
    const select = (wanted: (rule: CompiledRule, name: string) => boolean) =>
      new Map([...names].map((name) => [name, active.filter((rule) => wanted(rule, name))]))
    this.#general = active.filter((rule) => rule.function === null)
    this.#byFunction = select((rule, name) => rule.function === name)
    this.#withGeneral = select((rule, name) => rule.function === null || rule.function === name)
  }

  #applicable(options: AttemptOptions | undefined): readonly CompiledRule[] {
    const name = options?.function ?? options?.also
    if (name === undefined) return this.#general
    const lists = options?.function === undefined ? this.#withGeneral : this.#byFunction
    return lists.get(name) ?? (options?.function === undefined ? this.#general : noRules)
  }

  #prepare(facts: Facts, options: AttemptOptions | undefined): Attempt {
    const cost = options?.cost ?? 1
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new RangeError(
        `Cannot decide: cost must be a whole number from 0: received ${shown(cost)}`,
      )
    }
    const rules: CompiledRule[] = []
    const keys: string[] = []
    if (cost > 0) {
      for (const rule of this.#applicable(options)) {
        const key = keyOf(rule, facts)
        if (key === null) continue
        rules.push(rule)
        keys.push(key)
      }
    }
    return attemptOver(rules, keys, cost)
  }

  #observed(attempt: Attempt): Attempt {
    if (this.#observer !== null) {
      for (const [index, rule] of attempt.rules.entries()) {
        const measure = attempt.measures[index] as Measure
        this.#observer.judged(rule, verdictOf(rule, measure), measure, attempt.nowMs)
      }
    }
    return attempt
  }
}

function attemptOver(
  rules: readonly CompiledRule[],
  keys: readonly string[],
  cost: number,
): Attempt {
  return { rules, keys, cost, allowed: true, measures: rules.map(blankMeasure), nowMs: 0 }
}

/** Goes on at once where the answer is there, so that a store in this process costs no turn of the loop. */
function whenDone<T>(answer: Answer<void>, next: () => T): Answer<T> {
  return answer instanceof Promise ? answer.then(next) : next()
}

/*
 * The limiter: which rules apply to an attempt and under which keys, one question to the store, and the
 * answer in words. It knows no HTTP, and nothing of how a store keeps its state. With a store in this
 * process every answer is there at once.
 */
import type { Decision } from '../core/decision.js'
import { shown, TallygateError } from '../core/errors.js'
import { keyOf, planOf, questionOf, type Facts } from '../core/facts.js'
import { KeyMaker, type Key } from '../core/key.js'
import type { DecisionObserver } from '../core/observer.js'
import { withoutForeign } from '../core/rule-check.js'
import { compileRule, type CompiledRule, type RuleOptions } from '../core/rule.js'
import type { Answer, Findings, KeyCounts, Question, Store } from '../stores/store.js'
import { Attempt, type RefundFrom } from './attempt.js'
import { decisionOf } from './decision-of.js'
import { RuleGroups } from './rule-groups.js'

export interface AttemptOptions {
  /** Whole cost units, 1 unless said; a cost of 0 takes nothing and no rule applies. */
  cost?: number | undefined
  /** Only the rules of that function. */
  function?: string | undefined
  /** The general rules and those of that function, in one attempt. */
  also?: string | undefined
}

/** What may be changed while the limiter runs: `limit`, `mode`, `near` keep the state of the keys. */
export type RuleChanges = Partial<
  Omit<RuleOptions, 'name' | 'function' | 'match' | 'key' | 'absent' | 'candidates' | 'persist'>
>

const fixedFields: ReadonlySet<string> = new Set([
  'name',
  'key',
  'function',
  'match',
  'absent',
  'candidates',
  'persist',
])

const noRules: readonly CompiledRule[] = []

export class RuleLimiter {
  readonly store: Store
  readonly #options: RuleOptions[]
  readonly #rules: CompiledRule[]
  readonly #observer: DecisionObserver | null
  readonly #keys: KeyMaker
  #groups: RuleGroups

  /** `options` are the rules as written, of which `rules` were compiled; `keys` makes the keys of all. */
  constructor(
    options: readonly RuleOptions[],
    rules: readonly CompiledRule[],
    store: Store,
    observer: DecisionObserver | null,
    keys = new KeyMaker(),
  ) {
    // Copies: a rule changed by the caller afterwards must not come in with the next live change.
    this.#options = Array.from(options, copyOf)
    this.#rules = [...rules]
    this.store = store
    this.#observer = observer
    this.#keys = keys
    this.#groups = new RuleGroups(this.#rules)
  }

  /** The rules as they are now, in the order of the configuration. */
  get rules(): readonly CompiledRule[] {
    return this.#rules
  }

  /** The same for limiters, in other processes too, whose keys have the same ids. */
  get keySpace(): string {
    return this.#keys.space
  }

  /** Whether some rule looks at a request's method or path, or hands the facts to a function. */
  get readsRequest(): boolean {
    return this.#groups.readsRequest
  }

  /** Decides one attempt: takes from every rule that applies, or from none. */
  decide(facts: Facts, options?: AttemptOptions): Answer<Decision> {
    const question = this.#ask(facts, options)
    const findings = this.store.decide(question)
    if (findings instanceof Promise) return findings.then((found) => this.#decided(question, found))
    return this.#decided(question, findings)
  }

  /** Decides, and keeps what is needed to give it back; the middleware asks this way. */
  attempt(facts: Facts, options?: AttemptOptions): Answer<Attempt> {
    const question = this.#ask(facts, options)
    const findings = this.store.decide(question)
    if (findings instanceof Promise)
      return findings.then((found) => this.#attempted(question, found))
    return this.#attempted(question, findings)
  }

  /** What `decide` would answer; takes nothing, leaves no trace, is not counted. */
  peek(facts: Facts, options?: AttemptOptions): Answer<Decision> {
    return this.review(this.#ask(facts, options))
  }

  /** How the rules of a question stand now; for reports after a refund. */
  review(question: Question): Answer<Decision> {
    const findings = this.store.peek(question)
    if (findings instanceof Promise) return findings.then((found) => decisionOf(question, found))
    return decisionOf(question, findings)
  }

  /** Gives back what an attempt took, once, where it was counted; strict rules keep it. */
  refund(attempt: Attempt, from: RefundFrom = 'enforced'): Answer<void> {
    return this.store.refund(attempt.handOver(from))
  }

  /** Forgets one key of a rule, and what its candidates know of it. */
  reset(name: string, facts: Facts): Answer<void> {
    const rule = this.rule(name)
    const key = this.keyOf(rule, facts)
    return key === null ? undefined : this.resetKey(rule, key)
  }

  resetKey(rule: CompiledRule, key: Key): Answer<void> {
    return this.#forEach(rule, (each) => this.store.reset(each, key))
  }

  /** The key that a rule counts these facts under, whatever it matches; null where there is none. */
  keyOf(rule: CompiledRule, facts: Facts): Key | null {
    return keyOf(rule, facts, this.#keys)
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
    const key = this.keyOf(rule, facts)
    if (key === null) return undefined
    return this.#forEach(rule, (each) => this.store.adjust(planOf(each, facts), key, delta))
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
    const options = this.#changed(before, Object.fromEntries(given))
    const after = compileRule(options, before.index, before.candidates[0]?.index ?? 0)
    if (before.plans !== null) after.plans?.adopt(after, before.plans)
    this.#options[before.index] = options
    this.#rules[before.index] = after
    this.#reconfigure(before, after)
    for (const [index, candidate] of after.candidates.entries()) {
      this.#reconfigure(before.candidates[index] as CompiledRule, candidate)
    }
    this.#groups = new RuleGroups(this.#rules)
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
    return this.#groups.has(name)
  }

  keyCounts(rule: CompiledRule): KeyCounts {
    return this.store.keyCounts(rule)
  }

  close(): Answer<void> {
    return this.store.close()
  }

  /** A field that only the algorithm before had goes with it, unless it is given anew. */
  #changed(before: CompiledRule, changes: RuleChanges): RuleOptions {
    const options = { ...(this.#options[before.index] as RuleOptions) }
    const { algorithm = before.algorithm.name } = changes
    return { ...withoutForeign({ ...options, algorithm }), ...changes }
  }

  #reconfigure(before: CompiledRule, after: CompiledRule): void {
    const afresh = after.windowMs !== before.windowMs || after.algorithm !== before.algorithm
    this.store.configure(after, afresh)
  }

  #forEach(rule: CompiledRule, act: (rule: CompiledRule) => Answer<void>): Answer<void> {
    const answers = [rule, ...rule.candidates].map(act)
    const waiting = answers.filter((answer) => answer instanceof Promise)
    return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => undefined)
  }

  #decided(question: Question, findings: Findings): Decision {
    this.#observer?.decided(question, findings.measures, findings.nowMs)
    return decisionOf(question, findings)
  }

  #attempted(question: Question, findings: Findings): Attempt {
    this.#observer?.decided(question, findings.measures, findings.nowMs)
    return new Attempt(question, decisionOf(question, findings), findings.measures)
  }

  #ask(facts: Facts, options: AttemptOptions | undefined): Question {
    const cost = options?.cost ?? 1
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new RangeError(
        `Cannot decide: cost must be a whole number from 0: received ${shown(cost)}`,
      )
    }
    return questionOf(cost === 0 ? noRules : this.#rulesFor(options), facts, cost, this.#keys)
  }

  #rulesFor(options: AttemptOptions | undefined): readonly CompiledRule[] {
    if (options?.function !== undefined) return this.#groups.of(options.function)
    if (options?.also !== undefined) return this.#groups.also(options.also)
    return this.#groups.general
  }
}

function copyOf(options: RuleOptions): RuleOptions {
  const { key, match, candidates } = options
  return {
    ...options,
    key: typeof key === 'object' ? [...key] : key,
    match: match && { methods: match.methods?.slice(), paths: match.paths?.slice() },
    candidates: candidates?.map((candidate) => ({ ...candidate })),
  }
}

export { Attempt, type RefundFrom } from './attempt.js'

/*
 * Which rules an attempt is about: the general ones, those of one function, or both. The lists are made
 * when a limiter is, or a rule changes, so that an attempt only looks one up. A rule's candidates follow it
 * and are asked with it; a disabled rule is in no list.
 */
import { readsRequest } from '../core/facts.js'
import type { CompiledRule } from '../core/rule.js'

const noRules: readonly CompiledRule[] = []

export class RuleGroups {
  readonly general: readonly CompiledRule[]
  /** Whether some rule looks at a request's method or path, or hands the facts to a function. */
  readonly readsRequest: boolean
  readonly #ofFunction: ReadonlyMap<string, readonly CompiledRule[]>
  readonly #withGeneral: ReadonlyMap<string, readonly CompiledRule[]>

  constructor(rules: readonly CompiledRule[]) {
    const active = rules.filter((rule) => rule.mode !== 'disabled')
    const select = (isWanted: (rule: CompiledRule) => boolean) =>
      active.filter(isWanted).flatMap((rule) => [rule, ...rule.candidates])
    const names = new Set(rules.flatMap((rule) => rule.function ?? []))
    const byName = (isWanted: (rule: CompiledRule, name: string) => boolean) =>
      new Map([...names].map((name) => [name, select((rule) => isWanted(rule, name))]))
    this.readsRequest = active.some(readsRequest)
    this.general = select((rule) => rule.function === null)
    this.#ofFunction = byName((rule, name) => rule.function === name)
    this.#withGeneral = byName((rule, name) => rule.function === null || rule.function === name)
  }

  /** Only the rules of that function. */
  of(name: string): readonly CompiledRule[] {
    return this.#ofFunction.get(name) ?? noRules
  }

  /** The general rules and those of that function, in the order of the configuration. */
  also(name: string): readonly CompiledRule[] {
    return this.#withGeneral.get(name) ?? this.general
  }

  /** Whether some rule, whatever its mode, is for that function. */
  has(name: string): boolean {
    return this.#ofFunction.has(name)
  }
}

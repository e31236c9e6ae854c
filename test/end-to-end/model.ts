/*
 * What a client expects of the limits, kept by itself: whole counts by rule and key, all or nothing. It
 * knows nothing of tallygate's code. With windows of a day, half a minute of traffic lies within one, so
 * that the weighted usage of a sliding window is the plain count.
 */

export interface ModelRule {
  name: string
  key: 'global' | 'ip' | 'session'
  limit: number
  function?: string
}

export interface Sender {
  address: string
  session: string | null
}

export class Model {
  readonly #rules: readonly ModelRule[]
  readonly #counts = new Map<string, number>()
  readonly over = new Map<string, number>()
  readonly judged = new Map<string, number>()

  constructor(rules: readonly ModelRule[]) {
    this.#rules = rules
  }

  /** The rules that must decline this request now; none: it must pass, and is counted. */
  expect(sender: Sender, calledFunction: string | null): string[] {
    const general = this.#rules.filter((rule) => rule.function === undefined)
    const own = this.#rules.filter((rule) => rule.function === calledFunction)
    const first = this.#over(general, sender)
    if (first.length > 0 || calledFunction === null) {
      if (first.length === 0) this.#take(general, sender)
      return first
    }
    const second = this.#over(own, sender)
    if (second.length === 0) this.#take([...general, ...own], sender)
    return second
  }

  #over(rules: readonly ModelRule[], sender: Sender): string[] {
    const applying = rules.filter((rule) => keyOf(rule, sender) !== null)
    const over = applying.filter(
      (rule) => (this.#counts.get(keyOf(rule, sender) ?? '') ?? 0) >= rule.limit,
    )
    for (const { name } of applying) this.judged.set(name, (this.judged.get(name) ?? 0) + 1)
    for (const { name } of over) this.over.set(name, (this.over.get(name) ?? 0) + 1)
    return over.map((rule) => rule.name)
  }

  #take(rules: readonly ModelRule[], sender: Sender): void {
    for (const rule of rules) {
      const key = keyOf(rule, sender)
      if (key !== null) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1)
    }
  }
}

function keyOf(rule: ModelRule, { address, session }: Sender): string | null {
  if (rule.key === 'global') return rule.name
  if (rule.key === 'ip') return `${rule.name} ${address}`
  return session === null ? null : `${rule.name} ${session}`
}

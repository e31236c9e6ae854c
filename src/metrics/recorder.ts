/*
 * What the request path counts for Prometheus: numbers in preallocated slots, nothing else. A labelled
 * counter of a metrics library costs several times a whole decision; these cost an addition. They start
 * at 0 with the process, as Prometheus expects of counters; what outlives it is in the tallies.
 */
import { addressKinds } from '../core/address-kind.js'
import type { Measure } from '../core/algorithm.js'
import { outcomes, verdicts } from '../core/decision.js'
import type { Key } from '../core/key.js'
import type { CompiledRule } from '../core/rule.js'
import { DeclinedKeys, noDeclines, type Declines } from './declined-keys.js'
import { HeavyKeys } from './heavy-keys.js'
import { KeyDemand } from './key-demand.js'
import { labelValues } from './table.js'

export class Recorder {
  /** One slot an outcome. */
  readonly requests = new Float64Array(outcomes.length)
  /** One slot a kind of client address. */
  readonly identities = new Float64Array(addressKinds.length)
  untrustedForwardCount = 0
  readonly #decisions: Float64Array
  readonly #peaks: readonly UsagePeak[]
  /** Of rules with plans, where each key has a capacity of its own: shares of it. */
  readonly #sharePeaks: readonly UsagePeak[]

  /** By the index of the rule; null where all count as one, and for candidates, whose keys are their rule's. */
  readonly #heavyKeys: (HeavyKeys | null)[]

  /** By the index of the rule; of candidates there is none, their keys ask for the same. */
  readonly #demand: (KeyDemand | null)[]

  /** By the index of the rule or candidate; null until it declines something. */
  readonly #declined: (DeclinedKeys | null)[]

  /** @param ruleCount rules and candidates together: each has an index of its own. */
  constructor(ruleCount: number) {
    this.#decisions = new Float64Array(ruleCount * labelValues.mode.length * verdicts.length)
    this.#heavyKeys = Array.from({ length: ruleCount }, () => null)
    this.#demand = Array.from({ length: ruleCount }, () => null)
    this.#declined = Array.from({ length: ruleCount }, () => null)
    this.#peaks = Array.from({ length: ruleCount }, () => new UsagePeak())
    this.#sharePeaks = Array.from({ length: ruleCount }, () => new UsagePeak())
  }

  /** @param outcome index into `outcomes`. */
  countRequest(outcome: number): void {
    this.requests[outcome] = (this.requests[outcome] as number) + 1
  }

  /** @param kind index into `addressKinds`. */
  identified(kind: number): void {
    this.identities[kind] = (this.identities[kind] as number) + 1
  }

  untrustedForward(): void {
    this.untrustedForwardCount++
  }

  /**
   * Counts what one rule made of an attempt.
   *
   * @param verdict index into `verdicts`.
   * @param cost of the attempt, in whole units.
   */
  judged(
    rule: CompiledRule,
    verdict: number,
    key: Key,
    cost: number,
    measure: Measure,
    nowMs: number,
  ): void {
    const slot = slotOf(rule.index, rule.mode === 'shadow' ? 1 : 0, verdict)
    this.#decisions[slot] = (this.#decisions[slot] as number) + 1
    this.heavyKeys(rule)?.count(key, verdict === overIndex, nowMs)
    if (rule.candidateOf === null) this.demand(rule).count(key, cost, rule.windowMs, nowMs)
    if (rule.planOf === null) {
      this.#peaks[rule.index]?.record(measure.usage, rule.windowMs, nowMs)
    } else {
      const share = rule.limit > 0 ? measure.usage / rule.capacity : 1
      this.#sharePeaks[rule.index]?.record(share, rule.windowMs, nowMs)
    }
  }

  /**
   * Counts that a rule or a candidate was over for a key.
   *
   * @param windowMs of the rule, for its candidates too.
   */
  declined({ index }: CompiledRule, windowMs: number, key: Key, nowMs: number): void {
    let known = this.#declined[index]
    // A changed window starts the rule afresh.
    if (known?.windowMs !== windowMs) known = this.#declined[index] = new DeclinedKeys(windowMs)
    known.count(key, nowMs)
  }

  /** What a rule or a candidate declined in the rule's current and last window. */
  declines({ index }: CompiledRule, windowMs: number, nowMs: number): Declines {
    const known = this.#declined[index]
    return known?.windowMs === windowMs ? known.read(nowMs) : noDeclines
  }

  /** The heaviest keys of a rule; null where it counts all as one. */
  heavyKeys(rule: CompiledRule): HeavyKeys | null {
    if (rule.key === 'global' || rule.candidateOf !== null) return null
    const known = this.#heavyKeys[rule.index]
    // A changed window starts the rule afresh.
    if (known?.windowMs === rule.windowMs) return known
    return (this.#heavyKeys[rule.index] = new HeavyKeys(rule.windowMs))
  }

  /** What the keys of a rule, which is no candidate, ask for. */
  demand({ index }: CompiledRule): KeyDemand {
    return (this.#demand[index] ??= new KeyDemand())
  }

  /** @param mode index into `labelValues.mode`. @param verdict index into `verdicts`. */
  decisions(rule: number, mode: number, verdict: number): number {
    return this.#decisions[slotOf(rule, mode, verdict)] ?? 0
  }

  /** Highest usage of any key as a share of the limit, in the current and the last window of the rule. */
  utilization(rule: CompiledRule, nowMs: number): number {
    const peaks = rule.plans === null ? this.#peaks : this.#sharePeaks
    const peak = peaks[rule.index]?.read(rule.windowMs, nowMs) ?? noUsage
    if (peak === noUsage) return 0
    if (rule.plans !== null) return peak
    return rule.limit > 0 ? peak / rule.capacity : 1
  }
}

/** The verdict of who declines, as an index into `verdicts`. */
export const overIndex = verdicts.indexOf('over')

function slotOf(rule: number, mode: number, verdict: number): number {
  return (rule * labelValues.mode.length + mode) * verdicts.length + verdict
}

/** Less than any: there was no attempt. */
const noUsage = -1

/** The highest usage in the current and in the last of the windows that follow each other since the epoch. */
class UsagePeak {
  #windowMs = 0
  #windowStartMs = 0
  #current = noUsage
  #last = noUsage

  record(usage: number, windowMs: number, nowMs: number): void {
    this.#roll(windowMs, nowMs)
    if (usage > this.#current) this.#current = usage
  }

  read(windowMs: number, nowMs: number): number {
    this.#roll(windowMs, nowMs)
    return Math.max(this.#current, this.#last)
  }

  #roll(windowMs: number, nowMs: number): void {
    const elapsedMs = nowMs - this.#windowStartMs
    // A remainder of doubles costs as much as all the rest: it is taken when the window turns.
    if (elapsedMs >= 0 && elapsedMs < windowMs && windowMs === this.#windowMs) return
    this.#windowMs = windowMs
    const startMs = nowMs - (nowMs % windowMs)
    if (startMs === this.#windowStartMs) return
    this.#last = startMs - this.#windowStartMs === windowMs ? this.#current : noUsage
    this.#current = noUsage
    this.#windowStartMs = startMs
  }
}

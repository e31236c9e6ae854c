/*
 * Changes of rules while they run: made at once, kept over restarts, shared by the processes on one
 * database, each with its entry in the audit. What is in force of a field is its newest change, where that
 * replaced what the configuration still says; else the configuration. So a changed configuration wins over
 * an older change of the same field.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../core/clock.js'
import { TallygateError } from '../core/errors.js'
import type { Key } from '../core/key.js'
import type { Logger } from '../core/logger.js'
import type { CompiledRule } from '../core/rule.js'
import type { RuleChanges, RuleLimiter } from '../limiter/limiter.js'
import type { AuditRow, Override, OverrideField } from '../sqlite/rule-changes.js'
import { within } from '../sqlite/within.js'
import { ChangeKeeper, type KeptChanges } from './change-keeper.js'
import { differing, picked, valuesOf, type RuleValues } from './rule-values.js'

export interface LiveChangesParts {
  readonly limiter: RuleLimiter
  readonly clock: Clock
  readonly logger: Logger
  /** null where there is no database. */
  readonly kept: KeptChanges | null
}

/** What became of a change. */
export interface Changed {
  /** Whether the rule began afresh, with no key known. */
  readonly restarted: boolean
  /** Whether it lasts over a restart; one that does not yet is tried again with every flush. */
  readonly persisted: boolean
}

/** How long an answer waits to say whether the change lasts. */
const patienceMs = 1_000

export class LiveChanges {
  readonly #parts: LiveChangesParts
  readonly #keeper: ChangeKeeper
  /** What the configuration says, by rule. */
  readonly #configured: ReadonlyMap<string, RuleValues>
  readonly #counts = new Map<string, number>()

  constructor(parts: LiveChangesParts) {
    const { limiter, kept, logger } = parts
    this.#parts = parts
    this.#configured = new Map(limiter.rules.map((rule) => [rule.name, valuesOf(rule)]))
    this.#keeper = new ChangeKeeper({
      kept,
      logger,
      isOurs: (override) => this.#isOurs(override),
      onChange: () => this.#follow(),
    })
    this.#begin()
  }

  /** How often a rule was changed since the start. */
  countOf({ name }: CompiledRule): number {
    return this.#counts.get(name) ?? 0
  }

  /** @throws TallygateError where a value is none that the rule can have; then nothing is changed. */
  async change(name: string, changes: RuleChanges): Promise<Changed> {
    const { limiter, logger } = this.#parts
    const before = valuesOf(limiter.rule(name))
    limiter.configure(name, changes)
    const after = valuesOf(limiter.rule(name))
    const fields = differing(before, after)
    if (fields.length === 0) return { restarted: false, persisted: this.#keeper.isSaved }
    this.#note(name, 'change', fields, before, after)
    this.#count(name)
    const [from, to] = [picked(before, fields), picked(after, fields)]
    logger.info({ rule: name, before: from, after: to }, 'a rule was changed live')
    await within(this.#keeper.save(), patienceMs)
    return { restarted: fields.includes('window'), persisted: this.#keeper.isSaved }
  }

  /** @param shown how the audit names the key. */
  async forget(
    rule: CompiledRule,
    key: Key,
    shown: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    await this.#parts.limiter.resetKey(rule, key)
    this.#keeper.add([], this.#entry(rule.name, 'forget-key', shown, null))
    void this.#keeper.save()
  }

  audit(): Promise<AuditRow[]> {
    return this.#keeper.audit()
  }

  /** Writes what waits and takes over what others changed; to be called about once a second. */
  flush(): Promise<void> {
    return this.#keeper.save()
  }

  /** Whether there are changes that a restart would lose. */
  get isWaiting(): boolean {
    return this.#keeper.isWaiting
  }

  /** What was changed before the start, unless the configuration has been changed since. */
  #begin(): void {
    const { limiter } = this.#parts
    for (const { name } of limiter.rules) {
      const changed = this.#keeper.overrides.filter(
        ({ rule, value }) => rule === name && value !== null,
      )
      this.#yield(
        name,
        changed.filter((override) => !this.#isOurs(override)),
      )
      if (this.#apply(name, false)) continue
      // With what else the configuration says now it is impossible.
      this.#yield(
        name,
        changed.filter((override) => this.#isOurs(override)),
      )
    }
    if (this.#keeper.isWaiting) void this.#keeper.save()
  }

  /** Gives up changes in favour of the configuration. */
  #yield(name: string, overrides: readonly Override[]): void {
    if (overrides.length === 0) return
    const fields = overrides.map(({ field }) => field)
    const configured = this.#configured.get(name) as RuleValues
    const values = Object.fromEntries(overrides.map(({ field, value }) => [field, value]))
    this.#note(name, 'file-wins', fields, { ...configured, ...values }, configured)
    this.#parts.logger.warn(
      { rule: name, before: values, after: picked(configured, fields) },
      'a rule was changed live and in the configuration since; the configuration wins',
    )
  }

  /** Changes of other processes. */
  #follow(): void {
    for (const { name } of this.#parts.limiter.rules) this.#apply(name, true)
  }

  /** Brings a rule to what is in force; false where it cannot be. */
  #apply(name: string, isCounted: boolean): boolean {
    const { limiter, logger } = this.#parts
    const before = valuesOf(limiter.rule(name))
    const after = this.#inForce(name)
    const fields = differing(before, after)
    if (fields.length === 0) return true
    const [from, to] = [picked(before, fields), picked(after, fields)]
    try {
      limiter.configure(name, to as RuleChanges)
    } catch (error) {
      if (!(error instanceof TallygateError)) throw error
      logger.error(
        { err: error, rule: name },
        'a live change of a rule is impossible in this configuration',
      )
      return false
    }
    logger.info(
      { rule: name, before: from, after: to },
      'a rule is as it was changed before, or by another process',
    )
    if (isCounted) this.#count(name)
    return true
  }

  #inForce(name: string): RuleValues {
    const values = { ...(this.#configured.get(name) as RuleValues) }
    for (const override of this.#keeper.overrides) {
      const { rule, field, value } = override
      if (rule === name && value !== null && this.#isOurs(override)) values[field] = value
    }
    return values
  }

  /** Whether a change replaced what the configuration says. */
  #isOurs({ rule, field, replaced }: Override): boolean {
    return this.#configured.get(rule)?.[field] === replaced
  }

  /** Remembers a change of some fields, and who must be told of it. */
  #note(
    name: string,
    action: string,
    fields: readonly OverrideField[],
    before: RuleValues,
    after: RuleValues,
  ): void {
    const configured = this.#configured.get(name) as RuleValues
    const entry = this.#entry(name, action, picked(before, fields), picked(after, fields))
    const overrides = fields.map((field) => ({
      rule: name,
      field,
      value: after[field] === configured[field] ? null : after[field],
      replaced: configured[field],
      atMs: entry.atMs,
    }))
    this.#keeper.add(overrides, entry)
  }

  #entry(
    rule: string,
    action: string,
    before: AuditRow['before'],
    after: AuditRow['after'],
  ): AuditRow {
    const atMs = this.#keeper.timeOf(this.#parts.clock.wallMs())
    return { id: randomUUID(), atMs, rule, action, before, after }
  }

  #count(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }
}

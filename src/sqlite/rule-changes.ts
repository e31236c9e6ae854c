/*
 * Changes of rules that were made while they ran, in SQLite: for each field of a rule the value that is in
 * force in place of the configuration's, and a trail of who changed what when. A change that is withdrawn
 * leaves its row, without a value, so that an older one that was written late does not come back.
 *
 * Several processes may share the file: the newest change of a field wins, whoever writes it and in whatever
 * order, and a number that grows with each writing tells everybody that there is something to take over.
 */
import type { OpenDatabase } from './database.js'

export const overrideFields = ['limit', 'window', 'mode'] as const
export type OverrideField = (typeof overrideFields)[number]
export type OverrideValue = string | number

/** One field of one rule. */
export interface Override {
  readonly rule: string
  readonly field: OverrideField
  /** In force in place of the configuration's; null where the change was withdrawn. */
  readonly value: OverrideValue | null
  /** What the configuration had when it was changed; null for what cannot be written down, a function. */
  readonly replaced: OverrideValue | null
  /** Milliseconds since the epoch; a later change has a greater one. */
  readonly atMs: number
}

export interface AuditRow {
  /** Different for each, so that one which is written twice is there once. */
  readonly id: string
  readonly atMs: number
  readonly rule: string
  readonly action: string
  /** Plain objects, as JSON has them. */
  readonly before: Readonly<Record<string, unknown>> | null
  readonly after: Readonly<Record<string, unknown>> | null
}

export interface StoredOverrides {
  /** Of the file: another one where it was begun anew. */
  readonly databaseId: string
  /** Grows with each writing. */
  readonly revision: number
  readonly overrides: readonly Override[]
}

export const auditCountMax = 1_000

interface StoredAudit extends Omit<AuditRow, 'before' | 'after'> {
  readonly before: string
  readonly after: string
}

export class RuleChangeRows {
  readonly #database: OpenDatabase
  readonly #statements

  constructor(database: OpenDatabase) {
    const { connection } = database
    this.#database = database
    this.#statements = {
      meta: connection.prepare('SELECT value FROM meta WHERE key = ?').pluck(),
      overrides: connection.prepare(
        'SELECT rule, field, value, replaced, at_ms AS atMs FROM rule_overrides',
      ),
      override: connection.prepare(
        `INSERT INTO rule_overrides VALUES (@rule, @field, @value, @replaced, @atMs)
         ON CONFLICT (rule, field) DO UPDATE SET
           value = excluded.value, replaced = excluded.replaced, at_ms = excluded.at_ms
         WHERE excluded.at_ms >= at_ms`,
      ),
      audit: connection.prepare(
        `SELECT id, at_ms AS atMs, rule, action, before, after FROM rule_audit
         ORDER BY at_ms DESC, rowid DESC LIMIT ${auditCountMax}`,
      ),
      note: connection.prepare(
        `INSERT INTO rule_audit VALUES (@id, @atMs, @rule, @action, @before, @after)
         ON CONFLICT (id) DO NOTHING`,
      ),
      prune: connection.prepare(
        `DELETE FROM rule_audit WHERE rowid <=
           (SELECT rowid FROM rule_audit ORDER BY rowid DESC LIMIT 1 OFFSET ${auditCountMax})`,
      ),
      advance: connection.prepare(
        `INSERT INTO meta VALUES ('rules_revision', 1)
         ON CONFLICT (key) DO UPDATE SET value = value + 1`,
      ),
    }
  }

  read(): StoredOverrides {
    return this.#database.connection.transaction(() => this.#read()).deferred()
  }

  /** What is in force, unless that is known: null then. */
  since(databaseId: string, revision: number): StoredOverrides | null {
    const { meta } = this.#statements
    const isKnown =
      meta.get('database_id') === databaseId && Number(meta.get('rules_revision') ?? 0) === revision
    return isKnown ? null : this.read()
  }

  /** Everything or, where it throws, nothing; may be sent again. */
  write(overrides: readonly Override[], entries: readonly AuditRow[]): StoredOverrides {
    const { override, note, prune, advance } = this.#statements
    const run = this.#database.connection.transaction(() => {
      for (const each of overrides) override.run(each)
      for (const { before, after, ...entry } of entries) {
        note.run({ ...entry, before: JSON.stringify(before), after: JSON.stringify(after) })
      }
      prune.run()
      advance.run()
      return this.#read()
    })
    return run.immediate()
  }

  /** The last changes, the newest first. */
  audit(): AuditRow[] {
    return (this.#statements.audit.all() as StoredAudit[]).map(({ before, after, ...entry }) => ({
      ...entry,
      before: JSON.parse(before) as AuditRow['before'],
      after: JSON.parse(after) as AuditRow['after'],
    }))
  }

  #read(): StoredOverrides {
    const { meta, overrides } = this.#statements
    return {
      databaseId: String(meta.get('database_id')),
      revision: Number(meta.get('rules_revision') ?? 0),
      overrides: overrides.all() as Override[],
    }
  }
}

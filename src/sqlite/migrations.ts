/*
 * The shape of the database file, as steps from one `user_version` to the next. A step is never edited
 * once released; a new shape is a new step. Several processes may start on one file at once: the steps run
 * inside one transaction that takes the write lock before it looks at the version.
 */
import { randomUUID } from 'node:crypto'
import type { Database } from 'better-sqlite3'

interface Migration {
  readonly sql: string
}

const migrations: readonly Migration[] = [
  {
    sql: `
      CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE request_tallies (
        window TEXT NOT NULL, start_ms INTEGER NOT NULL, outcome TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (window, start_ms, outcome)
      ) WITHOUT ROWID;
      CREATE TABLE rule_tallies (
        window TEXT NOT NULL, start_ms INTEGER NOT NULL, rule TEXT NOT NULL, verdict TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (window, start_ms, rule, verdict)
      ) WITHOUT ROWID;
      CREATE TABLE sessions (id_hash TEXT PRIMARY KEY, data TEXT NOT NULL, expires_ms INTEGER NOT NULL)
        WITHOUT ROWID;
      CREATE INDEX sessions_by_expiry ON sessions (expires_ms);`,
  },
  {
    sql: `
      CREATE TABLE writers (id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, seen_ms INTEGER NOT NULL)
        WITHOUT ROWID;`,
  },
  {
    // The index holds all that making room asks about, so the pages themselves stay unread.
    sql: `
      CREATE TABLE pages (
        url_hash TEXT PRIMARY KEY, fetched_ms INTEGER NOT NULL, size_bytes INTEGER NOT NULL,
        data TEXT NOT NULL
      );
      CREATE INDEX pages_by_age ON pages (fetched_ms, size_bytes);`,
  },
  {
    // Values have no type: limits are numbers, windows and modes are words.
    sql: `
      CREATE TABLE rule_overrides (
        rule TEXT NOT NULL, field TEXT NOT NULL, value, replaced, at_ms INTEGER NOT NULL,
        PRIMARY KEY (rule, field)
      ) WITHOUT ROWID;
      CREATE TABLE rule_audit (
        id TEXT NOT NULL UNIQUE, at_ms INTEGER NOT NULL, rule TEXT NOT NULL, action TEXT NOT NULL,
        before TEXT NOT NULL, after TEXT NOT NULL
      );`,
  },
]

export const schemaVersion = migrations.length

/** Brings a database up to this version. A file of a later version is left as it is: see `open`. */
export function migrate(database: Database, nowMs: number): void {
  // Without the lock, which another process may hold for long: nothing is to be done nearly always.
  if (database.pragma('user_version', { simple: true }) === schemaVersion) return
  const run = database.transaction(() => {
    const version = database.pragma('user_version', { simple: true }) as number
    for (const migration of migrations.slice(version)) database.exec(migration.sql)
    if (version >= schemaVersion) return
    const remember = database.prepare('INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)')
    remember.run('database_id', randomUUID().slice(0, 8))
    remember.run('since_ms', String(Math.floor(nowMs)))
    database.pragma(`user_version = ${schemaVersion}`)
  })
  run.immediate()
}

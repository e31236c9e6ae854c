/*
 * A database as the first version of tallygate left it, with one row in each table. Written out, and not
 * taken from the migrations: what was released once stays as it was.
 */
import Sqlite from 'better-sqlite3'

export function makeFirstVersion(path: string): void {
  const connection = new Sqlite(path)
  connection.pragma('journal_mode = WAL')
  connection.exec(`
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
    CREATE INDEX sessions_by_expiry ON sessions (expires_ms);
    INSERT INTO meta VALUES ('database_id', 'f1r5t000'), ('since_ms', '1234');
    INSERT INTO request_tallies VALUES ('week', 0, 'allowed', 7);
    INSERT INTO rule_tallies VALUES ('week', 0, 'ip', 'within', 7);
    INSERT INTO sessions VALUES ('digest', '{}', 9000);
    PRAGMA user_version = 1`)
  connection.close()
}

/** What `makeFirstVersion` put in, wherever it still is. */
export function firstVersionRows(path: string): unknown[] {
  const connection = new Sqlite(path, { readonly: true })
  const tables = ['request_tallies', 'rule_tallies', 'sessions']
  const meta = "SELECT * FROM meta WHERE key IN ('database_id', 'since_ms')"
  const rows = [meta, ...tables.map((table) => `SELECT * FROM ${table}`)].flatMap((sql) =>
    connection.prepare(sql).raw().all(),
  )
  connection.close()
  return rows
}

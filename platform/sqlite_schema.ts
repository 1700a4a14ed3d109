/** Checks that a SQLite file has the tables that a program makes, and nothing that runs code. */
import type { DatabaseSync } from "node:sqlite";

/**
 * Whether a database has exactly these tables. A view, a trigger, a virtual table or a computed
 * column would run SQL of whoever made the file, without end or with any effect on it. To be called
 * before any statement names a table.
 *
 * @param tables the statements that make them.
 */
export function hasOnlyTables(database: DatabaseSync, tables: readonly string[]): boolean {
  const made = database.prepare("SELECT type, name, sql FROM sqlite_schema").all()
    // SQLite makes these for primary keys, and names nothing else so.
    .filter(({ type, name, sql }) =>
      type !== "index" || sql !== null || !String(name).startsWith("sqlite_autoindex_")
    )
    .map(({ sql }) => onOneLine(String(sql)));
  return made.length === tables.length &&
    tables.every((statement) => made.includes(onOneLine(statement)));
}

/** Does not let a file's schema call functions that have effects. */
export const UNTRUSTED_SCHEMA = "PRAGMA trusted_schema = OFF;";

/** SQLite keeps a statement as it was written. */
function onOneLine(statement: string): string {
  return statement.replace(/\s+/g, " ").trim();
}

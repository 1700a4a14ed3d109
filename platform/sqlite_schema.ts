/** Checks that a SQLite file contains only what Leat creates: other content could have effects. */
import { closeSync, lstatSync, openSync, readSync, realpathSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";

/**
 * Whether a database has exactly these tables. A view, a trigger, a virtual table or a computed
 * column would run SQL of the file's maker, endlessly or with any effect. Call this before any
 * statement names a table.
 *
 * @param tables the statements that create the tables.
 */
export function hasOnlyTables(database: DatabaseSync, tables: readonly string[]): boolean {
  const made = database.prepare("SELECT type, name, sql FROM sqlite_schema").all()
    // SQLite creates such indices for primary keys. The names are reserved.
    .filter(({ type, name, sql }) =>
      type !== "index" || sql !== null || !String(name).startsWith("sqlite_autoindex_")
    )
    .map(({ sql }) => onOneLine(String(sql)));
  return made.length === tables.length &&
    tables.every((statement) => made.includes(onOneLine(statement)));
}

/** Keeps a file's schema from calling functions that have effects. */
export const UNTRUSTED_SCHEMA = "PRAGMA trusted_schema = OFF;";

/** The end of a rollback journal of a transaction over several databases, which Leat never makes. */
const OF_SEVERAL = Uint8Array.of(0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7);

/**
 * Whether SQLite might remove an unrelated file when it opens a database: it removes the file that
 * is named in such a journal beside the database. Call this before opening.
 */
export function removesOtherFiles(path: string): boolean {
  try {
    const journal = `${realpathSync(path)}-journal`;
    const found = lstatSync(journal);
    if (!found.isFile()) return true;
    const end = new Uint8Array(OF_SEVERAL.length);
    const file = openSync(journal, "r");
    try {
      readSync(file, end, 0, end.length, Math.max(0, found.size - end.length));
    } finally {
      closeSync(file);
    }
    return OF_SEVERAL.every((byte, i) => byte === end[i]);
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return false;
    throw error;
  }
}

/** Normalizes white space, which SQLite keeps as it was written. */
function onOneLine(statement: string): string {
  return statement.replace(/\s+/g, " ").trim();
}

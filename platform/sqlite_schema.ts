/** Checks that a SQLite file contains only what Leat creates: other content may have side effects. */
import { closeSync, lstatSync, openSync, readSync, realpathSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";

/**
 * Whether a database has exactly these tables. A view, a trigger, a virtual table or a computed
 * column would run SQL of the file's author, which may never end or have side effects. Call this
 * before any statement names a table.
 *
 * @param tables the statements that create the tables.
 */
export function hasOnlyTables(database: DatabaseSync, tables: readonly string[]): boolean {
  const created = database.prepare("SELECT type, name, sql FROM sqlite_schema").all()
    // SQLite creates these indices for primary keys, and reserves their names.
    .filter(({ type, name, sql }) =>
      type !== "index" || sql !== null || !String(name).startsWith("sqlite_autoindex_")
    )
    .map(({ sql }) => onOneLine(String(sql)));
  return created.length === tables.length &&
    tables.every((statement) => created.includes(onOneLine(statement)));
}

/** Keeps a file's schema from calling functions that have side effects. */
export const UNTRUSTED_SCHEMA = "PRAGMA trusted_schema = OFF;";

/** Ends a rollback journal that names a super-journal (several databases), which Leat never writes. */
const SUPER_JOURNAL_MAGIC = Uint8Array.of(0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7);

/**
 * Whether SQLite might remove an unrelated file when it opens a database. If the rollback journal
 * beside the database names a super-journal, SQLite removes the named file. Call this before opening.
 */
export function removesOtherFiles(path: string): boolean {
  try {
    const journal = `${realpathSync(path)}-journal`;
    const stat = lstatSync(journal);
    if (!stat.isFile()) return true;
    const end = new Uint8Array(SUPER_JOURNAL_MAGIC.length);
    const file = openSync(journal, "r");
    try {
      readSync(file, end, 0, end.length, Math.max(0, stat.size - end.length));
    } finally {
      closeSync(file);
    }
    return SUPER_JOURNAL_MAGIC.every((byte, i) => byte === end[i]);
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return false;
    throw error;
  }
}

/** Normalizes white space, which SQLite keeps as it was written. */
function onOneLine(statement: string): string {
  return statement.replace(/\s+/g, " ").trim();
}

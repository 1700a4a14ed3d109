/** The metric store on SQLite. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LeatError } from "../../core/error.ts";
import type { MetricStore } from "../../offload/metric_store.ts";
import { hasOnlyTables, removesOtherFiles, UNTRUSTED_SCHEMA } from "../sqlite_schema.ts";

/** Marks the file as a metric store (`PRAGMA application_id`): "LeaM". */
const APPLICATION_ID = 0x4c65614d;
const LAYOUT_VERSION = 1;
/** How long to wait while another process writes, in ms. */
const BUSY_TIMEOUT_MS = 500;

const TABLE = "CREATE TABLE metric (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT";

const SCHEMA = `
  ${TABLE};
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${LAYOUT_VERSION};
`;

/**
 * Opens the store in the file `path`; creates it and its folder if needed. Several processes may
 * use it at once.
 * @throws {LeatError} `failed_precondition` for a file that is no metric store, has another version,
 * or contains other tables or views; `unavailable` when it cannot be opened. Each error names the
 * file.
 */
export function openSqliteMetrics(path: string): MetricStore {
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true });
    if (removesOtherFiles(path)) {
      throw new LeatError(
        "failed_precondition",
        `${path}-journal does not belong to a metric store, and could make SQLite remove another ` +
          "file; remove it",
      );
    }
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    database.exec(UNTRUSTED_SCHEMA);
    checkLayout(database, path);
    return sqliteMetrics(database);
  } catch (error) {
    database?.close();
    if (error instanceof LeatError) throw error;
    throw new LeatError("unavailable", `The metric store ${path} cannot be opened`, {
      cause: error,
    });
  }
}

function sqliteMetrics(database: DatabaseSync): MetricStore {
  return {
    get(key) {
      const row = database.prepare("SELECT value FROM metric WHERE key = ?").get(key);
      return row === undefined ? undefined : JSON.parse(String(row["value"]));
    },
    set(key, value) {
      database.prepare("INSERT OR REPLACE INTO metric (key, value) VALUES (?, ?)")
        .run(key, JSON.stringify(value));
    },
    [Symbol.dispose]: () => database.close(),
  };
}

function checkLayout(database: DatabaseSync, path: string): void {
  const read = (name: string) => Object.values(database.prepare(`PRAGMA ${name}`).get()!)[0];
  if (isEmpty(database)) createTable(database);
  if (read("application_id") !== APPLICATION_ID) {
    throw new LeatError("failed_precondition", `${path} is no metric store; name another file`);
  }
  const version = read("user_version");
  if (version !== LAYOUT_VERSION) {
    throw new LeatError(
      "failed_precondition",
      `The metric store ${path} has version ${version}, and this program reads ${LAYOUT_VERSION}; remove it`,
    );
  }
  if (hasOnlyTables(database, [TABLE])) return;
  throw new LeatError(
    "failed_precondition",
    `The metric store ${path} has other tables, views or triggers than Leat makes; remove it`,
  );
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
}

/** Creates the table, unless another process has created it since the caller looked. */
function createTable(database: DatabaseSync): void {
  database.exec("BEGIN IMMEDIATE");
  if (isEmpty(database)) database.exec(SCHEMA);
  database.exec("COMMIT");
}

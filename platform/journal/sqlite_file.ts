/** The file of a log: creates it, opens it and checks that it is whole. */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LeatError } from "../../core/error.ts";
import { hasOnlyTables, removesOtherFiles, UNTRUSTED_SCHEMA } from "../sqlite_schema.ts";
import { LogMark, PRIVATE_FILE_MODE } from "./log_mark.ts";
import { damaged, translate } from "./sqlite_errors.ts";

/** When the write-ahead file has this many pages, SQLite moves them into the database. */
const CHECKPOINT_PAGES = 4096;

/** Marks the file as a log of this layout (`PRAGMA application_id`): "Leat". */
const APPLICATION_ID = 0x4c656174;

const LAYOUT_VERSION = 1;

const PRIVATE_FOLDER_MODE = 0o700;

const TABLES = [
  `CREATE TABLE snapshot (
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL
  ) STRICT`,
  `CREATE TABLE batch (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL
  ) STRICT`,
];

const SCHEMA = `
  ${TABLES.join(";")};
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${LAYOUT_VERSION};
`;

/**
 * Creates the file under another name, and links it to `path` when it is complete. So an empty file
 * at `path` is always a damaged one, and two programs that start at once use the same file.
 */
export function createIfMissing(path: string): void {
  if (exists(path)) return;
  const remaining = [walOf(path), markOf(path)].filter(exists).map((file) => basename(file))
    .join(" and ");
  if (remaining !== "") {
    throw new LeatError(
      "data_loss",
      `${path} is missing, but not ${remaining}: restore all of them from a copy, or ` +
        `remove ${remaining} to start an empty log`,
    );
  }
  const folder = dirname(path);
  const draft = join(folder, `.${basename(path)}.${crypto.randomUUID()}`);
  try {
    mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER_MODE });
    // SQLite gives its other files the mode of this one.
    closeSync(openSync(draft, "wx", PRIVATE_FILE_MODE));
    const database = new DatabaseSync(draft);
    try {
      database.exec(`
        PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; BEGIN; ${SCHEMA} COMMIT;
      `);
    } finally {
      database.close();
    }
    linkSync(draft, path);
    syncFolder(folder);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EEXIST") throw translate(error, path);
  } finally {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(draft + suffix, { force: true });
  }
}

export function openDatabase(path: string): DatabaseSync {
  if (statSync(path).size === 0) throw damaged(path, "it is empty");
  if (removesOtherFiles(path)) {
    throw damaged(path, `the file ${basename(path)}-journal does not belong to a log`);
  }
  for (const file of [path, walOf(path), markOf(path)]) makePrivate(file);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    database.exec(UNTRUSTED_SCHEMA);
    // Holds the lock until the database is closed or the process ends, and avoids a shared-memory file.
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    const mode = database.prepare("PRAGMA journal_mode = WAL").get();
    if (mode?.["journal_mode"] !== "wal") {
      throw new LeatError(
        "failed_precondition",
        `${path}: this file system allows no write-ahead log`,
      );
    }
    database.exec(`
      PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
      PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
      BEGIN EXCLUSIVE; COMMIT;
    `);
    checkLayout(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw translate(error, path);
  }
}

export function limitSize(database: DatabaseSync, bytesMax: number): void {
  const pageBytes = Number(database.prepare("PRAGMA page_size").get()?.["page_size"]);
  database.exec(`PRAGMA max_page_count = ${pagesOf(bytesMax, pageBytes)}`);
}

/** The write-ahead file that SQLite keeps next to an open log. */
export function walOf(path: string): string {
  return `${path}-wal`;
}

export function markOf(path: string): string {
  return `${path}-mark`;
}

/**
 * Checks that the log reaches its mark. If not, keeps a copy of the damaged write-ahead file, because
 * SQLite removes that file when it closes the database.
 * @throws {LeatError} `data_loss` when the log ends before its mark.
 */
export function checkMark(path: string, written: number): void {
  const marked = LogMark.read(markOf(path)) ?? 0;
  if (marked <= written) return;
  const [wal, mark] = [walOf(path), basename(markOf(path))];
  if (exists(wal)) copyFileSync(wal, `${wal}-damaged`);
  throw new LeatError(
    "data_loss",
    `${path} holds ${written} records, but ${marked} were written: ${basename(wal)} is damaged, ` +
      `truncated or from another time. Restore both from a copy. Or remove ${mark} to continue with ` +
      `these ${written} records (later ones are lost, so splits may be assigned twice). Or move all of ` +
      `these files away to start an empty log`,
  );
}

export function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Makes a file private, such as a copy that others may read. Only the file's owner can do that. */
function makePrivate(file: string): void {
  try {
    chmodSync(file, PRIVATE_FILE_MODE);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ENOENT" && code !== "EPERM") throw error;
  }
}

/** Makes new names in a folder durable. Not every platform can sync a folder. */
function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, "r");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // On Windows the file system journals names itself.
  }
}

function checkLayout(database: DatabaseSync, path: string): void {
  const id = database.prepare("PRAGMA application_id").get()?.["application_id"];
  const version = database.prepare("PRAGMA user_version").get()?.["user_version"];
  if (id !== APPLICATION_ID) throw damaged(path, "it is not a log");
  if (version !== LAYOUT_VERSION) {
    throw new LeatError(
      "failed_precondition",
      `${path} has layout ${version}, and this program reads layout ${LAYOUT_VERSION}; use the ` +
        `program that wrote it`,
    );
  }
  // This comes before `quick_check`, because that evaluates expressions in the file's schema.
  if (!hasOnlyTables(database, TABLES)) throw damaged(path, "its tables are not those of a log");
  const check = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (check !== "ok") throw damaged(path, String(check));
}

/** At least one page, and at most SQLite's limit. */
function pagesOf(bytesMax: number, pageBytes: number): number {
  return Math.min(2 ** 32 - 2, Math.max(1, Math.floor(bytesMax / pageBytes)));
}

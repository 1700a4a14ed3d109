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
import { LogMark, OWN_FILE } from "./log_mark.ts";
import { damaged, translate } from "./sqlite_errors.ts";

/** Pages of the write-ahead file after which SQLite moves them into the database. */
const CHECKPOINT_PAGES = 4096;

/** Marks the file as a log of this layout (`PRAGMA application_id`): "Leat". */
const APPLICATION_ID = 0x4c656174;

const LAYOUT_VERSION = 1;

const OWN_FOLDER = 0o700;

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
  const left = [walOf(path), markOf(path)].filter(exists).map((file) => basename(file));
  if (left.length > 0) {
    throw new LeatError(
      "data_loss",
      `${path} is gone, but of it ${left.join(" and ")} is left: restore all from a copy, or ` +
        "remove what is left to start an empty log",
    );
  }
  const folder = dirname(path);
  const draft = join(folder, `.${basename(path)}.${crypto.randomUUID()}`);
  try {
    mkdirSync(folder, { recursive: true, mode: OWN_FOLDER });
    // SQLite gives its other files the mode of this one.
    closeSync(openSync(draft, "wx", OWN_FILE));
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
    throw damaged(path, `the file ${basename(path)}-journal is not of a log`);
  }
  for (const file of [path, walOf(path), markOf(path)]) closeToOthers(file);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    database.exec(UNTRUSTED_SCHEMA);
    // Locked until the database is closed or the process ends. It also avoids the shared-memory file.
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
 * Keeps a copy of a damaged write-ahead file, which closing the database removes.
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
      `truncated or of another time. Restore both from a copy; or remove ${mark} to continue with what is ` +
      `left (what came after it is forgotten, so that splits are assigned twice); or move all of them ` +
      `away to start an empty log`,
  );
}

export function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Makes a file private, which an older program may have left open to others. Only its owner may. */
function closeToOthers(file: string): void {
  try {
    chmodSync(file, OWN_FILE);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "ENOENT" && code !== "EPERM") throw error;
  }
}

/** A new name is durable only when its folder is; not every platform can sync a folder. */
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
  // Before `quick_check`, which evaluates expressions in the file's schema.
  if (!hasOnlyTables(database, TABLES)) throw damaged(path, "its tables are not those of a log");
  const check = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (check !== "ok") throw damaged(path, String(check));
}

/** At least one page, and at most SQLite's limit. */
function pagesOf(bytesMax: number, pageBytes: number): number {
  return Math.min(2 ** 32 - 2, Math.max(1, Math.floor(bytesMax / pageBytes)));
}

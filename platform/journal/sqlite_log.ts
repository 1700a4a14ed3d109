/**
 * The durable log on SQLite: a write-ahead log that is synced at every commit.
 *
 * Records appended within one task of the event loop share a transaction and a row, because a disk
 * sync costs a hundred times as much as writing a record. Rows carry checksums: SQLite itself
 * detects a damaged tree, but not a damaged row.
 */
import {
  closeSync,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers";
import { crc32 } from "node:zlib";
import type { DurableLog, LogContents } from "../../actors/runtime/durable_log.ts";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { LogMark } from "./log_mark.ts";
import { isDiskFull, systemCode } from "../system_codes.ts";

/** Most bytes that wait to be written; beyond it `append` refuses: no caller is syncing. */
const PENDING_BYTES_MAX = 1 << 30;
/** A row holds records up to about this total size; more go into several rows. */
const BATCH_BYTES_MAX = 16 << 20;
/** Before each record in a row: its length, big-endian. */
const LENGTH_BYTES = 4;
/** Pages of the write-ahead file after which SQLite moves them into the database. */
const CHECKPOINT_PAGES = 4096;
/** Free pages kept for later records; a compaction returns the others to the system. */
const FREE_PAGES_MAX = 4096;
/** Marks the file as a log of this layout (`PRAGMA application_id`): "Leat". */
const APPLICATION_ID = 0x4c656174;
const LAYOUT_VERSION = 1;

const SCHEMA = `
  CREATE TABLE snapshot (
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE batch (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL
  ) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${LAYOUT_VERSION};
`;

export interface SqliteLogOptions {
  /**
   * Most bytes of the file, evaluated before each write; beyond it `sync` fails with
   * `resource_exhausted`. Default: any.
   */
  readonly bytesMax?: () => number;
}

/**
 * Opens the log in the file `path`; creates it and its folder if needed. While it is open, SQLite
 * keeps `path`-wal next to it, and the log keeps `path`-mark, which says how far it was written:
 * the files belong together and are copied together. A closed log is one file.
 * @throws {LeatError} `failed_precondition` when another log holds the file, `data_loss` when it is
 * damaged, truncated or no log, `permission_denied` when it may not be read and written,
 * `invalid_argument` when its folder is a file, `resource_exhausted` when the disk is full; each
 * names the file.
 */
export function openSqliteLog(path: string, options: SqliteLogOptions = {}): Promise<DurableLog> {
  return Promise.try(() => {
    try {
      createIfMissing(path);
      return new SqliteLog(path, options);
    } catch (error) {
      throw translate(error, path);
    }
  });
}

class SqliteLog implements DurableLog {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #mark: LogMark;
  readonly #bytesMax: (() => number) | undefined;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  /** The number of the newest written record, counted since the log was created. */
  #written = 0;
  /**
   * The contents at opening, which may be large: released when read, or when the log is written.
   */
  #found: LogContents | undefined;
  #flush: Promise<void> | undefined;
  #failure: LeatError | undefined;
  #closed = false;

  constructor(path: string, { bytesMax }: SqliteLogOptions) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#database = openDatabase(path);
    try {
      const contents = readContents(this.#database, path);
      this.#found = contents;
      this.#written = contents.number + contents.records.length;
      checkMark(path, this.#written);
      this.#mark = new LogMark(markOf(path));
      this.#insert = this.#database.prepare(
        "INSERT INTO batch (first, count, crc, body) VALUES (?, ?, ?, ?)",
      );
    } catch (error) {
      this.#database.close();
      throw translate(error, path);
    }
  }

  read(): Promise<LogContents> {
    return Promise.try(() => {
      this.#check();
      try {
        const { snapshot, records } = this.#found ?? readContents(this.#database, this.#path);
        this.#found = undefined;
        return { snapshot, records };
      } catch (error) {
        throw translate(error, this.#path);
      }
    });
  }

  append(record: Uint8Array): void {
    this.#check();
    if (this.#pendingBytes + record.byteLength > PENDING_BYTES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `${this.#path}: more than ${PENDING_BYTES_MAX} bytes wait to be written; call sync() more often`,
      );
    }
    this.#pending.push(record);
    this.#pendingBytes += record.byteLength;
  }

  sync(): Promise<void> {
    if (this.#failure !== undefined || this.#closed) return Promise.try(() => this.#check());
    if (this.#pending.length === 0) return Promise.resolve();
    this.#flush ??= new Promise<void>((resolve, reject) => {
      // Other callers in this macrotask append as well: all records go into one transaction.
      setImmediate(() => {
        this.#flush = undefined;
        try {
          this.#writePending();
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
    return this.#flush;
  }

  compact(snapshot: Uint8Array): Promise<void> {
    return Promise.try(() => {
      this.#check();
      const number = this.#written + this.#pending.length;
      this.#transaction(() => {
        this.#database.exec("DELETE FROM batch");
        this.#database.prepare(
          "INSERT OR REPLACE INTO snapshot (only, number, crc, body) VALUES (1, ?, ?, ?)",
        ).run(number, crc32(snapshot), snapshot);
        return number;
      });
      this.#giveBack(snapshot.byteLength);
    });
  }

  /** A large snapshot leaves the free pages of the previous one, and a write-ahead file. */
  #giveBack(snapshotBytes: number): void {
    const free = Number(this.#database.prepare("PRAGMA freelist_count").get()?.["freelist_count"]);
    if (free <= FREE_PAGES_MAX && snapshotBytes <= BATCH_BYTES_MAX) return;
    try {
      // Each step returns one page.
      if (free > FREE_PAGES_MAX) {
        this.#database.prepare(`PRAGMA incremental_vacuum(${free - FREE_PAGES_MAX})`).all();
      }
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // A full disk has no space for a vacuum. Nothing is lost: the pages are free.
    }
  }

  close(): Promise<void> {
    return Promise.try(() => {
      if (this.#closed) return;
      this.#closed = true;
      try {
        if (this.#failure === undefined) this.#writePending();
      } finally {
        this.#database.close();
        if (exists(walOf(this.#path))) this.#mark.close();
        else this.#mark.remove();
      }
    });
  }

  #writePending(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#pending.length === 0) return;
    this.#transaction(() => {
      let number = this.#written;
      for (const { count, body } of packBatches(this.#pending)) {
        this.#insert.run(number + 1, count, crc32(body), body);
        number += count;
      }
      return number;
    });
  }

  /**
   * Writes all that is pending. On a full disk the records stay pending. After another failure it
   * is unknown what reached the disk, so nothing more is written.
   * @param work Returns the number of the newest record.
   */
  #transaction(work: () => number): void {
    this.#found = undefined;
    try {
      if (this.#bytesMax !== undefined) limitSize(this.#database, this.#bytesMax());
      this.#database.exec("BEGIN IMMEDIATE");
      const number = work();
      this.#database.exec("COMMIT");
      this.#written = number;
      this.#pending = [];
      this.#pendingBytes = 0;
    } catch (error) {
      const failure = translate(error, this.#path);
      const isUndone = this.#rollBack();
      if (failure.code !== "resource_exhausted" || !isUndone) {
        this.#failure = failure;
        this.#pending = [];
      }
      throw failure;
    }
    this.#mark.write(this.#written);
  }

  #rollBack(): boolean {
    try {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      return true;
    } catch {
      // The next opening rolls back.
      return false;
    }
  }

  #check(): void {
    if (this.#failure !== undefined) {
      throw new LeatError(
        this.#failure.code,
        `${this.#path} is unusable since a write failed: ${this.#failure.message}`,
        { cause: this.#failure },
      );
    }
    if (this.#closed) throw new LeatError("failed_precondition", `${this.#path} is closed`);
  }
}

/**
 * Completes the file under another name before linking it to its own: an empty file of that name is
 * always a damaged one, and two programs that start at once share one file.
 */
function createIfMissing(path: string): void {
  if (exists(path)) return;
  const left = [walOf(path), markOf(path)].filter(exists).map((file) => basename(file));
  if (left.length > 0) {
    throw new LeatError(
      "data_loss",
      `${path} is gone, but of it ${
        left.join(" and ")
      } is left: restore all from a copy, or remove ` +
        `what is left to begin anew`,
    );
  }
  const folder = dirname(path);
  const draft = join(folder, `.${basename(path)}.${crypto.randomUUID()}`);
  try {
    mkdirSync(folder, { recursive: true });
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

/** The write-ahead file that SQLite keeps next to an open log. */
function walOf(path: string): string {
  return `${path}-wal`;
}

function markOf(path: string): string {
  return `${path}-mark`;
}

/**
 * Keeps a copy of a damaged write-ahead file, which closing the database removes.
 * @throws {LeatError} `data_loss` when the log ends before its mark.
 */
function checkMark(path: string, written: number): void {
  const marked = LogMark.read(markOf(path)) ?? 0;
  if (marked <= written) return;
  const [wal, mark] = [walOf(path), basename(markOf(path))];
  if (exists(wal)) copyFileSync(wal, `${wal}-damaged`);
  throw new LeatError(
    "data_loss",
    `${path} holds ${written} records, but ${marked} were written: ${basename(wal)} is damaged, ` +
      `truncated or of another time. Restore both from a copy; or remove ${mark} to continue with what is ` +
      `left (what came after it is forgotten, so that splits are assigned twice); or move all of them ` +
      `away to begin anew`,
  );
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
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
    // Windows; there the file system journals names itself.
  }
}

function openDatabase(path: string): DatabaseSync {
  if (statSync(path).size === 0) throw damaged(path, "it is empty");
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    // Exclusive until closed, or the process ends. It also avoids the shared-memory file.
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
  const check = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  if (check !== "ok") throw damaged(path, String(check));
}

function limitSize(database: DatabaseSync, bytesMax: number): void {
  const pageBytes = Number(database.prepare("PRAGMA page_size").get()?.["page_size"]);
  database.exec(`PRAGMA max_page_count = ${pagesOf(bytesMax, pageBytes)}`);
}

/** At least one page, and at most SQLite's limit. */
function pagesOf(bytesMax: number, pageBytes: number): number {
  return Math.min(2 ** 32 - 2, Math.max(1, Math.floor(bytesMax / pageBytes)));
}

/** Packs records into rows, each with its length before it. */
function* packBatches(
  records: readonly Uint8Array[],
): Iterable<{ count: number; body: Uint8Array }> {
  for (let from = 0; from < records.length;) {
    let byteLength = 0;
    let to = from;
    while (to < records.length && (to === from || byteLength < BATCH_BYTES_MAX)) {
      byteLength += LENGTH_BYTES + records[to++]!.byteLength;
    }
    const body = new Uint8Array(byteLength);
    const view = new DataView(body.buffer);
    let offset = 0;
    for (let i = from; i < to; i++) {
      const record = records[i]!;
      view.setUint32(offset, record.byteLength);
      body.set(record, offset + LENGTH_BYTES);
      offset += LENGTH_BYTES + record.byteLength;
    }
    yield { count: to - from, body };
    from = to;
  }
}

/** The records of a row, each in its own buffer. The row's checksum was right: all are there. */
function* unpackBatch(body: Uint8Array): Iterable<Uint8Array> {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let offset = 0; offset < body.byteLength;) {
    const start = offset + LENGTH_BYTES;
    offset = start + view.getUint32(offset);
    yield body.slice(start, offset);
  }
}

type SnapshotRow = { readonly number: number; readonly crc: number; readonly body: Uint8Array };
type BatchRow = {
  readonly first: number;
  readonly count: number;
  readonly crc: number;
  readonly body: Uint8Array;
};

function readContents(
  database: DatabaseSync,
  path: string,
): LogContents & { readonly number: number } {
  const row = database.prepare("SELECT number, crc, body FROM snapshot").get() as
    | SnapshotRow
    | undefined;
  if (row !== undefined && crc32(row.body) !== row.crc) {
    throw damaged(path, "its snapshot's checksum is wrong");
  }
  const number = row?.number ?? 0;
  const records: Uint8Array[] = [];
  const batches = database.prepare("SELECT first, count, crc, body FROM batch ORDER BY first");
  // Not `iterate()`: it treats an unreadable row as the end.
  for (const { first, count, crc, body } of batches.all() as unknown as readonly BatchRow[]) {
    const expected = number + records.length + 1;
    if (first !== expected) throw damaged(path, `record ${expected} is missing`);
    if (crc32(body) !== crc) {
      throw damaged(path, `the checksum of records ${first} to ${first + count - 1} is wrong`);
    }
    for (const record of unpackBatch(body)) records.push(record);
  }
  return { snapshot: row?.body, records, number };
}

function damaged(path: string, what: string): LeatError {
  return new LeatError(
    "data_loss",
    `${path} is damaged: ${what}. Restore it with its ${
      basename(walOf(path))
    } from a copy, or move ` +
      `it away with all files of the same prefix to begin anew (what it recorded is then forgotten)`,
  );
}

const NO_LOG: readonly [LeatErrorCode, string] = [
  "data_loss",
  "is damaged or no log; restore it from a copy, or move it away to begin anew",
];

/** SQLite's primary result codes for which the operator can do something. */
const CODE_OF_RESULT: ReadonlyMap<number, readonly [LeatErrorCode, string]> = new Map([
  // The statements are correct, so the tables in the file are not a log's.
  [1, NO_LOG],
  [3, [
    "permission_denied",
    "may not be accessed; give this program the right to read and write it",
  ]],
  [5, ["failed_precondition", "is in use; stop the program that holds it, or choose another file"]],
  [6, ["failed_precondition", "is in use; stop the program that holds it, or choose another file"]],
  [8, ["permission_denied", "may only be read; give this program the right to write it"]],
  [10, ["data_loss", "could not be read or written; check the disk"]],
  [11, ["data_loss", "is damaged; restore it from a copy, or move it away to begin anew"]],
  [13, ["resource_exhausted", "cannot grow: the disk is full; make room"]],
  [14, ["permission_denied", "could not be opened; check that its folder may be written"]],
  [26, NO_LOG],
]);

/** The system's error codes for files, with the remedy. */
const CODE_OF_SYSTEM: ReadonlyMap<unknown, readonly [LeatErrorCode, string]> = new Map([
  ["ENOTDIR", ["invalid_argument", "lies below a file: name a folder, or one that can be made"]],
  ["EEXIST", ["invalid_argument", "lies below a file: name a folder, or one that can be made"]],
  ["ENAMETOOLONG", ["invalid_argument", "is too long a name: choose a shorter one"]],
  ["EACCES", ["permission_denied", "may not be written; give this program's user the right to"]],
  ["EPERM", ["permission_denied", "may not be written; give this program's user the right to"]],
  ["EROFS", ["permission_denied", "is on a disk that may only be read; choose another folder"]],
  ["ENOSPC", ["resource_exhausted", "cannot grow: the disk is full; make room"]],
  ["EDQUOT", [
    "resource_exhausted",
    "cannot grow: the quota is used up; make room",
  ]],
]);

/** `exec` reports results without their number: this maps SQLite's text to it. */
const RESULT_OF_TEXT: ReadonlyMap<string, number> = new Map([
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database or disk is full", 13],
]);

/** SQLite's code for an I/O error, and the extended one for a page where the file ends. */
const IO_ERROR = 10;
const SHORT_READ = 522;
/** Bytes written to find out whether there is space: one SQLite page. */
const PROBE_BYTES = 4096;

function translate(error: unknown, path: string): LeatError {
  if (error instanceof LeatError) return error;
  const { message, errcode = RESULT_OF_TEXT.get(message) } = error as
    & Error
    & { readonly errcode?: unknown };
  if (errcode === SHORT_READ) return damaged(path, "it is cut off");
  const result = typeof errcode === "number" ? errcode & 0xff : undefined;
  const isQuota = result === IO_ERROR && isQuotaUsedUp(path);
  const known = isQuota || result === undefined
    ? CODE_OF_SYSTEM.get(isQuota ? "EDQUOT" : systemCode(error))
    : CODE_OF_RESULT.get(result);
  if (known !== undefined) {
    return new LeatError(known[0], `${path} ${known[1]} (${message})`, {
      cause: error,
    });
  }
  const cause = LeatError.from(error, "internal");
  return new LeatError(cause.code, `${path}: ${cause.message}`, { cause: error });
}

/** SQLite reports an exhausted quota as an I/O error: writing a new file tells which it is. */
function isQuotaUsedUp(path: string): boolean {
  const probe = `${path}-probe`;
  try {
    writeFileSync(probe, new Uint8Array(PROBE_BYTES));
    return false;
  } catch (error) {
    return isDiskFull(error);
  } finally {
    rmSync(probe, { force: true });
  }
}

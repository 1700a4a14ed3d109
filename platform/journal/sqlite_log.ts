/**
 * The durable log on SQLite: a write-ahead log that is synced at every commit.
 *
 * Records appended within one task of the event loop share a transaction and a row, because a disk
 * sync costs a hundred times as much as writing a record. Rows carry checksums: SQLite itself
 * detects a damaged tree, but not a damaged row.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate } from "node:timers";
import { crc32 } from "node:zlib";
import type { DurableLog, LogContents } from "../../actors/runtime/durable_log.ts";
import { LeatError } from "../../core/error.ts";
import { LogMark } from "./log_mark.ts";
import { damaged, translate } from "./sqlite_errors.ts";
import {
  checkMark,
  createIfMissing,
  exists,
  limitSize,
  markOf,
  openDatabase,
  walOf,
} from "./sqlite_file.ts";

/** Limit of the bytes that wait to be written. Beyond it `append` throws: callers forgot to `sync`. */
const PENDING_BYTES_MAX = 1 << 30;
/** A row holds records up to about this total size; more go into several rows. */
const BATCH_BYTES_MAX = 16 << 20;
/** Before each record in a row: its length, big-endian. */
const LENGTH_BYTES = 4;
/** Limit of free pages that are kept for later records. A compaction returns the others to the system. */
const FREE_PAGES_MAX = 4096;

export interface SqliteLogOptions {
  /**
   * Returns the limit of the file's size, in bytes; called before each write. Writes beyond it fail
   * with `resource_exhausted`. Default: no limit.
   */
  readonly bytesMax?: () => number;
}

/**
 * Opens the log in the file `path`; creates it and its folder if needed. While the log is open, SQLite
 * keeps `path`-wal next to it, and the log keeps `path`-mark, which records how far the log was
 * written. Copy these files together. A closed log is one file.
 * @throws {LeatError} `failed_precondition` when another program uses the file, `data_loss` when it is
 * damaged, truncated or not a log, `permission_denied` when it may not be read and written,
 * `invalid_argument` when its folder is a file, `resource_exhausted` when the disk is full. Each error
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
  /** The contents at opening. They may be large: released when they are read, or the log is written. */
  #initial: LogContents | undefined;
  #flush: Promise<void> | undefined;
  #failure: LeatError | undefined;
  #closed = false;

  constructor(path: string, { bytesMax }: SqliteLogOptions) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#database = openDatabase(path);
    try {
      const contents = readContents(this.#database, path);
      this.#initial = contents;
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
        const { snapshot, records } = this.#initial ?? readContents(this.#database, this.#path);
        this.#initial = undefined;
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
      this.#releaseSpace(snapshot.byteLength);
    });
  }

  /** Returns the free pages and the space of the write-ahead file to the system. */
  #releaseSpace(snapshotBytes: number): void {
    const free = Number(this.#database.prepare("PRAGMA freelist_count").get()?.["freelist_count"]);
    if (free <= FREE_PAGES_MAX && snapshotBytes <= BATCH_BYTES_MAX) return;
    try {
      // `all()`, because each row of the result frees one page.
      if (free > FREE_PAGES_MAX) {
        this.#database.prepare(`PRAGMA incremental_vacuum(${free - FREE_PAGES_MAX})`).all();
      }
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // A full disk has no space for a vacuum. Nothing is lost: later records use the free pages.
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
   * Runs `work` in a transaction. `work` writes all pending records, or a snapshot with them. On a full
   * disk the records stay pending. After any other failure, even to write the mark, it is unknown what
   * reached the disk. So the log writes nothing more.
   * @param work Returns the number of the newest record.
   */
  #transaction(work: () => number): void {
    this.#initial = undefined;
    try {
      if (this.#bytesMax !== undefined) limitSize(this.#database, this.#bytesMax());
      this.#database.exec("BEGIN IMMEDIATE");
      const number = work();
      this.#database.exec("COMMIT");
      this.#mark.write(number);
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

/** Packs records into rows. Each record follows its length. */
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

/** Returns the records of a row, each in its own buffer. The caller has verified the row's checksum. */
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
  // `iterate()` would treat an unreadable row as the end.
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

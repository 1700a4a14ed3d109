/**
 * The journal: append, then apply, then answer. Everything that leaves the dispatcher waits for
 * {@linkcode Journal.committed}. One commit writes everything appended since the last commit began.
 */
import { LeatError } from "../../../core/error.ts";
import { MessageSlab } from "../../../transport/codec.ts";
import type { DurableLog } from "../../runtime/durable_log.ts";
import { Sleep } from "../../runtime/timers.ts";
import { type JournalRecord, RecordBatch } from "./records.ts";

/** Where the dispatcher's changes are written. */
export interface Journal {
  /**
   * @throws {LeatError} `invalid_argument` if the record cannot be encoded: nothing is appended;
   * `unavailable` after {@linkcode LoggedJournal.abandon}.
   */
  append(record: JournalRecord): void;
  /**
   * Settles when everything appended so far is durable; undefined if it already is.
   * @throws {LeatError} `unavailable` if something cannot become durable.
   */
  committed(): Promise<void> | undefined;
  /** Commits the rest and releases the log. */
  close(): Promise<void>;
}

/** Exists while the disk is full. Until it has space, no decision is answered. */
export interface JournalStall {
  /** The log's error, with its location and the remedy. */
  readonly message: string;
  /** Since when, in monotonic ms. */
  readonly sinceMs: number;
}

/** The pause before a full disk is tried again, in ms; doubles up to the maximum. */
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 2_000;

/**
 * Above `recordsMax` the journal is compacted once the bytes of records exceed this share of the last
 * snapshot. All requests wait while a snapshot is written, so a large one must be rare.
 */
const SNAPSHOT_SHARE_MIN = 1 / 8;
/** Above this many times `recordsMax` it is compacted in any case: a restart must not take long. */
const RECORDS_FACTOR_MAX = 50;

export interface LoggedJournalOptions {
  readonly log: DurableLog;
  /**
   * The whole current state, encoded.
   * @throws {LeatError} `resource_exhausted` if it is too large. The log then keeps its records.
   */
  readonly snapshot: () => Uint8Array;
  /**
   * The journal is compacted above this many records, once their bytes exceed a share of the last
   * snapshot.
   */
  readonly recordsMax: number;
  /** It is also compacted once the bytes of records exceed both this and the last snapshot. */
  readonly bytesMax: number;
  /** Whether to compact now although the log is short: the simulator compacts often. */
  readonly isCompactedEarly?: () => boolean;
  /** Calls back in a later macrotask; see `World.macrotask`. */
  readonly macrotask: (fn: () => void) => void;
  readonly nowMs: () => number;
  /** Calls back after a delay, unless cancelled. */
  readonly timer: (delayMs: number, fn: () => void) => { cancel(): void };
  /** Called when the disk is full, and with undefined when it has space again. */
  readonly onStall: (stall: JournalStall | undefined) => void;
  /** Called when the state is too large for a snapshot. The log then keeps growing. */
  readonly onTooLarge: (error: LeatError) => void;
  /** Called when the log has failed: what was applied since the last commit is not durable. */
  readonly onFailure: (error: LeatError) => void;
}

export class LoggedJournal implements Journal {
  readonly #options: LoggedJournalOptions;
  /** Shared by many records: allocating a buffer for a short one costs as much as encoding it. */
  readonly #slab = new MessageSlab();
  /** The records not yet passed to the log. A commit finds only complete transactions here. */
  #batch: RecordBatch;
  #appended = 0;
  #durable = 0;
  /** The commit that has not started; it will include everything appended before it starts. */
  #next: Promise<void> | undefined;
  /** The newest commit that has started, and the number of records up to its end. */
  #begun: Promise<void> | undefined;
  #begunUpTo = 0;
  #records: number;
  #bytes: number;
  #snapshotBytes: number;
  #isAbandoned = false;
  #isClosing = false;
  #stall: JournalStall | undefined;
  /** Settles when the disk has space again, or the journal is closed. */
  #room: Promise<void> | undefined;
  /** The pause before the next attempt. */
  readonly #pause = new Sleep();

  /** @param replayed What the log held when it was opened. */
  constructor(
    options: LoggedJournalOptions,
    replayed: { readonly records: number; readonly bytes: number; readonly snapshotBytes: number },
  ) {
    this.#options = options;
    this.#batch = new RecordBatch(this.#slab);
    this.#records = replayed.records;
    this.#bytes = replayed.bytes;
    this.#snapshotBytes = replayed.snapshotBytes;
  }

  append(record: JournalRecord): void {
    if (this.#isAbandoned) throw abandoned();
    this.#batch.add(record);
    this.#appended++;
    this.#records++;
  }

  committed(): Promise<void> | undefined {
    if (this.#isAbandoned) return Promise.reject(abandoned());
    if (this.#durable === this.#appended) return undefined;
    if (this.#begunUpTo === this.#appended) return this.#begun;
    if (this.#next === undefined) {
      this.#next = new Promise((resolve) => {
        this.#options.macrotask(() => {
          this.#next = undefined;
          this.#begunUpTo = this.#appended;
          this.#begun = this.#commit(this.#appended);
          resolve(this.#begun);
        });
      });
      // `onFailure` handles the error, also of a commit that no caller awaits.
      this.#next.catch(() => {});
    }
    return this.#next;
  }

  /** Drops the records that the log has not received, and refuses new ones. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#batch = new RecordBatch(this.#slab);
  }

  /** Why nothing becomes durable now; undefined unless the disk is full. */
  get stall(): JournalStall | undefined {
    return this.#stall;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#pause.wake();
    try {
      await this.committed();
    } catch {
      // The failure was reported when it happened.
    }
    try {
      await this.#options.log.close();
    } catch (error) {
      // The disk is full, so these records are lost. No answer that depends on them has left: clients
      // may repeat the requests.
      if (LeatError.from(error).code !== "resource_exhausted") throw error;
    }
  }

  async #commit(upTo: number): Promise<void> {
    if (this.#isAbandoned) throw abandoned();
    try {
      this.#logBatch();
      await this.#write();
    } catch (error) {
      throw this.#failed(error);
    }
    this.#durable = Math.max(this.#durable, upTo);
  }

  /** Retries while the disk is full. The records stay in memory, and the answers wait. */
  async #write(): Promise<void> {
    for (;;) {
      try {
        return await (this.#isLong ? this.#compact() : this.#options.log.sync());
      } catch (error) {
        const failure = LeatError.from(error, "data_loss");
        if (failure.code !== "resource_exhausted" || this.#isClosing) throw error;
        await (this.#room ??= this.#waitForRoom(failure));
      }
    }
  }

  async #waitForRoom({ message }: LeatError): Promise<void> {
    const { log, nowMs, onStall } = this.#options;
    onStall(this.#stall = { message, sinceMs: nowMs() });
    let hasRoom = false;
    for (let delayMs = RETRY_MIN_MS;; delayMs = Math.min(2 * delayMs, RETRY_MAX_MS)) {
      await this.#pause.begin(this.#options, delayMs);
      if (this.#isClosing) break;
      try {
        await log.sync();
        hasRoom = true;
        break;
      } catch (error) {
        // Any other failure: the waiting `#write` calls retry, get it too, and throw it.
        if (LeatError.from(error).code !== "resource_exhausted") break;
      }
    }
    this.#stall = undefined;
    this.#room = undefined;
    if (hasRoom) onStall(undefined);
  }

  #logBatch(): void {
    if (this.#batch.isEmpty) return;
    const bytes = this.#batch.encode();
    this.#batch = new RecordBatch(this.#slab);
    this.#options.log.append(bytes);
    this.#bytes += bytes.byteLength;
  }

  #failed(error: unknown): LeatError {
    const failure = LeatError.from(error, "data_loss");
    if (!this.#isClosing || failure.code !== "resource_exhausted") this.#options.onFailure(failure);
    return new LeatError(
      "unavailable",
      `The dispatcher cannot write its journal (${failure.message}); it restarts from what it has written`,
      { cause: failure },
    );
  }

  get #isLong(): boolean {
    const { recordsMax, bytesMax } = this.#options;
    const allowed = this.#bytes > SNAPSHOT_SHARE_MIN * this.#snapshotBytes
      ? recordsMax
      : RECORDS_FACTOR_MAX * recordsMax;
    return this.#records > allowed || this.#bytes > Math.max(bytesMax, this.#snapshotBytes) ||
      this.#options.isCompactedEarly?.() === true;
  }

  #compact(): Promise<void> {
    const { log } = this.#options;
    // While the disk was full, more records may have been added. The snapshot includes their changes,
    // so log them before it: behind it, a replay would apply them again.
    this.#logBatch();
    // Reset the counts now, so that a failed attempt is not repeated at once.
    this.#records = 0;
    this.#bytes = 0;
    const snapshot = this.#snapshot();
    if (snapshot === undefined) return log.sync();
    this.#snapshotBytes = snapshot.byteLength;
    return log.compact(snapshot);
  }

  #snapshot(): Uint8Array | undefined {
    try {
      return this.#options.snapshot();
    } catch (error) {
      const failure = LeatError.from(error);
      if (failure.code !== "resource_exhausted") throw failure;
      this.#options.onTooLarge(failure);
      return undefined;
    }
  }
}

function abandoned(): LeatError {
  return new LeatError(
    "unavailable",
    "The dispatcher has failed during a change; it restarts from what it had written before",
  );
}

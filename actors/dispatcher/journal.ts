/**
 * The journal: append, then apply, then answer. What leaves the dispatcher waits for
 * {@linkcode Journal.committed}; the log gathers what is appended meanwhile into one commit.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { DurableLog } from "../runtime/durable_log.ts";
import { encodeRecord, type JournalRecord } from "./records.ts";

/** Where the dispatcher's changes are written. */
export interface Journal {
  append(record: JournalRecord): void;
  /**
   * Settles when all that was appended so far is durable; undefined when it is already.
   *
   * @throws {LeatError} `unavailable` when it cannot be made durable: it must not be relied on.
   */
  committed(): Promise<void> | undefined;
  /** Commits what is left and releases the log. */
  close(): Promise<void>;
}

/** What a {@linkcode LoggedJournal} needs. */
export interface LoggedJournalOptions {
  readonly log: DurableLog;
  /** The whole state as it is now, encoded. */
  readonly snapshot: () => Uint8Array;
  /** The log is replaced by a snapshot when it holds more records than this… */
  readonly recordsMax: number;
  /** …or more bytes of records than this and than the snapshot before took. */
  readonly bytesMax: number;
  /** The log has failed: what was applied since is not to be trusted. */
  readonly onFailure: (error: LeatError) => void;
}

/** A journal in a durable log. */
export class LoggedJournal implements Journal {
  readonly #options: LoggedJournalOptions;
  #appended = 0;
  #durable = 0;
  /** How far the newest request to the log reaches, and its end. */
  #requested = 0;
  #request: Promise<void> | undefined;
  #records: number;
  #bytes: number;
  #snapshotBytes: number;

  /** @param replayed What the log held when it was opened. */
  constructor(
    options: LoggedJournalOptions,
    replayed: { readonly records: number; readonly bytes: number; readonly snapshotBytes: number },
  ) {
    this.#options = options;
    this.#records = replayed.records;
    this.#bytes = replayed.bytes;
    this.#snapshotBytes = replayed.snapshotBytes;
  }

  append(record: JournalRecord): void {
    const bytes = encodeRecord(record);
    this.#options.log.append(bytes);
    this.#appended++;
    this.#records++;
    this.#bytes += bytes.byteLength;
  }

  committed(): Promise<void> | undefined {
    if (this.#durable === this.#appended) return undefined;
    if (this.#requested < this.#appended) {
      this.#requested = this.#appended;
      this.#request = this.#commit(this.#appended);
      // Who waits sees the failure; the dispatcher dies of it even if nobody does.
      this.#request.catch(() => {});
    }
    return this.#request;
  }

  close(): Promise<void> {
    return this.#options.log.close();
  }

  async #commit(upTo: number): Promise<void> {
    try {
      await (this.#isLong ? this.#compact() : this.#options.log.sync());
    } catch (error) {
      const failure = LeatError.from(error, "data_loss");
      this.#options.onFailure(failure);
      throw new LeatError(
        "unavailable",
        `The dispatcher cannot write its journal (${failure.message}); it starts again from what it wrote`,
        { cause: failure },
      );
    }
    this.#durable = Math.max(this.#durable, upTo);
  }

  get #isLong(): boolean {
    const { recordsMax, bytesMax } = this.#options;
    return this.#records > recordsMax || this.#bytes > Math.max(bytesMax, this.#snapshotBytes);
  }

  #compact(): Promise<void> {
    const snapshot = this.#options.snapshot();
    this.#records = 0;
    this.#bytes = 0;
    this.#snapshotBytes = snapshot.byteLength;
    return this.#options.log.compact(snapshot);
  }
}

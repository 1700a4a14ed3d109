/** The durable log in which an actor keeps its state. */

export interface LogContents {
  /** The latest snapshot, if the log was ever compacted. */
  readonly snapshot: Uint8Array | undefined;
  /** The records appended after it, in order. */
  readonly records: readonly Uint8Array[];
}

/**
 * An append-only log of records. A record is durable when a `sync` that began after its `append`
 * has resolved. A crash loses only a suffix of the records that were not durable.
 */
export interface DurableLog {
  /** Everything durable, oldest first. */
  read(): Promise<LogContents>;
  /** Adds a record, which must not be modified any more; durable only after `sync`. */
  append(record: Uint8Array): void;
  /**
   * Makes all appended records durable. Calls may overlap.
   * @throws LeatError `resource_exhausted` when the disk is full: all records are kept in memory,
   *   none is written, and a later `sync` tries again; `data_loss` when the disk fails: what was
   *   written is unknown, and the log is unusable.
   */
  sync(): Promise<void>;
  /** Replaces everything appended so far by a snapshot, atomically. Errors as for `sync`. */
  compact(snapshot: Uint8Array): Promise<void>;
  /** Syncs and releases the log. */
  close(): Promise<void>;
}

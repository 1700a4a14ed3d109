/**
 * Checks what a dispatcher has on disk. Its state must equal the replay of its journal. Each life must
 * start from a state that the previous life wrote and that contains everything that was acknowledged.
 * No split may belong to two tasks.
 */
import type { Journal } from "../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import { decodeSnapshot, encodeSnapshot } from "../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { SplitOwners } from "./splits/split_owners.ts";

/** Watches the decisions of a dispatcher, and which of them a crash has undone. */
export interface RecordWatcher {
  /** Called when a record was appended. It need not be on disk yet. */
  journaled(record: JournalRecord): void;
  /**
   * Called with the latest records, oldest first, if they were not on disk when the dispatcher ended.
   * They are void. The next life does not know them, and they were never acknowledged. Their ids may be
   * assigned again.
   */
  lost(records: readonly JournalRecord[]): void;
}

/** One life of a dispatcher. */
interface Life {
  /** The snapshot of its first state. */
  readonly began: Uint8Array;
  /** Its current state. */
  readonly state: DispatcherState;
  /** The records that it appended, as they would be read from disk. */
  readonly records: JournalRecord[];
  /** How many of these records were reported to be on disk. */
  durable: number;
}

/** Watches the journal of one node's dispatcher, life after life. */
export class JournalChecker {
  readonly found: string[] = [];
  /** Records of earlier lives that are known to be on disk. */
  readonly #kept: JournalRecord[] = [];
  #owners = new SplitOwners();
  #life: Life | undefined;
  readonly #asRead: (record: JournalRecord) => JournalRecord;
  readonly #watcher: RecordWatcher | undefined;

  /**
   * @param asRead Returns a record as it is read back from disk. Default: by the codec.
   * @param watcher Receives every record, in all lives.
   */
  constructor(
    asRead: (record: JournalRecord) => JournalRecord = byCodec,
    watcher?: RecordWatcher,
  ) {
    this.#asRead = asRead;
    this.#watcher = watcher;
  }

  /** The state of the newest life. */
  get state(): DispatcherState | undefined {
    return this.#life?.state;
  }

  /** Starts a life with that state. Returns the journal that it must use. */
  begin(journal: Journal, state: DispatcherState): Journal {
    const began = encodeSnapshot(state.snapshot());
    if (this.#life !== undefined) this.#endLife(this.#life, began);
    const life: Life = { began, state, records: [], durable: 0 };
    this.#life = life;
    return {
      append: (record) => {
        journal.append(record);
        life.records.push(this.#asRead(record));
        const wrong = this.#owners.note(record);
        if (wrong !== undefined) this.found.push(wrong);
        this.#watcher?.journaled(record);
      },
      committed: () => {
        const upTo = life.records.length;
        const wait = journal.committed();
        const note = () => life.durable = Math.max(life.durable, upTo);
        if (wait === undefined) note();
        else wait.then(note, () => {});
        return wait;
      },
      close: () => journal.close(),
    };
  }

  /**
   * Checks at the end that the dispatcher's state equals the replay of its journal. Returns the size of
   * the state's snapshot in bytes.
   */
  end(): number {
    return this.#life === undefined ? 0 : this.#replay(this.#life).bytes;
  }

  /** Ends a life. @param next The snapshot of the state with which the next life has started. */
  #endLife(life: Life, next: Uint8Array): void {
    const { records, durable } = life;
    const { count } = this.#replay(life, next);
    if (count === undefined) {
      this.found.push(
        `a life began with a state that no journal of the one before gives, of which ${durable} ` +
          `of ${records.length} records were said to be on disk`,
      );
      return;
    }
    for (const record of records.slice(0, count)) this.#kept.push(record);
    if (count === records.length) return;
    // Records that were not written are void, so splits belong to their owners on disk.
    this.#owners = new SplitOwners();
    for (const record of this.#kept) this.#owners.note(record);
    this.#watcher?.lost(records.slice(count));
  }

  /**
   * Compares the replay of a life's records with its state at the end.
   * @param next The snapshot of the state with which the next life has started.
   * @returns `count`, the number of records whose replay is `next`, which includes those reported to be
   * on disk; and `bytes`, the size of a snapshot of the life's state.
   */
  #replay(life: Life, next?: Uint8Array): { readonly count?: number; readonly bytes: number } {
    const { began, records, durable } = life;
    const snapshot = encodeSnapshot(life.state.snapshot());
    const bytes = snapshot.length;
    let count: number | undefined;
    try {
      const state = DispatcherState.restore(decodeSnapshot(began));
      for (let done = 0; done <= records.length; done++) {
        if (done > 0) state.apply(records[done - 1]!);
        const isWanted = next !== undefined && count === undefined && done >= durable;
        const isLast = done === records.length;
        if (!isWanted && !isLast) continue;
        const replayed = encodeSnapshot(state.snapshot());
        if (isWanted && isSame(replayed, next)) count = done;
        if (isLast && !isSame(replayed, snapshot)) {
          this.found.push(`after ${done} records the state is not what the journal gives`);
        }
      }
    } catch (error) {
      this.found.push(`its journal cannot be replayed: ${LeatError.from(error).message}`);
    }
    return count === undefined ? { bytes } : { count, bytes };
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function byCodec(record: JournalRecord): JournalRecord {
  return decodeMessage(encodeMessage(record)) as JournalRecord;
}

/**
 * Checks what a dispatcher has on disk. Its state must equal what its journal gives; each life must
 * start from a state that the previous life wrote and that contains everything acknowledged to
 * anybody; and no split may belong to two tasks.
 */
import type { Journal } from "../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import { decodeSnapshot, encodeSnapshot } from "../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { SplitOwners } from "./splits/split_owners.ts";

/** Watches what a dispatcher decides, and which of it a crash has undone. */
export interface RecordWatcher {
  /** The record was appended. It need not be on disk yet. */
  journaled(record: JournalRecord): void;
  /**
   * The latest records, oldest first, were not on disk when the dispatcher ended. They are void: the
   * next life does not know them, and nobody was told of them. Their ids may be given again.
   */
  lost(records: readonly JournalRecord[]): void;
}

/** One life of a dispatcher. */
interface Life {
  /** The snapshot of its first state, and its current state. */
  readonly began: Uint8Array;
  readonly state: DispatcherState;
  /** The records that it appended, as a reader of the disk would get them. */
  readonly records: JournalRecord[];
  /** How many of them were reported to be on disk. */
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
   * @param asRead Returns a record as it is read back from disk; a faster equivalent of the codec.
   * @param watcher Told of every record, in all lives.
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

  /** Starts a life with that state; returns the journal that it must use. */
  begin(journal: Journal, state: DispatcherState): Journal {
    const began = encodeSnapshot(state.snapshot());
    if (this.#life !== undefined) this.#take(this.#life, began);
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
   * At the end: the dispatcher's state must equal what its journal gives. Returns the size of its
   * snapshot in bytes.
   */
  end(): number {
    return this.#life === undefined ? 0 : this.#replay(this.#life).bytes;
  }

  /** Ends the life; the next one has started with this state. */
  #take(life: Life, next: Uint8Array): void {
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
    // Records that were not written are void: splits belong to their owners on disk.
    this.#owners = new SplitOwners();
    for (const record of this.#kept) this.#owners.note(record);
    this.#watcher?.lost(records.slice(count));
  }

  /**
   * Compares the state that a life's records give with its state at the end.
   * @param next The state that the next life started with.
   * @returns The number of records that give `next`, at least those reported to be on disk, and the
   * size of a snapshot of its state in bytes.
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
        const gives = encodeSnapshot(state.snapshot());
        if (isWanted && isSame(gives, next)) count = done;
        if (isLast && !isSame(gives, snapshot)) {
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

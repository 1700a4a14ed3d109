/**
 * Checks what a dispatcher has on disk: the state it works with is what its journal gives, each life
 * goes on from a state that the one before has written, with all in it that anybody was told of, and
 * no split belongs to two tasks.
 *
 * @module
 */
import type { Journal } from "../../actors/dispatcher/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/records.ts";
import { decodeSnapshot, encodeSnapshot } from "../../actors/dispatcher/snapshot.ts";
import { DispatcherState } from "../../actors/dispatcher/state.ts";
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { SplitOwners } from "./split_owners.ts";

/** One life of a dispatcher. */
interface Life {
  /** The state that it began with, and has now. */
  readonly began: Uint8Array;
  readonly state: DispatcherState;
  /** What it has appended, as a reader of the disk would find it. */
  readonly records: JournalRecord[];
  /** So many of them it was told are on disk. */
  durable: number;
}

/** Watches the journal of one node's dispatcher, life after life. */
export class JournalChecker {
  /** What was not as it should be. */
  readonly found: string[] = [];
  /** What is known to be on disk of the lives before. */
  readonly #kept: JournalRecord[] = [];
  #owners = new SplitOwners();
  #life: Life | undefined;
  readonly #asRead: (record: JournalRecord) => JournalRecord;

  /** @param asRead A record as it comes back from the disk: a quicker way to what the codec makes of it. */
  constructor(asRead: (record: JournalRecord) => JournalRecord = byCodec) {
    this.#asRead = asRead;
  }

  /** The state that the newest life works with. */
  get state(): DispatcherState | undefined {
    return this.#life?.state;
  }

  /** A life begins with that state: answers the journal that it is to use. */
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
   * Everything is over: what the dispatcher works with must be what its journal gives. Answers how many
   * bytes a snapshot of it has.
   */
  end(): number {
    return this.#life === undefined ? 0 : this.#replay(this.#life).bytes;
  }

  /** The life is over, and the next one has begun with this state. */
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
    // What was not written has not been: splits belong to whom they belong on disk.
    this.#owners = new SplitOwners();
    for (const record of this.#kept) this.#owners.note(record);
  }

  /**
   * Compares what a life's records give with its state at the end.
   *
   * @param next The state that the next life has begun with.
   * @returns How many of its records give that: those that were said to be on disk at least. And how
   * many bytes a snapshot of its state has.
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

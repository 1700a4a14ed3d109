/**
 * Checks what a dispatcher has on disk: the state it works with is what its journal gives, each life
 * goes on from a state that the one before has written, with all in it that anybody was told of, and
 * no split belongs to two tasks.
 *
 * @module
 */
import type { Journal } from "../../actors/dispatcher/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/records.ts";
import { decodeSnapshot, DispatcherState, encodeSnapshot } from "../../actors/dispatcher/state.ts";
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { SplitOwners } from "./split_owners.ts";

/** One life of a dispatcher. */
interface Life {
  /** The state that it began with, and has now. */
  readonly began: Uint8Array;
  readonly state: DispatcherState;
  /** What it has appended, encoded, as a reader of the disk would find it. */
  readonly records: Uint8Array[];
  /** So many of them it was told are on disk. */
  durable: number;
}

/** Watches the journal of one node's dispatcher, life after life. */
export class JournalChecker {
  /** What was not as it should be. */
  readonly found: string[] = [];
  /** What is known to be on disk of the lives before. */
  readonly #kept: Uint8Array[] = [];
  #owners = new SplitOwners();
  #life: Life | undefined;

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
        const bytes = encodeMessage(record);
        life.records.push(bytes);
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
    return this.#life === undefined ? 0 : this.#expectReplayed(this.#life);
  }

  /** The life is over, and the next one has begun with this state. */
  #take(life: Life, next: Uint8Array): void {
    this.#expectReplayed(life);
    const { records, durable } = life;
    const count = countThatGives(life, next);
    if (count === undefined) {
      this.found.push(
        `a life began with a state that no journal of the one before gives, of which ${durable} ` +
          `of ${records.length} records were said to be on disk`,
      );
      return;
    }
    this.#kept.push(...records.slice(0, count));
    // What was not written has not been: splits belong to whom they belong on disk.
    this.#owners = new SplitOwners();
    for (const bytes of this.#kept) this.#owners.note(decodeRecord(bytes));
  }

  #expectReplayed(life: Life): number {
    const { records, state } = life;
    const snapshot = encodeSnapshot(state.snapshot());
    try {
      const [gives] = replayed(life, records.length);
      if (!isSame(snapshot, gives!)) {
        this.found.push(`after ${records.length} records the state is not what the journal gives`);
      }
    } catch (error) {
      this.found.push(`its journal cannot be replayed: ${LeatError.from(error).message}`);
    }
    return snapshot.length;
  }
}

/** How many records of a life give that state: those that were said to be on disk at least. */
function countThatGives(life: Life, wanted: Uint8Array): number | undefined {
  let count = life.durable;
  try {
    for (const state of replayed(life, count)) {
      if (isSame(state, wanted)) return count;
      count++;
    }
  } catch {
    // That it cannot be replayed was found before.
  }
  return undefined;
}

/** The state after so many records of a life, after one more, and so on to the last. */
function* replayed({ began, records }: Life, from: number): Iterable<Uint8Array> {
  const state = DispatcherState.restore(decodeSnapshot(began));
  for (let count = 0; count <= records.length; count++) {
    if (count > 0) state.apply(decodeRecord(records[count - 1]!));
    if (count >= from) yield encodeSnapshot(state.snapshot());
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function decodeRecord(bytes: Uint8Array): JournalRecord {
  return decodeMessage(bytes.slice()) as JournalRecord;
}

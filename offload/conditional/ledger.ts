/** Which splits of an epoch the training loop has got: the position of the conditional operator. */
import { isCount } from "../../core/count.ts";
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";

const BITS = 8;

export interface DeliveredSplitsState {
  readonly total: number;
  /** One bit per split that was given whole. */
  readonly done: Uint8Array;
  /** Splits that were given in part, with the number of their elements. */
  readonly given: readonly (readonly [sequence: number, elements: number])[];
}

/** Counts the items of each split that the training loop has got, from either side. */
export class DeliveredSplits {
  readonly total: number;
  readonly #done: Uint8Array<ArrayBuffer>;
  readonly #given = new Map<number, number>();
  /** All splits before this one are done. */
  #first = 0;

  constructor(total: number) {
    this.total = total;
    this.#done = new Uint8Array(Math.ceil(total / BITS));
  }

  /** The first split that is not done; `total` if all are. */
  get first(): number {
    while (this.#first < this.total && this.isDone(this.#first)) this.#first++;
    return this.#first;
  }

  /** The splits that are not done, ascending. */
  get missing(): number[] {
    const missing: number[] = [];
    for (let at = this.first; at < this.total; at++) if (!this.isDone(at)) missing.push(at);
    return missing;
  }

  isDone(sequence: number): boolean {
    return (this.#done[sequence >> 3]! & 1 << (sequence & 7)) !== 0;
  }

  /** Notes item `index` of a split. Returns false if the training loop has got it before. */
  note(sequence: number, index: number): boolean {
    if (this.isDone(sequence) || index < (this.#given.get(sequence) ?? 0)) return false;
    this.#given.set(sequence, index + 1);
    return true;
  }

  /** Notes that a split is done. Returns false if it was done before. */
  finish(sequence: number): boolean {
    if (this.isDone(sequence)) return false;
    this.#done[sequence >> 3]! |= 1 << (sequence & 7);
    this.#given.delete(sequence);
    return true;
  }

  save(): DeliveredSplitsState {
    return { total: this.total, done: this.#done.slice(), given: [...this.#given] };
  }

  /** @throws {LeatError} `invalid_argument` for anything that `save()` did not give. */
  static restored(state: unknown): DeliveredSplits {
    if (!isLedgerState(state)) {
      throw new LeatError(
        "invalid_argument",
        "restore: this state holds no position of an offload",
      );
    }
    const ledger = new DeliveredSplits(state.total);
    ledger.#done.set(state.done);
    for (const [sequence, elements] of state.given) ledger.#given.set(sequence, elements);
    return ledger;
  }
}

function isLedgerState(state: unknown): state is DeliveredSplitsState {
  if (!isPlainObject(state)) return false;
  const { total, done, given } = state;
  return isCount(total) && done instanceof Uint8Array &&
    done.length === Math.ceil(total / BITS) && Array.isArray(given) &&
    given.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isCount));
}

/** The items of a split that have arrived at a client, in order. */
import { bytesOfAnswer } from "../../exactly_once/kept_answers.ts";
import type { ElementAnswer, StreamPosition } from "../../worker/protocol.ts";
import type { Arrived } from "../feed.ts";

/** An answer that has a position in the stream. */
export type Placed = Extract<Arrived, { readonly place?: StreamPosition }> & {
  readonly place: StreamPosition;
};

export type Passed = Extract<Placed, { readonly kind: "passed" }>;

export function isPlaced(answer: ElementAnswer): answer is Placed {
  return "place" in answer && answer.place !== undefined;
}

/**
 * Sorts the items of a split, because answers to concurrent requests arrive in any order. A task
 * that produces a split again may repeat items. One `passed` item stands for a run of elements of
 * other consumers. When they are produced again, it may stand for a longer run.
 */
export class ArrivedSplit {
  /** Items in order, not given yet. */
  readonly items: Placed[] = [];
  /** Whether all items of the split have arrived. */
  whole = false;
  /** Items that wait for an earlier one, by index. */
  readonly #early = new Map<number, Placed>();
  #earlyBytes = 0;
  /** All items before this index have arrived. */
  #arrived = 0;
  /** The index of the split's end, once that has arrived. */
  #endsAt = Infinity;
  /** Whether the last added item is the next in order: early items may then follow it. */
  #isNext = false;

  /** How many items wait for an earlier one, and their bytes. */
  get early(): { readonly items: number; readonly bytes: number } {
    return { items: this.#early.size, bytes: this.#earlyBytes };
  }

  /**
   * Whether the split ends before an item of it. Then two tasks have produced it differently, and what
   * is missing may never come.
   */
  contradicts(item: Placed): boolean {
    if (this.whole || this.#hasNoRest(item)) return false;
    const { kind, place: { index } } = item;
    if (kind !== "split_end") return endOf(item) > this.#endsAt;
    if (this.#endsAt < Infinity) return index !== this.#endsAt;
    return index < this.#arrived || this.#early.values().some((early) => endOf(early) > index);
  }

  /** Adds an item. Returns the items that it replaces (none or one); undefined if it is not new. */
  add(answer: Placed): Placed[] | undefined {
    const item = this.#hasNoRest(answer) ? placedAt(answer, this.#arrived) : answer;
    if (endOf(item) <= this.#arrived || this.whole) return undefined;
    const { index } = item.place;
    const known = this.#early.get(index);
    if (known !== undefined && endOf(item) <= endOf(known)) return undefined;
    if (known !== undefined) this.#forget(known);
    if (item.kind === "split_end") this.#endsAt = index;
    this.#isNext = index <= this.#arrived;
    this.#early.set(index, item);
    this.#earlyBytes += bytesOfAnswer(item);
    return known === undefined ? [] : [known];
  }

  /**
   * Moves the items that are next in order to `items`. Returns early items that are not needed,
   * because a longer run covers them.
   */
  settle(): Placed[] {
    if (!this.#isNext) return [];
    for (let next = this.#takeNext(); next !== undefined; next = this.#takeNext()) {
      this.#arrived = endOf(next);
      this.items.push(next);
      this.whole ||= next.kind === "split_end";
    }
    const covered = [...this.#early.values()].filter((item) => endOf(item) <= this.#arrived);
    for (const item of covered) this.#forget(item);
    return covered;
  }

  /**
   * Whether a task that produces the split again cannot repeat what has arrived: the rest never comes.
   * For example, the worker may not read the files any more.
   */
  #hasNoRest(item: Placed): boolean {
    return item.kind === "error" && item.isFinal === true && item.place.index < this.#arrived;
  }

  #forget(item: Placed): void {
    this.#early.delete(item.place.index);
    this.#earlyBytes -= bytesOfAnswer(item);
  }

  /** The item at the next index. A run that is produced again may begin before that index. */
  #takeNext(): Placed | undefined {
    const arrived = this.#arrived;
    const next = this.#early.get(arrived) ??
      this.#early.values().find((item) => item.place.index <= arrived && endOf(item) > arrived);
    if (next !== undefined) this.#forget(next);
    return next;
  }
}

function placedAt(item: Placed, index: number): Placed {
  return { ...item, place: { ...item.place, index } };
}

function endOf(item: Placed): number {
  return item.place.index + (item.kind === "passed" ? (item as Passed).count : 1);
}

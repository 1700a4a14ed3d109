/**
 * Positions of an iteration, saved now and then: a Python program has had fewer elements than were
 * sent to it, so a checkpoint is a position before those and the number of elements after it.
 */
import type { DatasetIterator } from "../../data/dataset_iterator.ts";

/** Larger ones are saved only when the program asks. */
const SNAPSHOT_BYTES_MAX = 64 * 2 ** 10;
/** Saving takes at most one part in so many of the time. */
const TIME_SHARE = 100;
/** Least time between two, in ms. */
const EVERY_MS_MIN = 20;

/** Saves an iterator's position while that is cheap. */
export class Snapshots {
  readonly #iterator: DatasetIterator<unknown>;
  #dueMs = 0;
  #isCheap = true;

  constructor(iterator: DatasetIterator<unknown>) {
    this.#iterator = iterator;
  }

  /** Whether saving the position is worth its time now. */
  get isDue(): boolean {
    return this.#isCheap && performance.now() >= this.#dueMs;
  }

  /** The position now; nothing if it is large, or cannot be saved. */
  async take(): Promise<{ state?: Uint8Array }> {
    if (!this.#isCheap) return {};
    const startedAtMs = performance.now();
    let state: Uint8Array;
    try {
      state = await this.#iterator.save();
    } catch {
      // `save` tells the program why, if it asks.
      this.#isCheap = false;
      return {};
    }
    const endedAtMs = performance.now();
    this.#dueMs = endedAtMs + Math.max(EVERY_MS_MIN, TIME_SHARE * (endedAtMs - startedAtMs));
    this.#isCheap = state.length <= SNAPSHOT_BYTES_MAX;
    return this.#isCheap ? { state } : {};
  }
}

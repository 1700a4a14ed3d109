/**
 * Positions of an iteration, saved at intervals. A Python program has read fewer elements than were
 * sent to it. So a checkpoint is an earlier position and the number of elements to skip from there.
 */
import type { DatasetIterator } from "../../data/dataset_iterator.ts";

/** Larger positions are saved only when the program asks for them. */
const SNAPSHOT_BYTES_MAX = 64 * 2 ** 10;
/** Saving takes at most one part in this many of the time. */
const TIME_SHARE = 100;
const UNSAVED: Snapshot = { isUnsaved: true };
const UNSAVABLE: Snapshot = { isUnsaved: true, isUnsavable: true };
/** The least time between two snapshots, in ms. */
const EVERY_MS_MIN = 20;

/** A position, or a note that it was not saved because that is costly. */
export interface Snapshot {
  readonly state?: Uint8Array;
  readonly isUnsaved?: true;
  /** Whether it was not saved because that failed. */
  readonly isUnsavable?: true;
}

/** Saves an iterator's position while that is cheap. */
export class Snapshots {
  readonly #iterator: DatasetIterator<unknown>;
  #dueMs = 0;
  /** The first save also loads code, so its time is not typical. */
  #isFirst = true;
  #isCheap = true;
  #unsaved = UNSAVED;

  constructor(iterator: DatasetIterator<unknown>) {
    this.#iterator = iterator;
  }

  /** Whether saving the position is worth its time now. */
  get isDue(): boolean {
    return this.#isCheap && performance.now() >= this.#dueMs;
  }

  /** The position now, unless it is large or cannot be saved. */
  async take(): Promise<Snapshot> {
    if (!this.#isCheap) return this.#unsaved;
    const startedAtMs = performance.now();
    let state: Uint8Array;
    try {
      state = await this.#iterator.save();
    } catch {
      // A request to `save` gets the error.
      this.#isCheap = false;
      return this.#unsaved = UNSAVABLE;
    }
    const endedAtMs = performance.now();
    const tookMs = this.#isFirst ? 0 : endedAtMs - startedAtMs;
    this.#isFirst = false;
    this.#dueMs = endedAtMs + Math.max(EVERY_MS_MIN, TIME_SHARE * tookMs);
    this.#isCheap = state.length <= SNAPSHOT_BYTES_MAX;
    return this.#isCheap ? { state } : UNSAVED;
  }
}

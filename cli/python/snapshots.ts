/**
 * Positions of an iteration, saved at intervals. A Python program has read fewer elements than were
 * sent to it. So a checkpoint is an earlier position, with the number of elements to skip from there.
 */
import type { DatasetIterator } from "../../data/dataset_iterator.ts";

/** Limit of a saved position, in bytes. Larger ones are saved only if the program requests them. */
const SNAPSHOT_BYTES_MAX = 64 * 2 ** 10;
/** The time between two snapshots is at least this many times as long as saving takes. */
const PERIOD_FACTOR_MIN = 100;
const UNSAVED: Snapshot = { isUnsaved: true };
/** The least time between two snapshots, in ms. */
const EVERY_MS_MIN = 20;

/** A position, or a note that it was not saved: saving is expensive or useless, or failed. */
export interface Snapshot {
  readonly state?: Uint8Array;
  readonly isUnsaved?: true;
}

/** Saves an iterator's position as long as that is cheap. */
export class Snapshots {
  readonly #iterator: DatasetIterator<unknown>;
  /** Whether skipping elements after a saved position gives a later position. */
  readonly #isOrdered: boolean;
  #dueMs = 0;
  /**
   * Whether no position was saved yet. The first save also loads code, so its time is not typical. The
   * next one is due at once: a position saved before anything was read does not name the splits, so
   * changed files would not be noticed.
   */
  #isFirst = true;
  #isCheap = true;

  constructor(iterator: DatasetIterator<unknown>, isOrdered: boolean) {
    this.#iterator = iterator;
    this.#isOrdered = isOrdered;
  }

  /** Whether saving the position is worth its time now. */
  get isDue(): boolean {
    return this.#isCheap && performance.now() >= this.#dueMs;
  }

  /** Saves the current position, unless it is large, cannot be saved or is no position to skip from. */
  async take(): Promise<Snapshot> {
    if (!this.#isCheap) return UNSAVED;
    const startedAtMs = performance.now();
    let state: Uint8Array;
    try {
      state = await this.#iterator.save();
    } catch {
      // The program gets the error when it requests `save`.
      this.#isCheap = false;
      return UNSAVED;
    }
    const endedAtMs = performance.now();
    const periodMs = Math.max(EVERY_MS_MIN, PERIOD_FACTOR_MIN * (endedAtMs - startedAtMs));
    this.#dueMs = this.#isFirst ? endedAtMs : endedAtMs + periodMs;
    this.#isFirst = false;
    this.#isCheap = this.#isOrdered && state.length <= SNAPSHOT_BYTES_MAX;
    return this.#isCheap ? { state } : UNSAVED;
  }
}

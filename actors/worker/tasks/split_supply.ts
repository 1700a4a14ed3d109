/**
 * The splits of one source that a task was assigned and does not read yet. Usually there are none,
 * so that another worker may get the next split. But if a request takes long compared with the work
 * on a split, the task requests several at once: splits are small, or the dispatcher's disk is slow.
 */
import type { Split } from "../../../data/sharding/splits.ts";
import { SPLITS_AT_ONCE_MAX } from "../../dispatcher/protocol.ts";

/** Requests should take at most this share of the work on the splits that they give. */
const REQUEST_SHARE_MAX = 1 / 4;

/** The weight of the newest duration in a mean of durations. */
const NEWEST_WEIGHT = 0.25;

/** Requests this many splits or fewer; fewer if there are no more. */
type Request = (repetition: number, count: number) => Promise<readonly Split[]>;

/** See the module. Calls of `next()` follow each other. */
export class SplitSupply {
  readonly #nowMs: () => number;
  readonly #request: Request;
  #repetition = 0;
  #assigned: Split[] = [];
  #gaveAtMs: number | undefined;
  /** Means. */
  #workMs: number | undefined;
  #requestMs: number | undefined;

  constructor(nowMs: () => number, request: Request) {
    this.#nowMs = nowMs;
    this.#request = request;
  }

  /** The next split of a repetition; undefined after the last. */
  async next(repetition: number): Promise<Split | undefined> {
    // A runner that was started again first reads repetitions that are over.
    if (repetition < this.#repetition) return (await this.#request(repetition, 1))[0];
    if (repetition > this.#repetition) {
      this.#repetition = repetition;
      this.#assigned = [];
    } else if (this.#gaveAtMs !== undefined) {
      this.#workMs = mean(this.#workMs, this.#nowMs() - this.#gaveAtMs);
    }
    if (this.#assigned.length === 0) {
      const askedAtMs = this.#nowMs();
      this.#assigned = [...await this.#request(repetition, this.#count())];
      this.#requestMs = mean(this.#requestMs, this.#nowMs() - askedAtMs);
    }
    this.#gaveAtMs = this.#nowMs();
    return this.#assigned.shift();
  }

  /** The next split of a repetition that is assigned already. */
  take(repetition: number): Split | undefined {
    return repetition === this.#repetition ? this.#assigned.shift() : undefined;
  }

  #count(): number {
    if (this.#workMs === undefined || !this.#requestMs) return 1;
    const enough = Math.ceil(this.#requestMs / (REQUEST_SHARE_MAX * this.#workMs));
    return Math.max(1, Math.min(SPLITS_AT_ONCE_MAX, enough));
  }
}

function mean(before: number | undefined, newest: number): number {
  return before === undefined ? newest : before + NEWEST_WEIGHT * (newest - before);
}

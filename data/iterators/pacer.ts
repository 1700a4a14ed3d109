/**
 * The pacer keeps a pipeline from holding its thread: loops that may run long without giving an
 * element ask it whether the event loop is due a turn.
 */
import type { Host } from "../host.ts";

/** The longest synchronous stretch before a pipeline gives way, in milliseconds. */
export const SLICE_MS = 4;

/**
 * About how far apart the clock is read, in milliseconds: so far that reading it, which takes some
 * 0.0001, is not felt, and so near that elements which are suddenly a thousand times slower hold the
 * thread for little longer than a slice. Only elements of a few nanoseconds are too quick for it.
 */
const CHECK_MS = 0.005;

/** The clock is read after at most this many calls of `due()`. */
const CHECKS_MAX = 256;

/** The longest `blockLength`. */
const BLOCK_LENGTH_MAX = 128;

/** Counts calls, then reads the clock. Shared by all iterators of one iteration. */
export class Pacer {
  readonly #host: Host;
  /** How many calls there are from one reading of the clock to the next. */
  #budget = 1;
  #left = 1;
  #checkedAtMs: number;
  #startedAtMs: number;

  constructor(host: Host) {
    this.#host = host;
    this.#checkedAtMs = this.#startedAtMs = host.nowMs();
  }

  /** How many elements to deal with at once: 1 while they take long. */
  blockLength = 1;

  /** True when the current synchronous stretch has run longer than `SLICE_MS`. */
  due(): boolean {
    return --this.#left <= 0 && this.#readClock();
  }

  /** Counts what is done beside calls of `due()`. */
  count(rounds: number): void {
    this.#left -= rounds;
  }

  /** Gives the event loop one macrotask and starts a new stretch. */
  async yield(): Promise<void> {
    await this.#host.yield();
    this.#checkedAtMs = this.#startedAtMs = this.#host.nowMs();
    this.#left = this.#budget;
  }

  /** Adapts how often the clock is read to how long the calls in between take. */
  #readClock(): boolean {
    const now = this.#host.nowMs();
    const tookMs = now - this.#checkedAtMs;
    this.#checkedAtMs = now;
    if (tookMs < CHECK_MS) this.#budget = Math.min(this.#budget * 2, CHECKS_MAX);
    else if (tookMs > 4 * CHECK_MS) {
      this.#budget = Math.max(1, Math.floor(this.#budget * CHECK_MS / tookMs));
    }
    this.#left = this.#budget;
    this.blockLength = Math.min(this.#budget, BLOCK_LENGTH_MAX);
    return now - this.#startedAtMs > SLICE_MS;
  }
}

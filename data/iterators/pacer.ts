/**
 * The pacer keeps a pipeline from blocking its thread: long loops without an element ask it whether
 * to yield to the event loop.
 */
import type { Host } from "../host.ts";

/**
 * A pipeline yields once it has run synchronously for this long, in milliseconds. Operators that
 * read ahead delay the training loop by up to that. Yielding takes a microsecond.
 */
const SLICE_MS = 2;

/**
 * The approximate interval between clock reads, in milliseconds. It is long compared with a read,
 * which takes about 0.0001. It is short enough that a slice ends only a few ms late if elements
 * suddenly take a thousand times longer. Elements of a few nanoseconds reach `CHECKS_MAX` first.
 */
const CHECK_MS = 0.005;

/** The clock is read after at most this many calls of `due()`. */
const CHECKS_MAX = 256;

const BLOCK_LENGTH_MAX = 128;

/** Reads the clock once in many calls. Shared by all iterators of one iteration. */
export class Pacer {
  readonly #host: Host;
  /** The number of calls between two clock reads. */
  #budget = 1;
  #left = 1;
  #checkedAtMs: number;
  #startedAtMs: number;
  /** Whether the event loop has run since the consumer's last call. */
  #hasRun = true;

  constructor(host: Host) {
    this.#host = host;
    this.#checkedAtMs = this.#startedAtMs = host.nowMs();
  }

  /** How many elements to process at once: 1 while they take long. */
  blockLength = 1;

  /** True when the current synchronous run exceeds `SLICE_MS`. */
  due(): boolean {
    return --this.#left <= 0 && this.#readClock();
  }

  /**
   * Like `due()`, for a call of the consumer. If the event loop has run since the consumer's last
   * call, as it does while a step runs on an accelerator, a new slice begins. Yielding again would
   * make the training loop wait for operators that read ahead.
   */
  dueAtCall(): boolean {
    const isDue = this.due();
    if (!this.#hasRun) return isDue;
    this.#hasRun = false;
    this.#host.yield().then(() => this.#hasRun = true);
    this.#checkedAtMs = this.#startedAtMs = this.#host.nowMs();
    return false;
  }

  /** Counts as `rounds` calls of `due()`. */
  count(rounds: number): void {
    this.#left -= rounds;
  }

  /** Yields one macrotask to the event loop and starts a new slice. */
  async yield(): Promise<void> {
    await this.#host.yield();
    this.#checkedAtMs = this.#startedAtMs = this.#host.nowMs();
    this.#left = this.#budget;
  }

  /** Adapts the interval of clock reads to the duration of calls. */
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

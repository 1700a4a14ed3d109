/** Measures what the training loop waits for, in windows of some elements. */
import type { StepWindow } from "../adapt.ts";

/** A window has at least this many elements, and lasts at least this long. */
const ELEMENTS_MIN = 25;
const WINDOW_MS_MIN = 200;

/** Sums the time waited for each side. */
export class WaitMeter {
  readonly #nowMs: () => number;
  #fromMs: number;
  #elements = 0;
  #waitMs = { local: 0, remote: 0 };

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#fromMs = nowMs();
  }

  /** Waits for `pending` and counts the time for a side. */
  async during<T>(side: "local" | "remote", pending: Promise<T>): Promise<T> {
    const fromMs = this.#nowMs();
    try {
      return await pending;
    } finally {
      this.#waitMs[side] += this.#nowMs() - fromMs;
    }
  }

  /** Counts an element. Returns the window that it ends, if any; the next one begins. */
  count(): StepWindow | undefined {
    const elapsedMs = this.#nowMs() - this.#fromMs;
    if (++this.#elements < ELEMENTS_MIN || elapsedMs < WINDOW_MS_MIN) return undefined;
    const window = { elements: this.#elements, elapsedMs, waitMs: this.#waitMs };
    this.#fromMs += elapsedMs;
    this.#elements = 0;
    this.#waitMs = { local: 0, remote: 0 };
    return window;
  }
}

/** Backpressure by two marks: a link that reaches the high one is full until it falls to the low one. */
import type { LinkLimits } from "./limits.ts";

/** Counts the bytes that a link holds, and resumes waiting senders when there is space. */
export class WaterMarks {
  readonly #limits: LinkLimits;
  readonly #waiting: (() => void)[] = [];
  #bytes = 0;
  #full = false;
  #released = false;

  constructor(limits: LinkLimits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= this.#limits.highWaterBytes) this.#full = true;
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
    if (this.#full && this.#bytes <= this.#limits.lowWaterBytes) {
      this.#full = false;
      this.#wake();
    }
  }

  /** Resolves when there is space, at once if there is. */
  ready(): Promise<void> {
    if (!this.#full || this.#released) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resets the count and resumes all senders: the link is closed. */
  release(): void {
    this.#released = true;
    this.#bytes = 0;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

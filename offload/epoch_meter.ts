/** Counts what an epoch, or a period of one, gives. */
import type { Pulled } from "../data/iterator.ts";
import { bytesOfElement } from "./figures.ts";

export interface EpochFigures {
  readonly batches: number;
  readonly bytes: number;
  readonly elapsedMs: number;
  /** How long training waited for batches. */
  readonly waitMs: number;
}

/** Counts what an epoch gives. */
export class EpochMeter {
  readonly #nowMs: () => number;
  readonly #fromMs: number;
  #batches = 0;
  #bytes = 0;
  #waitMs = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#fromMs = nowMs();
  }

  count(batch: unknown): void {
    this.#batches++;
    this.#bytes += bytesOfElement(batch);
  }

  /** Counts how long `next` takes, as time that training waits. */
  during(next: () => Pulled<unknown>): Pulled<unknown> {
    const fromMs = this.#nowMs();
    const waited = (given: unknown) => {
      this.#waitMs += this.#nowMs() - fromMs;
      return given;
    };
    const given = next();
    return given instanceof Promise ? given.then(waited) : waited(given);
  }

  read(): EpochFigures {
    const elapsedMs = this.#nowMs() - this.#fromMs;
    return { batches: this.#batches, bytes: this.#bytes, elapsedMs, waitMs: this.#waitMs };
  }
}

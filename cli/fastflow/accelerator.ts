/** A simulated accelerator, which takes batches as fast as its steps allow, and no faster. */
import { setTimeout as sleep } from "node:timers/promises";

/**
 * How far the training loop runs ahead of the accelerator, in ms, as it does where steps are put
 * into a queue. It covers timers, which may be late by a ms: else steps of a ms would take two.
 */
const AHEAD_MS = 4;

export class Accelerator {
  readonly #stepMs: number;
  /** When it will have made all steps so far. */
  #freeAtMs = 0;

  constructor(stepMs: number) {
    this.#stepMs = stepMs;
  }

  /** Begins a step once those before have ended. Returns when the next batch may come. */
  async step(): Promise<void> {
    const nowMs = performance.now();
    this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + this.#stepMs;
    const waitMs = this.#freeAtMs - nowMs - AHEAD_MS;
    if (waitMs > 0) await sleep(waitMs);
  }
}

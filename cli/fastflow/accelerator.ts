/** A simulated accelerator, which takes batches as fast as its steps allow, and no faster. */
import { setTimeout as sleep } from "node:timers/promises";

/**
 * How far the training loop runs ahead of the accelerator, in ms, as with an accelerator that queues
 * steps. Timers may be late by 1 ms: without this, a step of 1 ms would take 2.
 */
const AHEAD_MS = 4;

export class Accelerator {
  readonly #stepMs: number;
  /** When all steps so far will have ended. */
  #freeAtMs = 0;

  constructor(stepMs: number) {
    this.#stepMs = stepMs;
  }

  /** Adds a step. Resolves when the training loop may request the next batch. */
  async step(): Promise<void> {
    const nowMs = performance.now();
    this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + this.#stepMs;
    const waitMs = this.#freeAtMs - nowMs - AHEAD_MS;
    if (waitMs > 0) await sleep(waitMs);
  }
}

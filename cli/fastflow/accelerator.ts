/** A simulated accelerator, which takes batches no faster than its step time allows. */
import { setTimeout as sleep } from "node:timers/promises";

/**
 * How far the training loop may run ahead of the accelerator, in ms, as if the accelerator queued
 * steps. Timers may fire 1 ms late, so without this a step of 1 ms would take 2.
 */
const AHEAD_MS = 4;

export class Accelerator {
  readonly #stepMs: number;
  /** When the last queued step ends. */
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

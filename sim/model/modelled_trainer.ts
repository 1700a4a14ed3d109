/** A modelled trainer, which takes batches. A training step is virtual time. */
import type { Feed } from "../../actors/client/feed.ts";
import { LeatError } from "../../core/error.ts";
import type { SimHost } from "../host.ts";

export interface TrainerCounts {
  batches: number;
  /** Time spent waiting for batches, in ms. */
  waitedMs: number;
}

export class ModelledTrainer {
  readonly #host: SimHost;
  readonly #feed: Feed;
  readonly #stepMs: number;
  #batches = 0;
  #waitedMs = 0;
  #waitingSinceMs: number | undefined;
  #firstBatchMs: number | undefined;

  constructor(host: SimHost, feed: Feed, stepMs: number) {
    this.#host = host;
    this.#feed = feed;
    this.#stepMs = stepMs;
  }

  /** When it received its first batch, in ms of its host's time; undefined before it. */
  get firstBatchMs(): number | undefined {
    return this.#firstBatchMs;
  }

  /** Its counts so far, including a wait in progress. */
  get counts(): Readonly<TrainerCounts> {
    const waitingMs = this.#waitingSinceMs === undefined
      ? 0
      : this.#host.nowMs() - this.#waitingSinceMs;
    return { batches: this.#batches, waitedMs: this.#waitedMs + waitingMs };
  }

  /** Trains for ever. @throws LeatError when a batch fails, or the stream ends. */
  async train(): Promise<never> {
    const host = this.#host;
    for (;;) {
      this.#waitingSinceMs = host.nowMs();
      const fed = await this.#feed.take();
      if (fed.kind === "error") throw LeatError.fromWire(fed.error);
      if (fed.kind === "end") throw new LeatError("internal", "A stream without end has ended");
      if (fed.kind !== "element") continue;
      const nowMs = host.nowMs();
      this.#waitedMs += nowMs - this.#waitingSinceMs;
      this.#waitingSinceMs = undefined;
      this.#batches++;
      this.#firstBatchMs ??= nowMs;
      await host.sleep(this.#stepMs);
    }
  }
}

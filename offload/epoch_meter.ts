/** Counts what an epoch, or a period of one, gives. */
import type { Pulled } from "../data/iterator.ts";
import { bytesOfElement } from "./figures.ts";

/** Training has paused if it takes no batch for this time and for this many mean steps. */
const PAUSE_MS = 1_000;
const PAUSE_STEPS = 20;

export interface EpochFigures {
  readonly batches: number;
  readonly bytes: number;
  /** Without pauses of training, such as an evaluation or a first step that compiles the model. */
  readonly elapsedMs: number;
  /** How long training waited for batches. */
  readonly waitMs: number;
}

/** Measures an epoch, or a period of one. */
export class EpochMeter {
  readonly #nowMs: () => number;
  readonly #fromMs: number;
  #batches = 0;
  #bytes = 0;
  #waitMs = 0;
  #pausedMs = 0;
  #hasStepped = false;
  /** The time of the first step of all, if it may have compiled the model. */
  #firstMs = 0;
  /** The number of the other steps and their time, for the mean. */
  #steps = 0;
  #stepsMs = 0;
  #givenAtMs: number | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#fromMs = nowMs();
  }

  /** The meter of the next period, which begins when a batch is given. It keeps the mean step. */
  next(): EpochMeter {
    const next = new EpochMeter(this.#nowMs);
    next.#givenAtMs = next.#fromMs;
    next.#hasStepped = this.#hasStepped;
    next.#steps = this.#steps;
    next.#stepsMs = this.#stepsMs;
    return next;
  }

  count(batch: unknown): void {
    this.#batches++;
    this.#bytes += bytesOfElement(batch);
  }

  /** Calls `next`, and counts its time as time that training waits. */
  during(next: () => Pulled<unknown>): Pulled<unknown> {
    const fromMs = this.#nowMs();
    if (this.#givenAtMs !== undefined) this.#stepped(fromMs - this.#givenAtMs);
    const waited = (given: unknown) => {
      const nowMs = this.#givenAtMs = this.#nowMs();
      this.#waitMs += nowMs - fromMs;
      return given;
    };
    const given = next();
    return given instanceof Promise ? given.then(waited) : waited(given);
  }

  read(): EpochFigures {
    const pausedMs = this.#pausedMs + (this.#isPause(this.#firstMs) ? this.#firstMs : 0);
    const elapsedMs = this.#nowMs() - this.#fromMs - pausedMs;
    return { batches: this.#batches, bytes: this.#bytes, elapsedMs, waitMs: this.#waitMs };
  }

  /** Takes the time between two requests of training: a step, or a pause. */
  #stepped(ms: number): void {
    const isFirst = !this.#hasStepped;
    this.#hasStepped = true;
    // The first step may have compiled the model. The steps after it show whether it did.
    if (isFirst && ms > PAUSE_MS) {
      this.#firstMs = ms;
    } else if (this.#isPause(ms)) {
      this.#pausedMs += ms;
    } else {
      this.#steps++;
      this.#stepsMs += ms;
    }
  }

  #isPause(ms: number): boolean {
    return this.#steps > 0 && ms > PAUSE_MS && ms * this.#steps > PAUSE_STEPS * this.#stepsMs;
  }
}

/**
 * One life (incarnation) of a simulated node, from its start to its crash or stop. Everything that
 * happens on a node is an event of its life. So when the life has ended, no timer fires, no disk
 * completes a write, no message arrives, and its promises never settle.
 */
import type { ScheduledEvent, Scheduler } from "./scheduler.ts";

export class Life {
  readonly node: string;
  /** The number of this life among those of the node, from 1. */
  readonly number: number;
  readonly #scheduler: Scheduler;
  readonly #ended = Promise.withResolvers<void>();
  #alive = true;
  #pausedUntilUs = 0;
  #turnMs: (() => number) | undefined;

  constructor(scheduler: Scheduler, node: string, number: number) {
    this.#scheduler = scheduler;
    this.node = node;
    this.number = number;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Resolves when the life has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Events of the node wait until this time, as if its thread were busy. */
  get pausedUntilUs(): number {
    return this.#pausedUntilUs;
  }

  end(): void {
    this.#alive = false;
    this.#ended.resolve();
  }

  pause(durationMs: number): void {
    const untilUs = this.#scheduler.nowUs + Math.ceil(durationMs * 1_000);
    this.#pausedUntilUs = Math.max(this.#pausedUntilUs, untilUs);
  }

  /** Makes each event take the time that `turnMs` draws, which delays the next. `undefined` ends that. */
  slow(turnMs: (() => number) | undefined): void {
    this.#turnMs = turnMs;
  }

  /** Makes the node busy for the time of an event that happens now. */
  spend(): void {
    if (this.#turnMs !== undefined) this.pause(this.#turnMs());
  }

  /** Schedules an event that happens only if this life still lasts. */
  at(timeUs: number, what: string, run: () => void): ScheduledEvent {
    return this.#scheduler.at(timeUs, what, run, this);
  }

  after(delayMs: number, what: string, run: () => void): ScheduledEvent {
    return this.#scheduler.at(this.#scheduler.nowUs + delayMs * 1_000, what, run, this);
  }
}

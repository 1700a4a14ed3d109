/**
 * One life of a simulated node, from its start to its crash. Everything that happens on a node is an
 * event of its life, so that ending the life silences it: no timer fires, no disk answers, no message
 * arrives, and what its promises wait for never comes.
 *
 * @module
 */
import type { ScheduledEvent, Scheduler } from "./scheduler.ts";

/** See the module. */
export class Life {
  readonly node: string;
  /** Counts the lives of the node from 1. */
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

  /** Until when the node does nothing, as if its thread were busy; what happens meanwhile waits. */
  get pausedUntilUs(): number {
    return this.#pausedUntilUs;
  }

  /** Ends the life. */
  end(): void {
    this.#alive = false;
    this.#ended.resolve();
  }

  pause(durationMs: number): void {
    const untilUs = this.#scheduler.nowUs + Math.ceil(durationMs * 1_000);
    this.#pausedUntilUs = Math.max(this.#pausedUntilUs, untilUs);
  }

  /** From now on each event takes so much of the node's time, and the next one waits; left out: none. */
  slow(turnMs: (() => number) | undefined): void {
    this.#turnMs = turnMs;
  }

  /** An event of this life happens now. */
  spend(): void {
    if (this.#turnMs !== undefined) this.pause(this.#turnMs());
  }

  /** Schedules an event that happens only if this life lasts till then. */
  at(timeUs: number, what: string, run: () => void): ScheduledEvent {
    return this.#scheduler.at(timeUs, what, run, this);
  }

  after(delayMs: number, what: string, run: () => void): ScheduledEvent {
    return this.#scheduler.at(this.#scheduler.nowUs + delayMs * 1_000, what, run, this);
  }
}

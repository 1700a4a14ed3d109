/**
 * Kills processes of a cluster at random, and starts them again.
 *
 * @module
 */
import { RandomStream } from "../../core/philox.ts";
import type { ChildProcess } from "../cluster/child_process.ts";
import type { Deployment } from "../cluster/deployment.ts";

/** How long it waits before the next kill at most, in ms. */
const BETWEEN_MAX_MS = 900;
/** How long what was killed stays away at most, in ms: sometimes longer than it takes to be missed. */
const DOWN_MAX_MS = 3_000;
/** Of so many kills one is the dispatcher's. */
const DISPATCHER_EVERY = 10;

/** Whom to kill. */
export interface KillerOptions {
  readonly seed: number;
  /** After so many it is over. */
  readonly kills: number;
  /** Whether the dispatcher is among the victims. */
  readonly dispatcher: boolean;
  readonly onKill: (name: string, kills: number) => void;
}

/** Kills from `start()` to `stop()`, again and again. */
export class Killer {
  readonly #deployment: Deployment;
  readonly #options: KillerOptions;
  readonly #luck: RandomStream;
  readonly #restarts = new Set<Promise<unknown>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #kills = 0;

  constructor(deployment: Deployment, options: KillerOptions) {
    this.#deployment = deployment;
    this.#options = options;
    this.#luck = new RandomStream(BigInt(options.seed), ["chaos"]);
  }

  get kills(): number {
    return this.#kills;
  }

  get isOver(): boolean {
    return this.#kills >= this.#options.kills;
  }

  start(): void {
    if (this.isOver) return;
    this.#timer = setTimeout(() => {
      this.#kill();
      this.start();
    }, this.#luck.next() * BETWEEN_MAX_MS);
  }

  /** Kills nobody any more; resolves when all who were killed are back. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all(this.#restarts);
  }

  #kill(): void {
    const { workers, dispatcher } = this.#deployment;
    const victim = this.#options.dispatcher && this.#luck.int(DISPATCHER_EVERY) === 0
      ? dispatcher
      : workers[this.#luck.int(workers.length)]!;
    const downMs = victim === dispatcher ? 0 : this.#luck.next() * DOWN_MAX_MS;
    // It may be down from the last time.
    if (victim.end !== undefined) return;
    victim.kill();
    this.#options.onKill(victim.name, ++this.#kills);
    const restart = this.#restart(victim, downMs).finally(() => this.#restarts.delete(restart));
    this.#restarts.add(restart);
  }

  async #restart(victim: ChildProcess, downMs: number): Promise<void> {
    await victim.ended;
    await new Promise((resolve) => setTimeout(resolve, downMs));
    await this.#deployment.restart(victim);
  }
}

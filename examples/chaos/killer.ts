/**
 * Kills processes of a cluster at random, and starts them again.
 *
 * @module
 */
import { RandomStream } from "../../core/philox.ts";
import type { ChildProcess } from "../cluster/child_process.ts";
import type { Deployment } from "../cluster/deployment.ts";

/** Who is killed. */
export type Role = "worker" | "dispatcher";

/** Whom to kill, and when. */
export interface KillerOptions {
  readonly seed: number;
  /** How long it waits before the next kill at most, in ms. */
  readonly betweenMaxMs: number;
  /** How long a worker that was killed stays away at most, in ms. */
  readonly downMaxMs: number;
  /** Of so many kills one is the dispatcher's, on average; 0: none. */
  readonly dispatcherEvery: number;
  readonly onKill: (name: string, role: Role) => void;
}

/** Kills in one run after the other; times and victims are drawn from the seed. */
export class Killer {
  readonly kills: Record<Role, number> = { worker: 0, dispatcher: 0 };
  readonly #deployment: Deployment;
  readonly #options: KillerOptions;
  readonly #luck: RandomStream;
  readonly #restarts = new Set<Promise<unknown>>();
  /** Of the run that goes on: how many there are to be, and have been. */
  #wanted = 0;
  #done = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: { readonly kills: number; readonly resolve: () => void }[] = [];

  constructor(deployment: Deployment, options: KillerOptions) {
    this.#deployment = deployment;
    this.#options = options;
    this.#luck = new RandomStream(BigInt(options.seed), ["chaos"]);
  }

  get total(): number {
    return this.kills.worker + this.kills.dispatcher;
  }

  /** How many processes are down now. */
  get down(): number {
    const { workers, dispatcher } = this.#deployment;
    return [...workers, dispatcher].filter(({ end }) => end !== undefined).length;
  }

  /** Begins to kill, so many times. */
  start(kills: number): void {
    [this.#wanted, this.#done] = [kills, 0];
    this.#plan();
  }

  /**
   * Resolves once a reader may go on that is so far, 0 to 1: it is held back until the kills of this
   * run have come as far, so that all of them hit a job that goes on.
   */
  keepUp(share: number): Promise<void> {
    const kills = Math.min(this.#wanted, Math.floor(share * (this.#wanted + 1)));
    if (this.#done >= kills) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ kills, resolve }));
  }

  /** Kills nobody any more; resolves when all who were killed are back. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all(this.#restarts);
  }

  #plan(): void {
    if (this.#done >= this.#wanted) return;
    this.#timer = setTimeout(() => {
      this.#kill();
      this.#plan();
    }, this.#luck.next() * this.#options.betweenMaxMs);
  }

  #kill(): void {
    const { dispatcherEvery, downMaxMs, onKill } = this.#options;
    const { workers, dispatcher } = this.#deployment;
    const isDispatcher = dispatcherEvery > 0 && this.#luck.int(dispatcherEvery) === 0;
    const victim = isDispatcher ? dispatcher : workers[this.#luck.int(workers.length)]!;
    const downMs = isDispatcher ? 0 : this.#luck.next() * downMaxMs;
    // It may be down from the last time: then another is drawn, later.
    if (victim.end !== undefined) return;
    const role: Role = isDispatcher ? "dispatcher" : "worker";
    victim.kill();
    this.kills[role]++;
    this.#done++;
    onKill(victim.name, role);
    const isReached = ({ kills }: { kills: number }) => this.#done >= kills;
    for (const { resolve } of this.#waiting.filter(isReached)) resolve();
    this.#waiting = this.#waiting.filter((one) => !isReached(one));
    const restart = this.#restart(victim, downMs).finally(() => this.#restarts.delete(restart));
    this.#restarts.add(restart);
  }

  async #restart(victim: ChildProcess, downMs: number): Promise<void> {
    await victim.ended;
    await new Promise((resolve) => setTimeout(resolve, downMs));
    await this.#deployment.restart(victim);
  }
}

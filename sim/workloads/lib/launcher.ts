/** The launcher of the training programs of a simulated DETERMINISTIC stream, which restarts them all. */
import type { SimCluster } from "../../engine/cluster.ts";
import type { SimRandom } from "../../engine/random.ts";
import type { Consumer } from "./consumers_plan.ts";

/** Probability that the launcher first starts one consumer alone, in vain. */
const STRAY_PROBABILITY = 0.5;

interface LauncherOptions {
  /** Starts one consumer alone, in vain. Undefined: never. */
  readonly startsInVain: ((rng: SimRandom) => Promise<void>) | undefined;
}

/** Counts the starts of a run, and tells its consumers to restart. */
export class Launcher {
  readonly #cluster: SimCluster;
  readonly #consumers: readonly Consumer[];
  readonly #options: LauncherOptions;
  #starts = 1;
  #launch = Promise.resolve();
  /** Resolves when all programs have to restart. Each start has a new promise. */
  #restart = Promise.withResolvers<"restarted">();

  constructor(cluster: SimCluster, consumers: readonly Consumer[], options: LauncherOptions) {
    this.#cluster = cluster;
    this.#consumers = consumers;
    this.#options = options;
  }

  /** Resolves when the programs of the current start have to restart. Each start has a new promise. */
  get restart(): Promise<"restarted"> {
    return this.#restart.promise;
  }

  /** Names the current start. */
  get runId(): string {
    return `start ${this.#starts}`;
  }

  /** Resolves when no start of all programs is in progress. */
  async launched(): Promise<void> {
    for (let launch; launch !== this.#launch;) await (launch = this.#launch);
  }

  /**
   * Restarts all consumers from the last step that all have saved, or from the beginning. Later
   * checkpoints are dropped.
   */
  restartAll(): void {
    const all = this.#consumers.map(({ saved }) => new Set(saved.keys()));
    const step = Math.max(0, ...all.reduce((common, other) => common.intersection(other)));
    for (const { saved } of this.#consumers) {
      for (const position of saved.keys()) if (position > step) saved.delete(position);
    }
    this.#cluster.counters.tally("consumers_restarted");
    this.#restart.resolve("restarted");
    this.#restart = Promise.withResolvers();
    this.#launch = this.#launch.then(() => this.#start());
  }

  /** Starts all programs. In some runs, it first starts one of them alone, in vain. */
  async #start(): Promise<void> {
    const rng = this.#cluster.random.fork(`start ${++this.#starts}`);
    const { startsInVain } = this.#options;
    if (startsInVain === undefined || !rng.chance(STRAY_PROBABILITY)) return;
    await startsInVain(rng);
    this.#starts++;
  }
}

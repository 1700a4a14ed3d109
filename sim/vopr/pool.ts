/** A pool of threads, fed from one sequence of runs. */
import { Lane } from "./lane.ts";
import { runSeed, type SeedOutcome, type SeedRun } from "./seed_run.ts";

/** Runs queued per thread, so that it has its next run while a result is in transit. */
const RUNS_PER_THREAD = 2;

/** How to set up a {@linkcode SeedPool}. */
interface SeedPoolOptions {
  /** Number of threads. With 0, seeds run in the current thread, where no time limit applies. */
  readonly jobs: number;
  /** See {@linkcode Lane}. */
  readonly seedTimeoutMs: number;
}

/** Runs seeds in parallel. */
export class SeedPool implements Disposable {
  readonly #lanes: Lane[];
  #isStopped = false;
  #next = 0;

  constructor({ jobs, seedTimeoutMs }: SeedPoolOptions) {
    this.#lanes = Array.from({ length: jobs }, () => new Lane({ seedTimeoutMs }));
  }

  run(run: SeedRun): Promise<SeedOutcome> {
    if (this.#lanes.length === 0) return runSeed(run);
    return this.#lanes[this.#next++ % this.#lanes.length]!.run(run);
  }

  /**
   * Runs all seeds, and reports each result when it is known, in any order.
   * @param onOutcome Receives a result. Returns true to start no more of these runs.
   */
  async runAll(
    runs: Iterable<SeedRun>,
    onOutcome: (outcome: SeedOutcome) => boolean | void,
  ): Promise<void> {
    const iterator = runs[Symbol.iterator]();
    let isEnough = false;
    const drain = async (run: (run: SeedRun) => Promise<SeedOutcome>) => {
      while (!this.#isStopped && !isEnough) {
        const { done, value } = iterator.next();
        if (done) return;
        if (onOutcome(await run(value)) === true) isEnough = true;
      }
    };
    if (this.#lanes.length === 0) return await drain(runSeed);
    await Promise.all(
      this.#lanes.flatMap((lane) =>
        Array.from({ length: RUNS_PER_THREAD }, () => drain((run) => lane.run(run)))
      ),
    );
  }

  /** Maximum number of parallel runs. */
  get width(): number {
    return Math.max(1, this.#lanes.length);
  }

  /** Starts no more runs. `runAll` then resolves when the current runs have ended. */
  stop(): void {
    this.#isStopped = true;
  }

  [Symbol.dispose](): void {
    for (const lane of this.#lanes) lane[Symbol.dispose]();
  }
}

/**
 * Runners that take their time: each element of a pipeline costs virtual time, one after the other, as
 * on a host with one core for it.
 *
 * @module
 */
import type {
  Runner,
  RunnerFactory,
  RunnerSettings,
  RunnerSplits,
} from "../actors/worker/runner.ts";
import { PipelineRunners } from "../actors/worker/pipeline_runner.ts";
import type { SplitTable } from "../data/splits.ts";
import type { SimHost } from "./host.ts";
import type { SimRandom } from "./random.ts";

/** The runners of a simulated host, where each element costs up to so much. */
export function pacedBy(workMaxMs: number, luck: SimRandom): (host: SimHost) => RunnerFactory {
  return (host) => {
    const runners = new PipelineRunners(host);
    if (workMaxMs === 0) return runners;
    return new PacedRunners(runners, () => host.sleep(luck.between(0, workMaxMs)));
  };
}

/** See the module. */
export class PacedRunners implements RunnerFactory {
  readonly #runners: RunnerFactory;
  readonly #work: () => Promise<void>;

  /** @param work Passes the time that an element costs. */
  constructor(runners: RunnerFactory, work: () => Promise<void>) {
    this.#runners = runners;
    this.#work = work;
  }

  start(settings: RunnerSettings, splits: RunnerSplits): Runner {
    const runner = this.#runners.start(settings, splits);
    let last: Promise<unknown> = Promise.resolve();
    return {
      get bytesRead() {
        return runner.bytesRead;
      },
      next: (only, wish) => {
        const before = last;
        const made = runner.next(only, wish);
        const paced = before.then(() => made).then(async (outcome) => {
          if (outcome.kind === "element") await this.#work();
          return outcome;
        });
        last = paced.catch(() => {});
        return paced;
      },
      dispose: () => runner.dispose(),
    };
  }

  listSplits(graph: Uint8Array, signal?: AbortSignal): Promise<SplitTable> {
    return this.#runners.listSplits(graph, signal);
  }

  close(): Promise<void> {
    return this.#runners.close();
  }
}

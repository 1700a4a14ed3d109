/** Wraps each step of runners. */
import type {
  Runner,
  RunnerCaller,
  RunnerFactory,
  RunnerSettings,
  RunnerSplits,
} from "../../actors/worker/runner/runner.ts";
import type { SplitBounds } from "../../data/sharding/split_table.ts";

type Step = Runner["next"];

/** Wraps the steps of other runners. */
export class RunnersAround implements RunnerFactory {
  readonly #runners: RunnerFactory;
  readonly #around: (next: Step, settings: RunnerSettings) => Step;

  /** @param around Wraps the steps of a runner. It is called once for each runner. */
  constructor(runners: RunnerFactory, around: (next: Step, settings: RunnerSettings) => Step) {
    this.#runners = runners;
    this.#around = around;
  }

  start(settings: RunnerSettings, splits: RunnerSplits, caller?: RunnerCaller): Runner {
    const runner = this.#runners.start(settings, splits, caller);
    return {
      get bytesRead() {
        return runner.bytesRead;
      },
      next: this.#around((ownStep, wish) => runner.next(ownStep, wish), settings),
      dispose: () => runner.dispose(),
    };
  }

  listSplits(
    graph: Uint8Array,
    signal?: AbortSignal,
    caller?: RunnerCaller,
  ): Promise<SplitBounds> {
    return this.#runners.listSplits(graph, signal, caller);
  }

  close(): Promise<void> {
    return this.#runners.close();
  }
}

/** Wraps runners to report each element when it is made. */
export function watchedRunners(
  runners: RunnerFactory,
  onMade: (frame: Uint8Array) => void,
): RunnerFactory {
  return new RunnersAround(runners, (next) => (ownStep, wish) => {
    const step = next(ownStep, wish);
    step.then((outcome) => {
      if (outcome.kind === "element") onMade(outcome.frame);
    }, () => {});
    return step;
  });
}

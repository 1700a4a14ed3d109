/** Wraps the steps of runners, and what lists splits. */
import type { WireError } from "../../core/error.ts";
import type {
  Runner,
  RunnerCaller,
  RunnerFactory,
  RunnerSettings,
  RunnerSplits,
} from "../../actors/worker/runner/runner.ts";

type Step = Runner["next"];
type ListSplits = RunnerFactory["listSplits"];

/** Wraps the steps and the listings of other runners. */
export class RunnersAround implements RunnerFactory {
  readonly #runners: RunnerFactory;
  readonly #around: (next: Step, settings: RunnerSettings) => Step;

  /** Lists with a runner that does nothing else. */
  readonly listSplits: ListSplits;

  /**
   * @param around Wraps the steps of a runner. It is called once for each runner.
   * @param listing Wraps the listings.
   */
  constructor(
    runners: RunnerFactory,
    around: (next: Step, settings: RunnerSettings) => Step,
    listing: (listSplits: ListSplits) => ListSplits = (listSplits) => listSplits,
  ) {
    this.#runners = runners;
    this.#around = around;
    this.listSplits = listing((...of) => runners.listSplits(...of));
  }

  start(settings: RunnerSettings, splits: RunnerSplits, caller?: RunnerCaller): Runner {
    const runner = this.#runners.start(settings, splits, caller);
    return {
      get bytesRead() {
        return runner.bytesRead;
      },
      recycle: (buffer) => runner.recycle?.(buffer),
      next: this.#around((ownStep, wish) => runner.next(ownStep, wish), settings),
      dispose: () => runner.dispose(),
    };
  }

  close(): Promise<void> {
    return this.#runners.close();
  }
}

/** Wraps runners to report each element when it is made, and each that fails. */
export function watchedRunners(
  runners: RunnerFactory,
  onMade: (frame: Uint8Array) => void,
  onFailed: (error: WireError) => void = () => {},
): RunnerFactory {
  return new RunnersAround(runners, (next) => (ownStep, wish) => {
    const step = next(ownStep, wish);
    step.then((outcome) => {
      if (outcome.kind === "element") onMade(outcome.frame);
      else if (outcome.kind === "error") onFailed(outcome.error);
    }, () => {});
    return step;
  });
}

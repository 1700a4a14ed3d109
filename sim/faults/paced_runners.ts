/**
 * Runners whose elements take virtual time, one after the other, as on one core.
 */
import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type { SimHost } from "../host.ts";
import type { SimRandom } from "../engine/random.ts";
import { RunnersAround } from "./runners_around.ts";

/** Returns the runners of a simulated host, whose elements take up to `workMaxMs` each. */
export function pacedBy(workMaxMs: number, rng: SimRandom): (host: SimHost) => RunnerFactory {
  return (host) => {
    const runners = new PipelineRunners(host);
    if (workMaxMs === 0) return runners;
    return pacedRunners(runners, () => host.sleep(rng.between(0, workMaxMs)));
  };
}

/** Wraps runners to take time for each element. @param work Lets the time of an element pass. */
export function pacedRunners(runners: RunnerFactory, work: () => Promise<void>): RunnerFactory {
  return new RunnersAround(runners, (next) => {
    let last: Promise<unknown> = Promise.resolve();
    return (ownStep, wish) => {
      const before = last;
      const made = next(ownStep, wish);
      const paced = before.then(() => made).then(async (outcome) => {
        if (outcome.kind === "element") await work();
        return outcome;
      });
      last = paced.catch(() => {});
      return paced;
    };
  });
}

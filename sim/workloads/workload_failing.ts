/**
 * Another workload in which some elements of the pipeline fail. Its promises must hold with the error of
 * an element in place of the element: the error reaches a training loop as often as the element would, and
 * no other element is lost.
 */
import { SimRandom } from "../engine/random.ts";
import type { RunOptions, RunOutcome, Workload } from "./workload.ts";
import { runDynamic, runRestarts } from "./workload_dynamic.ts";
import { runEpochs } from "./workload_epochs.ts";
import { runRounds } from "./workload_rounds.ts";
import { runSharing } from "./workload_sharing.ts";
import { runStatic } from "./workload_static.ts";

const WORKLOADS: [Workload, ...Workload[]] = [
  runDynamic,
  (options) => runDynamic({ ...options, mode: "OFF" }),
  runRestarts,
  runEpochs,
  runStatic,
  runRounds,
  runSharing,
];

export async function runFailing(options: RunOptions): Promise<RunOutcome> {
  const run = new SimRandom(options.seed).fork("failing").pick(WORKLOADS);
  return await run({ ...options, failing: true });
}

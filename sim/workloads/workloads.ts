/** All workloads of the simulator. */
import type { Workload } from "./workload.ts";
import { runAutoscaling } from "./workload_autoscaling.ts";
import { runConsumers } from "./workload_consumers.ts";
import { runDynamic, runRestarts } from "./workload_dynamic.ts";
import { runEpochs } from "./workload_epochs.ts";
import { runFailing } from "./workload_failing.ts";
import { runDecisions, runExchange, runOffload } from "./workload_offload.ts";
import { runOrdered } from "./workload_ordered.ts";
import { runPipelines } from "./workload_pipelines.ts";
import { runPoison } from "./workload_poison.ts";
import { runRounds } from "./workload_rounds.ts";
import { runSaving, runStorage } from "./workload_saving.ts";
import { runSharing } from "./workload_sharing.ts";
import { runStatic } from "./workload_static.ts";

const ALL = {
  dynamic: [runDynamic, "two clients of one DYNAMIC job"],
  off: [
    (options) => runDynamic({ ...options, mode: "OFF" }),
    "two clients of one OFF job, to which every worker gives the whole dataset",
  ],
  restarts: [runRestarts, "a DYNAMIC job whose dispatcher crashes and compacts again and again"],
  epochs: [
    runEpochs,
    "two or three clients of one DYNAMIC job, epoch after epoch, some of which they leave early",
  ],
  static: [
    runStatic,
    "FILE, DATA, FILE_OR_DATA and HINT over a list of workers, and an unlisted one",
  ],
  pipelines: [runPipelines, "pipelines drawn at random, DYNAMIC, OFF or DETERMINISTIC"],
  ordered: [
    runOrdered,
    "a DETERMINISTIC stream, saved and restored from time to time, epoch after epoch",
  ],
  consumers: [
    runConsumers,
    "consumers of one DETERMINISTIC stream, restored on clusters of other sizes, or epoch after epoch",
  ],
  autoscaling: [
    runAutoscaling,
    "DYNAMIC and DETERMINISTIC jobs whose number of workers follows the autoscaler",
  ],
  poison: [
    runPoison,
    "a job that kills its runners, or those that list its splits, next to a healthy one",
  ],
  rounds: [
    runRounds,
    "three consumers that read in rounds (coordinated reads), to a common end in some runs",
  ],
  sharing: [
    runSharing,
    "fast and slow trainers, one that comes and goes, and one that stops reading; they share one stream per worker, OFF or DYNAMIC",
  ],
  saving: [
    runSaving,
    "a dataset saved by all workers together (distributedSave), programs that cancel it or save by themselves, and one that reads meanwhile",
  ],
  offload: [
    runOffload,
    "a trainer that prepares a part of its elements itself, saved and restored from time to time",
  ],
  exchange: [
    runExchange,
    "the same trainer; every few batches the workers run another part of its pipeline",
  ],
  decisions: [
    runDecisions,
    "a trainer whose measurements are out of date, so that it must find the fastest candidate (place to cut its pipeline)",
  ],
  failing: [
    runFailing,
    "one of dynamic, off, restarts, epochs, static, rounds and sharing; some of its elements fail",
  ],
  storage: [
    runStorage,
    "the workload saving, with a storage that fails a few times",
  ],
} satisfies Record<string, readonly [Workload, string]>;

export const WORKLOADS: Readonly<Record<string, Workload>> = tableOf(0);

/** One line about each workload. */
export const WORKLOAD_LINES: Readonly<Record<string, string>> = tableOf(1);

function tableOf<C extends 0 | 1>(column: C): Record<string, (readonly [Workload, string])[C]> {
  return Object.fromEntries(
    Object.entries<readonly [Workload, string]>(ALL).map(([name, row]) => [name, row[column]]),
  );
}

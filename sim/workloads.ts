/**
 * Everything that a simulated cluster can be made to do.
 *
 * @module
 */
import type { Workload } from "./workload.ts";
import { runDynamic } from "./workload_dynamic.ts";
import { runOrdered } from "./workload_ordered.ts";
import { runRounds } from "./workload_rounds.ts";
import { runSaving } from "./workload_saving.ts";
import { runSharing } from "./workload_sharing.ts";

/** Workloads by name. */
export const WORKLOADS: Readonly<Record<string, Workload>> = {
  dynamic: runDynamic,
  off: (options) => runDynamic({ ...options, mode: "OFF" }),
  ordered: runOrdered,
  rounds: runRounds,
  sharing: runSharing,
  saving: runSaving,
};

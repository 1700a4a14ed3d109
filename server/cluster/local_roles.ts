/** The roles of a local cluster's nodes, from its options. */
import { LeatError } from "../../core/error.ts";
import { show } from "../../data/check.ts";
import { PROCESS_ID } from "../../platform/nodes/process_nodes.ts";
import { grantsOf } from "../../platform/sandbox/grants.ts";
import type { DispatcherRole, WorkerRole } from "../roles.ts";
import { defaultWindowBytes } from "../window_memory.ts";
import type { LocalClusterOptions, LocalWorkerOptions } from "./local_cluster_options.ts";
import { definedFields } from "../../core/tree.ts";

/** The role of the dispatcher. `nameOf` gives a worker's name by its index. */
export function dispatcherRole(
  options: LocalClusterOptions,
  nameOf: (index: number) => string,
): DispatcherRole {
  const { min, max } = workerRange(options);
  const limits = min === max ? {} : { minWorkers: min, maxWorkers: max };
  const { journal: journalFolder, scaling } = options;
  const { workerTimeoutMs, clientTimeoutMs, jobGcTimeoutMs, runnerDeathsMax } = options;
  return {
    role: "dispatcher",
    ...definedFields({ journalFolder }),
    config: {
      ...definedFields({ workerTimeoutMs, clientTimeoutMs, jobGcTimeoutMs, runnerDeathsMax }),
      workers: Array.from({ length: min }, (_, index) => nameOf(index)),
      scaling: { ...scaling, ...limits },
    },
  };
}

/** The role of a worker, whose own options take precedence over the cluster's. */
export function workerRole(
  cluster: LocalClusterOptions,
  own: LocalWorkerOptions,
  { name, workers, dispatcher, proxies }: {
    readonly name: string;
    /** How many workers the cluster has now. */
    readonly workers: number;
    readonly dispatcher: string;
    readonly proxies: { readonly cache?: string; readonly reads?: string };
  },
): WorkerRole {
  // An option that is explicitly undefined is absent: it must not undo `confine`.
  const merged: LocalClusterOptions & LocalWorkerOptions = {
    ...definedFields(cluster),
    ...definedFields(own),
  };
  const { windowBytesMax = defaultWindowBytes(Math.max(workers, workerRange(cluster).max)) } =
    merged;
  const { tags, heartbeatMs, skipAfterMs, roundsBytesMax, runners } = merged;
  const { storage, storageLatencyMs, services, imageBytesMax } = merged;
  return {
    role: "worker",
    dispatcher,
    config: {
      name,
      process: PROCESS_ID,
      placement: proxies,
      windowBytesMax,
      ...definedFields({ tags, heartbeatMs, skipAfterMs, roundsBytesMax }),
    },
    ...definedFields({ runners, sandbox: grantsOf(merged.confine) }),
    ...{ storage, storageLatencyMs, services, imageBytesMax },
  };
}

/** Limit of the workers that a local cluster starts with. More would only compete for cores. */
const LOCAL_WORKERS_MAX = 1_024;

export function workerRange({ workers = 2 }: LocalClusterOptions): { min: number; max: number } {
  const isRange = typeof workers === "object" && workers !== null;
  const range = isRange ? workers : { min: workers, max: workers };
  const isWhole = (count: number) => Number.isInteger(count) && count >= 0;
  const isMin = isWhole(range.min) && range.min <= LOCAL_WORKERS_MAX;
  const invalid = isMin ? [range.max].find((count) => !isWhole(count)) : range.min;
  if (invalid === undefined && range.min <= range.max) return range;
  throw new LeatError(
    "invalid_argument",
    invalid === undefined
      ? `workers must have a min of at most its max, got ${range.min} and ${range.max}`
      : `workers must be a whole number from 0 to ${LOCAL_WORKERS_MAX}, as all run on this host (max ` +
        `may be larger), got ${show(invalid)}`,
  );
}

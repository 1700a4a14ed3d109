/** The options of a local cluster. */
import type { DispatcherOptions } from "../../actors/dispatcher/config.ts";
import type { ScalingOptions } from "../../actors/dispatcher/scaling/autoscaler.ts";
import type { LogLevel } from "../../actors/runtime/world.ts";
import type { WorkerLimits } from "../../actors/worker/worker_options.ts";
import type { SandboxOptions } from "../../platform/sandbox/grants.ts";
import type { WorkerStorage } from "../../platform/storage/storage.ts";
import type { Carrier } from "./fleet.ts";

/** Options of a local cluster. */
export interface LocalClusterOptions
  extends
    WorkerStorage,
    Omit<WorkerLimits, "dispatcherTimeoutMs">,
    Pick<
      DispatcherOptions,
      "workerTimeoutMs" | "clientTimeoutMs" | "jobGcTimeoutMs" | "runnerDeathsMax"
    > {
  /**
   * The number of workers at the start, at most 1,024. Default 2. Only these share the jobs of static
   * policies, not workers added later. With `{ min, max }` the cluster starts `min` workers, then as
   * many as its jobs need.
   */
  readonly workers?: number | { readonly min: number; readonly max: number };
  /** Times of the autoscaler: how long it measures, and how fast the number of workers may fall. */
  readonly scaling?: Omit<ScalingOptions, "minWorkers" | "maxWorkers">;
  /** Where nodes run. Default `"thread"`. */
  readonly carrier?: Carrier;
  /**
   * Where the nodes of a kind run, if this differs from `carrier`. By default caches and schedulers
   * run on the node of their worker.
   */
  readonly placement?: {
    readonly dispatcher?: Carrier;
    readonly worker?: Carrier;
    readonly cache?: Carrier;
    readonly reads?: Carrier;
  };
  /** A folder for the dispatcher's journal. Default: the journal is in memory, and lost at a restart. */
  readonly journal?: string;
  /** Time between a client's heartbeats, in ms. Default 1,000. */
  readonly clientRefreshMs?: number;
  /**
   * Limit of the sliding windows of each worker's shared tasks together, in bytes. Default: 10 GiB,
   * or a quarter of this host's memory if that is less, divided by the number of workers that the
   * cluster has when the worker starts, or by the limit of `workers` if that is more. Workers that run
   * already keep their share.
   */
  readonly windowBytesMax?: number;
  /** Where pipelines run: on threads of their own (default) or in the worker's thread. */
  readonly runners?: "thread" | "inline";
  /**
   * Confines each pipeline in a process of its own, as `sandbox` of {@linkcode serveWorker} does, to
   * test how it runs there. `true` is the default of {@linkcode SandboxOptions}. This program then
   * needs `--allow-run=deno`, and `--allow-read` and `--allow-write` of the temporary folder.
   * Default false: functions may do whatever this program may.
   */
  readonly confine?: boolean | SandboxOptions;
  /** The lowest log level to print. Default `"warn"`. */
  readonly logLevel?: LogLevel | "off";
}

/** Options of one worker that differ from the cluster's. */
export interface LocalWorkerOptions extends
  Pick<
    LocalClusterOptions,
    "runners" | "confine" | "heartbeatMs" | keyof WorkerStorage
  > {
  /** Tags by which jobs choose workers (`distribute({ targetTags })`). Default: none. */
  readonly tags?: readonly string[];
}

/**
 * A modelled cluster: one dispatcher, workers and trainers on a network without faults. The actors are
 * those of production, with registration, heartbeats, splits, requests, buffers and backpressure. Only
 * pipelines and training steps are modelled, as virtual time. A few bytes stand for a batch, and count
 * with the batch's size.
 *
 * Every trainer of a job reads every worker that may serve it, as in production. A large cluster
 * therefore has pools of workers, each for the jobs with its tag.
 */
import { BUFFER_BYTES_MAX } from "../../actors/client/readers/reader.ts";
import type { DispatcherConfig } from "../../actors/dispatcher/config.ts";
import { AHEAD_BYTES_MAX } from "../../actors/worker/tasks/task.ts";
import { LeatError } from "../../core/error.ts";
import { Dataset } from "../../data/dataset.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { packSplits, type SplitBounds } from "../../data/sharding/split_table.ts";
import { fingerprintGraph, serializeGraph } from "../../data/wire.ts";
import { SimCluster } from "../engine/cluster.ts";
import { type CoresMeter, ModelledCores } from "./modelled_cores.ts";
import { BATCH_FRAME_BYTES, ModelledRunners } from "./modelled_runners.ts";
import { ModelledTrainer, type TrainerCounts } from "./modelled_trainer.ts";
import { ModelledWires } from "./modelled_wires.ts";
import type { SimNode } from "../engine/node.ts";
import { type FaultOptions, NO_FAULTS } from "../faults/options.ts";
import {
  bootUncheckedDispatcher,
  bootWorker,
  DISPATCHER_NODE,
  startClient,
  type WrapDispatcher,
} from "../engine/service.ts";

/**
 * Minimum splits of a repetition per worker of a job, few enough to list.
 */
const SPLITS_PER_WORKER = 16;
const SPLITS_MIN = 256;
/** Timeout of a client's first answer, in ms. The dispatcher gets all clients' requests together. */
const FIRST_ANSWER_TIMEOUT_MS = 600_000;
/** Maximum number of events. More events mean a fault of the model. */
const STEPS_MAX = 1e9;

/** The size of a cluster, and the costs in it. */
export interface ModelledOptions {
  readonly workers: number;
  readonly trainers: number;
  /** Cores of a worker's host. Default 8. */
  readonly coresPerWorker?: number;
  /** Core time of a batch, in ms. */
  readonly batchMs: number;
  /** Maximum deviation from `batchMs`, as a share from 0 to 1. Default 0.2. */
  readonly batchSpread?: number;
  /** Number of cores that make a batch in parallel. Default: all of a host. */
  readonly parallelCalls?: number;
  /** Size of a batch, in bytes. Default 1 MiB. */
  readonly batchBytes?: number;
  /** Time of a training step, in ms. */
  readonly stepMs: number;
  /** Bandwidth of each host's network card, per direction. Default: unlimited. */
  readonly networkBytesPerSecond?: number;
  /** Latency of a message besides the time to send it, in ms. Default 0.2 to 1. */
  readonly delayMinMs?: number;
  readonly delayMaxMs?: number;
  /** Number of jobs that share the trainers. Default 1. */
  readonly jobs?: number;
  /** Number of pools that share the workers, and the jobs with them. Default 1. */
  readonly pools?: number;
  /** Batches per split. Default 10. */
  readonly batchesPerSplit?: number;
  /** Requests in flight and batches waiting per trainer. Default: the client's own choice. */
  readonly maxOutstandingRequests?: number;
  readonly dispatcher?: DispatcherConfig;
  /** Wraps the dispatcher, for observers. */
  readonly wrapDispatcher?: WrapDispatcher;
  /** Default 1. */
  readonly seed?: bigint;
}

type Settings =
  & Required<Omit<ModelledOptions, "maxOutstandingRequests" | "wrapDispatcher">>
  & Pick<ModelledOptions, "maxOutstandingRequests" | "wrapDispatcher">;

/** A modelled cluster to run step by step. {@linkcode simulateCluster} measures such a cluster. */
export class ModelledCluster {
  readonly cluster: SimCluster;
  readonly settings: Settings;
  readonly trainers: readonly ModelledTrainer[];
  readonly #wires: ModelledWires;
  readonly #cores: CoresMeter = { busyMs: 0 };
  readonly #workerNames: readonly string[];
  readonly #trainerNames: readonly string[];
  readonly #splits: SplitBounds;
  #failure: unknown;

  /** @throws LeatError `invalid_argument` for an invalid number. */
  constructor(options: ModelledOptions) {
    this.settings = check(options);
    const { workers, trainers, pools, seed, networkBytesPerSecond, batchBytes } = this.settings;
    const { delayMinMs, delayMaxMs, dispatcher, wrapDispatcher } = this.settings;
    this.#wires = new ModelledWires(networkBytesPerSecond, batchBytes);
    const faults: FaultOptions = { ...NO_FAULTS, delayMinMs, delayMaxMs };
    this.cluster = new SimCluster({ seed, faults, wires: this.#wires });
    this.cluster.addNode(DISPATCHER_NODE, bootUncheckedDispatcher(dispatcher, wrapDispatcher));
    this.#workerNames = Array.from({ length: workers }, (_, i) => `worker-${i}`);
    this.#trainerNames = Array.from({ length: trainers }, (_, i) => `trainer-${i}`);
    const splits = Math.max(SPLITS_MIN, SPLITS_PER_WORKER * Math.ceil(workers / pools));
    this.#splits = packSplits([
      Array.from({ length: splits }, (_, i) => ({ start: i, stop: i + 1 })),
    ]);
    this.#workerNames.forEach((name, index) => this.#addWorker(name, index));
    this.trainers = this.#trainerNames.map((name, index) => this.#addTrainer(name, index));
  }

  /** Virtual time since the cluster was started, in ms. */
  get nowMs(): number {
    return this.cluster.scheduler.nowUs / 1_000;
  }

  /** The sums of all trainers' counts. */
  get counts(): TrainerCounts {
    const sum = { batches: 0, waitedMs: 0 };
    for (const { counts } of this.trainers) {
      sum.batches += counts.batches;
      sum.waitedMs += counts.waitedMs;
    }
    return sum;
  }

  /** Core time that all workers have used for batches, in ms. */
  get workersBusyMs(): number {
    return this.#cores.busyMs;
  }

  /** Time that all workers together have spent sending batches, in ms. */
  get workersSendingMs(): number {
    return this.#wires.sendingMs(this.#workerNames);
  }

  /** Time that all trainers together have spent receiving batches, in ms. */
  get trainersReceivingMs(): number {
    return this.#wires.receivingMs(this.#trainerNames);
  }

  get dispatcherNode(): SimNode {
    return this.cluster.node(DISPATCHER_NODE);
  }

  /** Runs for a virtual time. @throws LeatError the failure of a trainer. */
  async runFor(ms: number): Promise<void> {
    let isOver = false;
    this.cluster.after(ms, "end of a run", () => isOver = true);
    await this.runUntil(() => isOver, 2 * ms);
  }

  /**
   * Runs until `holds()` is true.
   * @throws LeatError `deadline_exceeded` after `timeMaxMs` of virtual time (default: an hour), and
   * the failure of a trainer.
   */
  async runUntil(holds: () => boolean, timeMaxMs = 3_600_000): Promise<void> {
    const until = () => {
      if (this.#failure !== undefined) throw this.#failure;
      return holds();
    };
    await this.cluster.run({ until, timeMaxMs, stepsMax: STEPS_MAX });
  }

  #addWorker(name: string, index: number): void {
    const { coresPerWorker, pools, batchBytes } = this.settings;
    const random = this.cluster.random.fork(`pipelines of ${name}`);
    const tags = [poolTag(index % pools)];
    const aheadBytesMax = inFrames(AHEAD_BYTES_MAX, batchBytes);
    const boot = bootWorker({ tags, aheadBytesMax }, (host) => {
      const cores = new ModelledCores(coresPerWorker, (ms) => host.sleep(ms), this.#cores);
      return new ModelledRunners({ cores, random }, this.settings, this.#splits);
    });
    this.cluster.addNode(name, boot);
  }

  #addTrainer(name: string, index: number): ModelledTrainer {
    const { jobs, pools, stepMs, batchBytes, maxOutstandingRequests } = this.settings;
    const node = this.cluster.addNode(name, () => {});
    const job = index % jobs;
    const feed = startClient(node, {
      dataset: DEFINITION,
      parameters: {
        processingMode: ShardingPolicy.DYNAMIC,
        sharing: false,
        ...(pools === 1 ? {} : { targetTags: [poolTag(job % pools)] }),
      },
      jobName: `job-${job}`,
      repetition: 0,
      firstAnswerTimeoutMs: FIRST_ANSWER_TIMEOUT_MS,
      bufferBytesMax: inFrames(BUFFER_BYTES_MAX, batchBytes),
      ...(maxOutstandingRequests === undefined ? {} : { maxOutstandingRequests }),
    });
    const trainer = new ModelledTrainer(node.host, feed, stepMs);
    trainer.train().catch((error) => this.#failure ??= error);
    return trainer;
  }
}

/** The dataset of all jobs. Nothing reads its elements, because runners model them. */
const DATASET = Dataset.range(SPLITS_MIN).repeat();
const DEFINITION = {
  graph: serializeGraph(DATASET.node),
  fingerprint: fingerprintGraph(DATASET.node),
  cardinality: -1,
};

const DEFAULTS = {
  coresPerWorker: 8,
  batchSpread: 0.2,
  parallelCalls: Infinity,
  batchBytes: 2 ** 20,
  networkBytesPerSecond: Infinity,
  delayMinMs: NO_FAULTS.delayMinMs,
  delayMaxMs: NO_FAULTS.delayMaxMs,
  jobs: 1,
  pools: 1,
  batchesPerSplit: 10,
  dispatcher: {},
  seed: 1n,
};

/** Options that must be integers of at least 1. */
const COUNTS = [
  "workers",
  "trainers",
  "coresPerWorker",
  "jobs",
  "pools",
  "batchesPerSplit",
] as const;
/** Options that must be positive. */
const AMOUNTS = ["batchMs", "parallelCalls", "batchBytes", "networkBytesPerSecond"] as const;

function check(options: ModelledOptions): Settings {
  const settings = { ...DEFAULTS, ...options };
  const refuse = (name: keyof ModelledOptions, must: string): never => {
    throw new LeatError(
      "invalid_argument",
      `A modelled cluster: ${name} is ${settings[name]}; it must be ${must}`,
    );
  };
  for (const name of COUNTS) {
    if (!(Number.isSafeInteger(settings[name]) && settings[name] >= 1)) {
      refuse(name, "a whole number, 1 or more");
    }
  }
  for (const name of AMOUNTS) if (!(settings[name] > 0)) refuse(name, "above 0");
  const { stepMs, batchSpread, delayMinMs, delayMaxMs, workers, trainers, jobs, pools } = settings;
  if (!(stepMs >= 0)) refuse("stepMs", "0 or more");
  if (!(batchSpread >= 0 && batchSpread <= 1)) refuse("batchSpread", "from 0 to 1");
  if (!(delayMinMs >= 0)) refuse("delayMinMs", "0 or more");
  if (!(delayMaxMs >= delayMinMs)) refuse("delayMaxMs", `no less than delayMinMs (${delayMinMs})`);
  if (jobs > trainers) refuse("jobs", `no more than there are trainers (${trainers})`);
  if (pools > Math.min(workers, jobs)) {
    refuse("pools", `no more than there are workers (${workers}) and jobs (${jobs})`);
  }
  return settings;
}

/** Converts bytes of batches to bytes of the frames that stand for them. */
function inFrames(bytes: number, batchBytes: number): number {
  return bytes * BATCH_FRAME_BYTES / batchBytes;
}

function poolTag(pool: number): string {
  return `pool-${pool}`;
}

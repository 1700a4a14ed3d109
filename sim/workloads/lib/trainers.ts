/**
 * Sets up the cluster of several workloads: a dispatcher, workers, and training programs that read one
 * job through `distribute()` and start again when their nodes crash.
 */
import type { Dataset } from "../../../data/dataset.ts";
import type { DatasetIterator } from "../../../data/dataset_iterator.ts";
import type { ShardingPolicy } from "../../../data/sharding/sharding_policy.ts";
import type { Violations } from "../../checkers/checker.ts";
import type { SimCluster } from "../../engine/cluster.ts";
import { Crashes } from "../../faults/crashes.ts";
import type { Boot, SimNode } from "../../engine/node.ts";
import type { SimRandom } from "../../engine/random.ts";
import { type NextIterator, Readings, Trainings } from "./reading.ts";
import { DISPATCHER_NODE, type WorkerSettings } from "../../engine/service.ts";
import { drawTimings, type ServiceTimings } from "../../engine/timings.ts";
import { type RunOptions, runThroughTrouble } from "../workload.ts";

/** Default of the longest training step, in ms. */
const STEP_MAX_MS = 20;
const QUICK = {
  worker: { heartbeatMs: 1_000 },
  client: { refreshMs: 200, requestTimeoutMs: 1_000 },
};

/** A life of a training program. */
export interface Trainer {
  readonly node: SimNode;
  /** The name of this life. */
  readonly who: string;
  readonly rng: SimRandom;
  /** Opens the job. Each iterator is an epoch. */
  dataset<T>(make: () => Dataset<T>): NextIterator<T>;
  /** Opens its first epoch. */
  open<T>(make: () => Dataset<T>): DatasetIterator<T>;
  /**
   * A training step. @param delivered Number of delivered elements, which triggers planned crashes.
   */
  step(delivered: number, stepMaxMs?: number): Promise<void>;
}

/** The cluster to set up. */
interface TrainersOptions {
  readonly cluster: SimCluster;
  readonly violations: Violations;
  readonly run: RunOptions;
  readonly dispatcher: Boot;
  /** The names of nodes with workers that may crash. */
  readonly workers: readonly string[];
  /** The names of nodes with workers that never crash. Default: none. */
  readonly spared?: readonly string[];
  /** Boots a worker. It is called once for each of these names. */
  readonly worker: (settings: WorkerSettings, name: string) => Boot;
  readonly clients: readonly string[];
  /** The program that runs on each client node, from each start on. */
  readonly train: (trainer: Trainer) => Promise<void>;
  readonly processingMode: ShardingPolicy;
  readonly maxOutstandingRequests: number;
}

/** The cluster with its training programs. */
export class Trainers implements Disposable {
  readonly #options: TrainersOptions;
  readonly #timings: ServiceTimings;
  readonly #trainings: Trainings;
  readonly #readings = new Readings();
  readonly #crashes: Crashes;

  constructor(options: TrainersOptions) {
    this.#options = options;
    const { cluster, violations, run, workers, spared = [], clients } = options;
    this.#trainings = new Trainings(violations.by("training"));
    cluster.addNode(DISPATCHER_NODE, options.dispatcher);
    this.#timings = drawTimings(cluster, QUICK);
    for (const name of [...workers, ...spared]) {
      cluster.addNode(name, options.worker(this.#timings.worker, name));
    }
    for (const name of clients) {
      cluster.addNode(name, (node) => this.#begin(node));
    }
    this.#crashes = new Crashes(cluster, {
      nodes: { dispatcher: [DISPATCHER_NODE], worker: workers, client: clients },
      roles: run.crashes ?? [],
      point: run.crashPoint,
      onCrash: (node) => this.#trainings.crashed(node),
    });
  }

  /** Whether no client's node has restarted. */
  get haveLived(): boolean {
    const { cluster, clients } = this.#options;
    return clients.every((name) => cluster.node(name).lives === 1);
  }

  /** Runs through all faults until each client has reached its end. */
  async toTheEnd(): Promise<void> {
    const { cluster, clients } = this.#options;
    const haveEnded = () => this.#trainings.haveEnded(clients);
    await runThroughTrouble(cluster, this.#crashes, haveEnded);
  }

  [Symbol.dispose](): void {
    this.#readings[Symbol.dispose]();
  }

  #begin(node: SimNode): void {
    this.#trainings.begin(node, (who, rng) =>
      this.#options.train({
        node,
        who,
        rng,
        dataset: (make) => this.#dataset(node, make),
        open: (make) => this.#dataset(node, make)(),
        step: async (delivered, stepMaxMs = STEP_MAX_MS) => {
          this.#crashes.delivered(delivered);
          await node.host.sleep(rng.between(0, stepMaxMs));
        },
      }));
  }

  #dataset<T>(node: SimNode, make: () => Dataset<T>): NextIterator<T> {
    const { processingMode, maxOutstandingRequests } = this.#options;
    const distributed = (service: string): Dataset<T> =>
      make().distribute({ service, processingMode, jobName: "job", maxOutstandingRequests });
    return this.#readings.dataset(node, distributed, this.#timings.client);
  }
}

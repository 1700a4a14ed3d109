/**
 * A service on threads of this host with trainers on threads beside it, steered from the main thread.
 *
 * @module
 */

import type { Ref } from "../../actors/runtime/ref.ts";
import { LocalCluster, type LocalClusterOptions } from "../../mod.ts";
import type { SynchronousTraining } from "./accelerator.ts";
import type {
  BarrierProtocol,
  MonitorProtocol,
  OpenRequest,
  TrainerProtocol,
  TrainerThreadConfig,
  TrainProgress,
  TrainRequest,
  TrainResult,
} from "./trainer_protocol.ts";

/** How long the first batch may take, in ms. */
const OPEN_TIMEOUT_MS = 120_000;
/** How long training may take, in ms. */
const TRAIN_TIMEOUT_MS = 900_000;
/** Time between a client's heartbeats, in ms: runs take seconds, so news of new workers must come sooner than by default. */
const CLIENT_REFRESH_MS = 200;

/** A trainer on a thread, from afar. */
export interface TrainerHandle {
  open(request: OpenRequest): Promise<void>;
  train(request: TrainRequest): Promise<TrainResult>;
}

/** See the module. */
export class Deployment implements AsyncDisposable {
  readonly cluster: LocalCluster;
  readonly #signal: AbortSignal;
  #actors = 0;

  private constructor(cluster: LocalCluster, signal: AbortSignal) {
    this.cluster = cluster;
    this.#signal = signal;
    signal.addEventListener("abort", this.#close);
  }

  /**
   * Starts a cluster; `signal` ends it, whatever it does.
   *
   * @throws the signal's reason once it is aborted.
   */
  static async start(signal: AbortSignal, options: LocalClusterOptions): Promise<Deployment> {
    signal.throwIfAborted();
    const cluster = await LocalCluster.start({
      clientRefreshMs: CLIENT_REFRESH_MS,
      logLevel: "error",
      ...options,
    });
    const deployment = new Deployment(cluster, signal);
    if (signal.aborted) await deployment[Symbol.asyncDispose]();
    signal.throwIfAborted();
    return deployment;
  }

  /** Starts trainers, each on a thread of its own. */
  async trainers(count: number): Promise<TrainerHandle[]> {
    return await Promise.all(Array.from({ length: count }, () => this.trainer()));
  }

  /** Starts a trainer on a thread of its own. */
  async trainer(): Promise<TrainerHandle> {
    const { fleet, address } = this.cluster;
    const name = `${address}-trainer-${this.#actors++}`;
    const config: TrainerThreadConfig = {
      service: address,
      dispatcher: this.cluster.home().dispatcher.node,
      clientRefreshMs: CLIENT_REFRESH_MS,
    };
    const module = import.meta.resolve("./trainer_thread.ts");
    const thread = await this.#unlessAborted(fleet.startThread(name, module, config));
    const trainer = await this.#unlessAborted(
      thread.spawn<TrainerProtocol>("trainer", "trainer", null),
    );
    return {
      open: async (request) => {
        const asked = fleet.home.ask(trainer, "open", request, { timeoutMs: OPEN_TIMEOUT_MS });
        await this.#unlessAborted(asked);
      },
      train: (request) =>
        this.#unlessAborted(
          fleet.home.ask(trainer, "train", request, { timeoutMs: TRAIN_TIMEOUT_MS }),
        ),
    };
  }

  /** An actor on the main thread that hears of progress. */
  monitor(onProgress: (progress: TrainProgress) => void): Ref<MonitorProtocol> {
    return this.cluster.fleet.home.spawn<MonitorProtocol>({
      name: `monitor-${this.#actors++}`,
      kind: "monitor",
      create: () => ({
        handlers: {
          progressed(progress) {
            onProgress(progress);
            return null;
          },
        },
      }),
    });
  }

  /** An actor on the main thread at which trainers wait for each other after each step. */
  barrier(training: SynchronousTraining): Ref<BarrierProtocol> {
    return this.cluster.fleet.home.spawn<BarrierProtocol>({
      name: `barrier-${this.#actors++}`,
      kind: "barrier",
      create: () => ({ handlers: { step: ({ durationMs }) => training.step(durationMs) } }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#signal.removeEventListener("abort", this.#close);
    await this.cluster.close();
  }

  /** What stopping a cluster makes of its asks is not worth reading: the reason for stopping is. */
  async #unlessAborted<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      this.#signal.throwIfAborted();
      throw error;
    }
  }

  readonly #close = () => {
    this.cluster.close();
  };
}

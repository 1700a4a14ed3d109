/**
 * Runs a service on threads of this host, and each trainer on another thread. The main thread controls
 * them.
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

/** Time limit for the first batch, in ms. */
const OPEN_TIMEOUT_MS = 120_000;
/** Time limit for training besides its steps, in ms. */
const TRAIN_TIMEOUT_MS = 900_000;
/**
 * Time between a client's heartbeats, in ms. It is shorter than the default, because runs take only
 * seconds, and clients must find new workers soon.
 */
const CLIENT_REFRESH_MS = 200;

/**
 * Time until a job without clients is removed, in ms. Short, because its tasks would otherwise still
 * run during the next measurement.
 */
const JOB_GC_TIMEOUT_MS = 1;
/** Time limit for the tasks of old jobs to end, and the time between two checks, in ms. */
const CLEARED_TIMEOUT_MS = 10_000;
const CLEARED_POLL_MS = 20;
/** Kinds of the actors that prepare elements for a job. */
const PREPARING = new Set(["task", "cache", "reads"]);

/** A trainer on another thread. */
export interface TrainerHandle {
  open(request: OpenRequest): Promise<void>;
  train(request: TrainRequest): Promise<TrainResult>;
  /** Stops reading. */
  close(): Promise<void>;
}

/** A local cluster with trainers. */
export class Deployment implements AsyncDisposable {
  readonly cluster: LocalCluster;
  readonly #signal: AbortSignal;
  readonly #trainers: Promise<TrainerHandle>[] = [];
  #actors = 0;

  private constructor(cluster: LocalCluster, signal: AbortSignal) {
    this.cluster = cluster;
    this.#signal = signal;
    signal.addEventListener("abort", this.#close);
  }

  /**
   * Starts a cluster, which `signal` ends at any time.
   * @throws the signal's reason if it is aborted.
   */
  static async start(signal: AbortSignal, options: LocalClusterOptions): Promise<Deployment> {
    signal.throwIfAborted();
    const cluster = await LocalCluster.start({
      clientRefreshMs: CLIENT_REFRESH_MS,
      jobGcTimeoutMs: JOB_GC_TIMEOUT_MS,
      logLevel: "error",
      ...options,
    });
    const deployment = new Deployment(cluster, signal);
    if (signal.aborted) await deployment[Symbol.asyncDispose]();
    signal.throwIfAborted();
    return deployment;
  }

  /**
   * Returns `count` trainers, each on its own thread. Trainers are reused, because a thread loads slowly.
   */
  async trainers(count: number): Promise<TrainerHandle[]> {
    while (this.#trainers.length < count) this.#trainers.push(this.#startTrainer());
    return await Promise.all(this.#trainers.slice(0, count));
  }

  /** Returns the first trainer. */
  async trainer(): Promise<TrainerHandle> {
    const [trainer] = await this.trainers(1);
    return trainer!;
  }

  /** Stops all trainers' reading. Resolves when no task runs, or after the time limit. */
  async clear(): Promise<void> {
    for (const trainer of await Promise.all(this.#trainers)) await trainer.close();
    const untilMs = performance.now() + CLEARED_TIMEOUT_MS;
    while (performance.now() < untilMs) {
      const actors = await this.#unlessAborted(this.cluster.actors());
      if (!actors.some(({ kind }) => PREPARING.has(kind))) return;
      await new Promise((resolve) => setTimeout(resolve, CLEARED_POLL_MS));
    }
  }

  async #startTrainer(): Promise<TrainerHandle> {
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
        const answer = fleet.home.ask(trainer, "open", request, { timeoutMs: OPEN_TIMEOUT_MS });
        await this.#unlessAborted(answer);
      },
      train: (request) => {
        const stepsMs = (request.batches ?? 0) * request.step.constantMs;
        const timeoutMs = TRAIN_TIMEOUT_MS + stepsMs;
        return this.#unlessAborted(fleet.home.ask(trainer, "train", request, { timeoutMs }));
      },
      close: async () => {
        const answer = fleet.home.ask(trainer, "close", null, { timeoutMs: CLEARED_TIMEOUT_MS });
        await this.#unlessAborted(answer);
      },
    };
  }

  /** Starts an actor on the main thread that receives progress. */
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

  /** Starts an actor on the main thread at which trainers wait for each other after each step. */
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

  /** If the signal is aborted, rejects with its reason instead of the errors that stopping causes. */
  async #unlessAborted<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      this.#signal.throwIfAborted();
      throw error;
    }
  }

  readonly #close = () => {
    this.cluster.close();
  };
}

/**
 * Starts and drains workers under faults, with the production scaler. The wanted number of workers is
 * random, because the dispatcher's own would change only after minutes.
 */
import { RandomStream } from "../../core/philox.ts";
import { autoscale, type Scaler, type WorkerFleet } from "../../server/cluster/scaler.ts";
import type { Deployment } from "../cluster/deployment.ts";
import { askForState } from "../cluster/state_request.ts";
import type { ProcessLogs } from "./process_logs.ts";

/** How long clients may still fetch from a worker that is being stopped, in ms. */
export const SCALED_DRAIN_MS = 20_000;
/** Time for a worker to stop after its drain time, in ms. */
const STOP_MARGIN_MS = 5_000;
/** The time between two checks of the scaler, in ms. */
const INTERVAL_MS = 1_000;
/** On average one check in this many draws a new number of workers. */
const CHECKS_PER_CHANGE = 3;

/** How many workers were started and stopped so far. */
export interface ScalingCounts {
  started: number;
  stopped: number;
  /** How many of the stopped workers did not drain in time. Their splits are lost. */
  cutShort: number;
}

/** The range of the number of workers, and a callback. */
interface ScalingOptions {
  readonly seed: number;
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** Called with each step, in words. */
  readonly onStep: (what: string) => void;
}

/** A fleet whose wanted size is random. */
export class ChaosScaling implements WorkerFleet {
  readonly counts: ScalingCounts = { started: 0, stopped: 0, cutShort: 0 };
  /** The largest number of workers at one time so far, including those that were stopping. */
  most: number;
  readonly #deployment: Deployment;
  readonly #logs: ProcessLogs;
  readonly #rng: RandomStream;
  readonly #options: ScalingOptions;
  readonly #starting = new Set<string>();
  readonly #stopping = new Set<string>();
  #wanted: number;
  readonly #scaler: Scaler;

  constructor(deployment: Deployment, logs: ProcessLogs, options: ScalingOptions) {
    this.#deployment = deployment;
    this.#logs = logs;
    this.#options = options;
    this.#rng = new RandomStream(BigInt(options.seed), ["chaos", "scaling"]);
    const { minWorkers, maxWorkers, onStep } = options;
    this.most = this.#wanted = minWorkers;
    this.#scaler = autoscale({
      dispatcher: { describe: () => this.#describe() },
      fleet: this,
      ...{ minWorkers, maxWorkers, intervalMs: INTERVAL_MS },
      onStep: ({ action, worker = "", workers, reason }) =>
        onStep(action === "fail" ? reason : `${action} ${worker || "one more"} to have ${workers}`),
    });
  }

  /** The running workers. A killed worker counts again once it has restarted. */
  get names(): readonly string[] {
    return this.#deployment.workers.filter(({ name, end }) =>
      end === undefined && !this.#stopping.has(name)
    ).map(({ name }) => name);
  }

  async start(): Promise<void> {
    const name = this.#freeName();
    this.#starting.add(name);
    this.#logs.setStopping(name, false);
    try {
      await this.#deployment.add(name);
    } finally {
      this.#starting.delete(name);
    }
    this.counts.started++;
    this.most = Math.max(this.most, this.#deployment.workers.length);
  }

  async stop(name: string): Promise<void> {
    const worker = this.#deployment.workers.find((worker) => worker.name === name);
    if (worker === undefined) return;
    this.#stopping.add(name);
    this.#logs.setStopping(name, true);
    this.counts.stopped++;
    const startedMs = performance.now();
    await this.#deployment.remove(worker, SCALED_DRAIN_MS + STOP_MARGIN_MS);
    this.#stopping.delete(name);
    if (performance.now() - startedMs >= SCALED_DRAIN_MS) this.counts.cutShort++;
  }

  /** Starts and stops no more workers. Resolves when steps in progress have ended. */
  close(): Promise<void> {
    return this.#scaler.close();
  }

  /** Returns the dispatcher's state, with a random number of wanted workers. */
  async #describe() {
    const { dispatcher: { address }, token } = this.#deployment;
    const state = await askForState(address, { token });
    const { minWorkers, maxWorkers } = this.#options;
    if (this.#rng.int(CHECKS_PER_CHANGE) === 0) {
      this.#wanted = minWorkers + this.#rng.int(maxWorkers - minWorkers + 1);
    }
    return { ...state, scaling: { ...state.scaling, wanted: this.#wanted } };
  }

  #freeName(): string {
    const used = new Set(this.#deployment.workers.map(({ name }) => name));
    for (let number = 1;; number++) {
      const name = `worker-${number}`;
      if (!used.has(name) && !this.#starting.has(name)) return name;
    }
  }
}

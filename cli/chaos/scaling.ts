/**
 * Starts and drains workers under faults, with the production scaler. The wanted number is random: a
 * dispatcher's would take minutes to change.
 */
import { RandomStream } from "../../core/philox.ts";
import { autoscale, type Scaler, type WorkerFleet } from "../../server/cluster/scaler.ts";
import type { Deployment } from "../cluster/deployment.ts";
import { askForState } from "../cluster/state_request.ts";
import type { ProcessLogs } from "./process_logs.ts";

/** How long clients may fetch from a worker that is stopped, in ms. */
export const SCALED_DRAIN_MS = 20_000;
/** Time for a worker to stop after its drain time, in ms. */
const STOP_MARGIN_MS = 5_000;
/** The time between two checks of the scaler, in ms. One check in this many changes the number. */
const INTERVAL_MS = 1_000;
const LOOKS_PER_CHANGE = 3;

/** How many steps there were so far. */
export interface ScalingCounts {
  started: number;
  stopped: number;
  /** How many of the stopped workers did not end in time. What they held is lost. */
  cutShort: number;
}

/** The range of workers, and the listener. */
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
  /** Limit of the workers at one time, stopping ones included. */
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
    this.#logs.leaves(name, false);
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
    this.#logs.leaves(name, true);
    this.counts.stopped++;
    const beganMs = performance.now();
    await this.#deployment.remove(worker, SCALED_DRAIN_MS + STOP_MARGIN_MS);
    this.#stopping.delete(name);
    if (performance.now() - beganMs >= SCALED_DRAIN_MS) this.counts.cutShort++;
  }

  /** Starts and stops nothing more; resolves when steps in progress have ended. */
  close(): Promise<void> {
    return this.#scaler.close();
  }

  /** The dispatcher's state, with a random wanted number. */
  async #describe() {
    const { dispatcher: { address }, token } = this.#deployment;
    const state = await askForState(address, { token });
    const { minWorkers, maxWorkers } = this.#options;
    if (this.#rng.int(LOOKS_PER_CHANGE) === 0) {
      this.#wanted = minWorkers + this.#rng.int(maxWorkers - minWorkers + 1);
    }
    return { ...state, scaling: { ...state.scaling, wanted: this.#wanted } };
  }

  #freeName(): string {
    const taken = new Set(this.#deployment.workers.map(({ name }) => name));
    for (let number = 1;; number++) {
      const name = `worker-${number}`;
      if (!taken.has(name) && !this.#starting.has(name)) return name;
    }
  }
}

/**
 * The scaler: starts and stops workers as their dispatcher wants. What a worker is (a thread, a process,
 * a machine of a cloud) is the business of the fleet that it is given.
 *
 * @module
 */
import type { DispatcherDescription } from "../actors/dispatcher/protocol.ts";
import type { ScalingDescription } from "../actors/dispatcher/protocol_scaling.ts";
import { mayRead } from "../actors/dispatcher/targets.ts";
import { isOfPool } from "../actors/dispatcher/worker_pools.ts";
import { LeatError } from "../core/error.ts";

/** How often the dispatcher is asked, in ms. */
const INTERVAL_MS = 5_000;
/**
 * While the dispatcher does not answer, and after starts and stops that failed, it is waited twice as
 * long each time, and at most this, in ms.
 */
const RETRY_MAX_MS = 60_000;
/** No timer of the system takes longer, in ms: one that should is over at once. */
const INTERVAL_MAX_MS = 2 ** 31 - 1;

/** Workers that can be started and stopped. */
export interface WorkerFleet {
  /**
   * The names under which its workers are known to the dispatcher, oldest first: those that run, and
   * not those that are being started or stopped, or have ended by themselves.
   */
  readonly names: readonly string[];
  /** What all of its workers carry: none is started for jobs that want others. Default: not known. */
  readonly tags?: readonly string[];
  /**
   * Starts one more; resolves when it runs. Rejects with `invalid_argument` where what workers are
   * started with cannot be: none is started any more then.
   */
  start(): Promise<void>;
  /** Stops one once clients have fetched what it holds; resolves when it has ended. */
  stop(name: string): Promise<void>;
}

/** What a scaler has done, for people to read. */
export interface ScalingStep {
  readonly action: "start" | "stop" | "fail";
  /** The worker that is stopped. */
  readonly worker?: string;
  /** How many workers of the fleet there will be. */
  readonly workers: number;
  /** Why: the dispatcher's sentence, the scaler's own limit before it where that decides, or the error. */
  readonly reason: string;
}

/** How a scaler is set up. */
export interface ScalerOptions {
  /** Who is asked how many workers there should be: a `LocalCluster`, a `DispatcherServer`, or your own. */
  readonly dispatcher: { describe(): Promise<DispatcherDescription> };
  readonly fleet: WorkerFleet;
  /** The fleet never has fewer workers. Default 0. */
  readonly minWorkers?: number;
  /** The fleet never has more workers; those that are being stopped count until they have ended. */
  readonly maxWorkers: number;
  /** How often the dispatcher is asked, in ms. Default 5,000. */
  readonly intervalMs?: number;
  /** Calls `fn` after so long. Default: the system's timers. */
  readonly timer?: (delayMs: number, fn: () => void) => { cancel(): void };
  /** Told of each step. What it throws goes to the console, and is no failure of the fleet. */
  readonly onStep?: (step: ScalingStep) => void;
}

/** A scaler that is at work. */
export interface Scaler extends AsyncDisposable {
  /**
   * Resolves if it cannot go on: the dispatcher wants another token (`unauthenticated`), or workers
   * cannot be started as they are (`invalid_argument`). It would try in vain. It starts and stops nothing
   * more then, and is to be closed.
   */
  readonly failed: Promise<LeatError>;
  /** Starts and stops nothing more; resolves when what it had begun has ended. Idempotent. */
  close(): Promise<void>;
}

/**
 * Keeps a fleet at the number of workers that its dispatcher wants, within limits. Workers of others
 * count, as far as they can be reached and may serve the job that wants some: a cluster of four wanted,
 * of which two were started by hand, gets two of the fleet. One that ends by itself is replaced. The
 * least useful go first: those that cannot be reached, those that a static policy gives nothing, then
 * those that make least.
 *
 * Have one for each dispatcher: who asks does not tell it what it is about to do. Two both start what is
 * missing, and one of them stops that again; where they look before either's draining worker was heard of,
 * both may stop one for the other's sake, and start it again.
 *
 * @throws {LeatError} `invalid_argument` for limits and an interval that make no sense.
 *
 * @example
 * ```ts
 * import { autoscale } from "./scaler.ts";
 * import { LocalCluster } from "./local_cluster.ts";
 *
 * await using cluster = await LocalCluster.start({ workers: 1 });
 * const names: string[] = []; // of machines that a cloud would start
 * const fleet = {
 *   names,
 *   start: () => Promise.resolve(void names.push(`machine-${names.length}`)),
 *   stop: (name: string) => Promise.resolve(void names.splice(names.indexOf(name), 1)),
 * };
 * await using scaler = autoscale({ dispatcher: cluster, fleet, maxWorkers: 8 });
 * ```
 */
export function autoscale(options: ScalerOptions): Scaler {
  return new FleetScaler(options);
}

class FleetScaler implements Scaler {
  readonly failed: Promise<LeatError>;
  readonly #options: ScalerOptions;
  readonly #limits: { readonly minWorkers: number; readonly maxWorkers: number };
  readonly #starting = new Set<Promise<void>>();
  readonly #stopping = new Map<string, Promise<void>>();
  /** Workers of the fleet, and those of them that have gone and the dispatcher takes to be there. */
  #ours = new Set<string>();
  readonly #looking: Promise<void>;
  /** Looks in a row that the dispatcher did not answer. */
  #unanswered = 0;
  /** Looks in a row with which the fleet failed. */
  #failures = 0;
  /** What has become, since the last look, of what the fleet was told. */
  #hasFailed = false;
  #hasSucceeded = false;
  #closed = false;
  readonly #refused: (error: LeatError) => void;
  #wake: () => void = () => {};

  constructor(options: ScalerOptions) {
    this.#options = options;
    this.#limits = checkLimits(options);
    ({ promise: this.failed, resolve: this.#refused } = Promise.withResolvers<LeatError>());
    this.#looking = this.#look();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await Promise.all([this.#looking, ...this.#starting, ...this.#stopping.values()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #look(): Promise<void> {
    while (!this.#closed) {
      const state = await this.#ask();
      try {
        if (state !== undefined) this.#follow(state);
      } catch (error) {
        this.#hasFailed = true;
        this.#fail("The fleet could not be told what the dispatcher wants", error);
      }
      this.#countFailures();
      await this.#pause(this.#delayMs());
    }
  }

  /** Undefined: the dispatcher does not answer. One that restarts is asked again; its workers go on meanwhile. */
  async #ask(): Promise<DispatcherDescription | undefined> {
    try {
      const state = await this.#options.dispatcher.describe();
      this.#unanswered = 0;
      return state;
    } catch (cause) {
      const error = LeatError.from(cause);
      if (error.code === "unauthenticated") {
        this.#closed = true;
        this.#refused(error);
      }
      this.#unanswered++;
      if (!this.#closed) this.#fail("The dispatcher does not answer", error);
      return undefined;
    }
  }

  /** A fleet that does what it is told has no failures, even while it is told more. */
  #countFailures(): void {
    const isIdle = this.#starting.size + this.#stopping.size === 0;
    if (this.#hasFailed) this.#failures++;
    else if (this.#hasSucceeded || isIdle) this.#failures = 0;
    this.#hasFailed = this.#hasSucceeded = false;
  }

  #delayMs(): number {
    const { intervalMs = INTERVAL_MS } = this.#options;
    const doublings = Math.max(this.#unanswered, this.#failures);
    return Math.min(intervalMs * 2 ** doublings, Math.max(RETRY_MAX_MS, intervalMs));
  }

  #pause(ms: number): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      const { timer: after = systemTimer } = this.#options;
      const timer = after(ms, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #follow(state: DispatcherDescription): void {
    if (this.#closed) return;
    const { fleet } = this.#options;
    const { minWorkers, maxWorkers } = this.#limits;
    const names = fleet.names.filter((name) => !this.#stopping.has(name));
    const there = state.workers.filter(({ alive }) => alive);
    const gone = there.map(({ name }) => name).filter((name) => this.#ours.has(name));
    this.#ours = new Set([...names, ...this.#stopping.keys(), ...gone]);
    const others = there.filter((worker) => staysForAll(worker) && !this.#ours.has(worker.name));
    const missing = missingBeside(others, state.scaling, fleet.tags);
    const target = Math.min(maxWorkers, Math.max(minWorkers, missing));
    const running = names.length + this.#starting.size;
    const room = maxWorkers - this.#stopping.size;
    for (let count = running; count < Math.min(target, room); count++) {
      this.#start(count + 1, startReason(count + 1, missing, minWorkers, state.scaling.text));
    }
    // While some are starting it is not known who is the least useful.
    if (this.#starting.size > 0) return;
    for (const name of leastUseful(state, names).slice(0, Math.max(0, running - target))) {
      this.#stop(name, target, stopReason(missing, maxWorkers, state.scaling.text));
    }
  }

  #start(workers: number, reason: string): void {
    this.#tell({ action: "start", workers, reason });
    const starting = this.#done(
      () => this.#options.fleet.start(),
      "The fleet could not start a worker",
      (error) => error.code === "invalid_argument",
    ).finally(() => this.#starting.delete(starting));
    this.#starting.add(starting);
  }

  #stop(name: string, workers: number, reason: string): void {
    this.#tell({ action: "stop", worker: name, workers, reason });
    const stopping = this.#done(
      () => this.#options.fleet.stop(name),
      `The fleet could not stop worker "${name}" in order`,
    ).finally(() => this.#stopping.delete(name));
    this.#stopping.set(name, stopping);
  }

  /** Tells the fleet, and notes whether it did it; one that throws at once has failed as one that rejects. */
  async #done(
    tell: () => Promise<void>,
    failure: string,
    isFinal = (_error: LeatError) => false,
  ): Promise<void> {
    try {
      await tell();
      this.#hasSucceeded = true;
    } catch (cause) {
      const error = LeatError.from(cause);
      if (isFinal(error)) return this.#giveUp(failure, error);
      this.#hasFailed = true;
      this.#fail(failure, error);
    }
  }

  /** Trying again would come to the same. */
  #giveUp(what: string, cause: LeatError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#refused(new LeatError(cause.code, `${what}: ${cause.message}`, { cause }));
    this.#wake();
  }

  #fail(what: string, error: unknown): void {
    const workers = this.#options.fleet.names.length;
    const reason = `${what}: ${LeatError.from(error).message}`;
    this.#tell({ action: "fail", workers, reason });
  }

  /** Whoever is told decides nothing, and ends nothing by an error of its own. */
  #tell(step: ScalingStep): void {
    Promise.try(() => this.#options.onStep?.(step))
      .catch((error) => console.error("autoscale: onStep has failed:", error));
  }
}

/** One that drains will be gone: were it counted, two scalers would each stop for the other's sake. */
function staysForAll(
  { isPrivate, unreachable, figures }: DispatcherDescription["workers"][number],
): boolean {
  return isPrivate !== true && unreachable === undefined && figures?.draining !== true;
}

/** How many workers of a fleet are missing for what is wanted, where those of others are there. */
function missingBeside(
  others: DispatcherDescription["workers"],
  { wanted, minWorkers, pools = [] }: ScalingDescription,
  tags: readonly string[] | undefined,
): number {
  const served = pools.filter((pool) =>
    tags === undefined || mayRead(pool, null, { tags, process: null, isPrivate: false })
  );
  const most = Math.max(minWorkers, ...served.map((pool) => pool.wanted));
  const here = served.length === pools.length ? wanted : Math.min(wanted, most);
  const missing = served.map((pool) =>
    Math.min(wanted, pool.wanted) - others.filter((worker) => isOfPool(pool, worker)).length
  );
  return Math.max(here - others.length, ...missing);
}

/** Why there is to be a worker of that number, where `missing` are wanted of the fleet. */
function startReason(number: number, missing: number, min: number, dispatcher: string): string {
  if (number <= missing) return dispatcher;
  return `never fewer than ${min} here (--min, minWorkers), whatever is wanted: ${dispatcher}`;
}

/** Why one of the fleet is not to stay. */
function stopReason(missing: number, max: number, dispatcher: string): string {
  if (missing <= max) return dispatcher;
  return `never more than ${max} here (--max, maxWorkers), whatever is wanted: ${dispatcher}`;
}

/** Names of workers, those first that a cluster misses least; among equals the youngest. */
export function leastUseful(state: DispatcherDescription, names: readonly string[]): string[] {
  const known = new Map(state.workers.map((worker) => [worker.name, worker]));
  const useOf = (name: string): number => {
    const worker = known.get(name);
    if (worker === undefined || !worker.alive || worker.unreachable !== undefined) return -2;
    if (worker.noShard !== undefined) return -1;
    return worker.figures?.elementsPerSecond ?? 0;
  };
  return [...names].reverse().sort((a, b) => useOf(a) - useOf(b));
}

function systemTimer(delayMs: number, fn: () => void): { cancel(): void } {
  const timer = setTimeout(fn, delayMs);
  return { cancel: () => clearTimeout(timer) };
}

function checkLimits({ minWorkers = 0, maxWorkers, intervalMs = INTERVAL_MS }: ScalerOptions) {
  if (!(intervalMs > 0 && intervalMs <= INTERVAL_MAX_MS)) {
    throw new LeatError(
      "invalid_argument",
      `autoscale: intervalMs is ${intervalMs}; it must be above 0, and at most ${INTERVAL_MAX_MS}`,
    );
  }
  const isCount = (value: number) => Number.isInteger(value) && value >= 0;
  if (isCount(minWorkers) && isCount(maxWorkers) && maxWorkers >= Math.max(1, minWorkers)) {
    return { minWorkers, maxWorkers };
  }
  throw new LeatError(
    "invalid_argument",
    `autoscale: minWorkers is ${minWorkers} and maxWorkers ${maxWorkers}; they must be whole numbers, ` +
      "the first 0 or more, the second 1 or more and no less than the first",
  );
}

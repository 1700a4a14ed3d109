/** The scaler: keeps a fleet at the number of workers that their dispatcher wants. */
import type { DispatcherDescription } from "../../actors/dispatcher/protocol_figures.ts";
import type { ScalingDescription } from "../../actors/dispatcher/protocol_scaling.ts";
import { mayRead } from "../../actors/dispatcher/jobs/targets.ts";
import { isOfPool } from "../../actors/dispatcher/jobs/worker_pools.ts";
import { Sleep } from "../../actors/runtime/timers.ts";
import { isCount } from "../../core/count.ts";
import { LeatError } from "../../core/error.ts";
import { optionsOf, TIMER_MS_MAX } from "../../data/check.ts";

/** Time between requests to the dispatcher, in ms. */
const INTERVAL_MS = 5_000;
/** Limit of the wait after failures, in ms. The wait doubles with each failure. */
const RETRY_MAX_MS = 60_000;
/** Limit of the time of a start, in ms. A cloud may take minutes for a machine. */
export const START_TIMEOUT_MS = 600_000;

/** Workers that can be started and stopped. */
export interface WorkerFleet {
  /** Names of the running workers, oldest first, without those that are starting or stopping. */
  readonly names: readonly string[];
  /**
   * Tags that each of its workers has. If given, the scaler starts no worker for jobs that require
   * other tags.
   */
  readonly tags?: readonly string[];
  /**
   * Starts one more worker; resolves when it runs. It rejects with `invalid_argument` if no worker can
   * be started with these settings; the scaler then fails, unless workers of the fleet are alive. A
   * start counts as failed after ten minutes,
   * and if the worker ends by itself before the dispatcher lists it as alive.
   */
  start(): Promise<void>;
  /** Stops a worker after clients have fetched what it holds; resolves when it has ended. */
  stop(name: string): Promise<void>;
}

/** A step of a scaler, for logs. */
export interface ScalingStep {
  /** What the scaler did: `fail` if a start, a stop or a request to the dispatcher failed. */
  readonly action: "start" | "stop" | "fail";
  /** The worker that is stopped. */
  readonly worker?: string;
  /**
   * How many workers the fleet then has: after this start, or after all stops of one check. For
   * `fail`: how many run now.
   */
  readonly workers: number;
  /**
   * Why: the text of the dispatcher (`scaling.text`), or of the error. If `minWorkers` or
   * `maxWorkers` set the number, that limit comes before the dispatcher's text.
   */
  readonly reason: string;
}

/** Options of a scaler. */
export interface ScalerOptions {
  /** Reports how many workers are wanted: a `LocalCluster`, a `DispatcherServer`, or your own. */
  readonly dispatcher: { describe(): Promise<DispatcherDescription> };
  /** Starts and stops workers. */
  readonly fleet: WorkerFleet;
  /** The least number of workers of the fleet. Default 0. */
  readonly minWorkers?: number;
  /** Limit of the workers of the fleet. Stopping ones count until they have ended. */
  readonly maxWorkers: number;
  /** Time between requests to the dispatcher, in ms. Default 5,000. */
  readonly intervalMs?: number;
  /** Calls `fn` after `delayMs`. Default: the system's timers. */
  readonly timer?: (delayMs: number, fn: () => void) => { cancel(): void };
  /** Called for each step. An error that it throws goes to the console, and does not affect the scaler. */
  readonly onStep?: (step: ScalingStep) => void;
}

const scalerOptions = optionsOf<ScalerOptions>("autoscale", {
  dispatcher: true,
  fleet: true,
  minWorkers: true,
  maxWorkers: true,
  intervalMs: true,
  timer: true,
  onStep: true,
});

/** A running scaler. */
export interface Scaler extends AsyncDisposable {
  /**
   * Resolves when retries cannot help: the dispatcher requires another token (`unauthenticated`) or
   * another role (`permission_denied`), or was no dispatcher from the beginning
   * (`failed_precondition`), or no worker can be started with these settings and none of the fleet is
   * alive (`invalid_argument`).
   * The scaler then starts and stops nothing more; close it.
   */
  readonly failed: Promise<LeatError>;
  /** Starts and stops nothing more; resolves when steps in progress have ended. Idempotent. */
  close(): Promise<void>;
}

/**
 * Keeps a fleet at the number of workers that its dispatcher wants, within limits. Workers outside
 * the fleet count if they can be reached, but only for jobs that they may serve: if four are wanted
 * and two were started by hand, the fleet gets two. A worker that dies is replaced. The scaler stops
 * the least useful first: unreachable ones, those without work under a static policy, then the slowest.
 *
 * Run one scaler for each dispatcher, because scalers do not know of each other. Two of them both
 * start the missing workers, and then one stops its own. If both stop a worker at the same time, both
 * start one again.
 * @throws {LeatError} `invalid_argument` for invalid limits or an invalid interval.
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
  return new FleetScaler(scalerOptions(options));
}

class FleetScaler implements Scaler {
  readonly failed: Promise<LeatError>;
  readonly #options: ScalerOptions;
  readonly #limits: { readonly minWorkers: number; readonly maxWorkers: number };
  readonly #starting = new Set<Promise<void>>();
  readonly #stopping = new Map<string, Promise<void>>();
  /** Names of the fleet's workers, including ended ones that the dispatcher still lists as alive. */
  #fleetNames = new Set<string>();
  readonly #loop: Promise<void>;
  /** Started workers that the dispatcher has not listed as alive: it may refuse them. */
  readonly #unlisted = new Set<string>();
  /** Whether a worker of the fleet was alive at the last check. */
  #hasAlive = false;
  /** The workers that the fleet had when it last said. */
  #lastNames: readonly string[] = [];
  #hasAnswered = false;
  /** Consecutive checks in which the dispatcher did not answer. */
  #unanswered = 0;
  /** Consecutive checks in which the fleet failed. */
  #failures = 0;
  /** Whether any call to the fleet since the last check failed, or succeeded. */
  #hasFailed = false;
  #hasSucceeded = false;
  #closed = false;
  readonly #resolveFailed: (error: LeatError) => void;
  readonly #pause = new Sleep();

  constructor(options: ScalerOptions) {
    this.#options = options;
    this.#limits = checkLimits(options);
    ({ promise: this.failed, resolve: this.#resolveFailed } = Promise.withResolvers<LeatError>());
    this.#loop = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#pause.wake();
    await Promise.all([this.#loop, ...this.#starting, ...this.#stopping.values()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const { timer = systemTimer } = this.#options;
    while (!this.#closed) {
      const state = await this.#describe();
      try {
        if (state !== undefined) this.#apply(state);
      } catch (error) {
        this.#hasFailed = true;
        this.#fail("The fleet could not be scaled", error);
      }
      this.#countFailures();
      if (!this.#closed) await this.#pause.begin({ timer }, this.#delayMs());
    }
  }

  /** The dispatcher's state. Undefined if it does not answer: it may be restarting. */
  async #describe(): Promise<DispatcherDescription | undefined> {
    try {
      const state = await this.#options.dispatcher.describe();
      this.#unanswered = 0;
      this.#hasAnswered = true;
      return state;
    } catch (cause) {
      const error = LeatError.from(cause);
      if (this.#isFinal(error)) {
        this.#closed = true;
        this.#resolveFailed(error);
      }
      this.#unanswered++;
      if (!this.#closed) this.#fail("The dispatcher does not answer", error);
      return undefined;
    }
  }

  /**
   * Whether asking again cannot help. While a known dispatcher restarts, a proxy in front of it may
   * answer with a page of its own, which is no dispatcher.
   */
  #isFinal({ code }: LeatError): boolean {
    return code === "unauthenticated" || code === "permission_denied" ||
      code === "failed_precondition" && !this.#hasAnswered;
  }

  /**
   * Counts consecutive checks in which a call failed. A check in which none failed resets the
   * count, if a call succeeded or no call is open. A start is open until its worker is listed.
   */
  #countFailures(): void {
    const isIdle = this.#starting.size + this.#unlisted.size + this.#stopping.size === 0;
    if (this.#hasFailed) this.#failures++;
    else if (this.#hasSucceeded || isIdle) this.#failures = 0;
    this.#hasFailed = this.#hasSucceeded = false;
  }

  #delayMs(): number {
    const { intervalMs = INTERVAL_MS } = this.#options;
    const doublings = Math.max(this.#unanswered, this.#failures);
    return Math.min(intervalMs * 2 ** doublings, Math.max(RETRY_MAX_MS, intervalMs));
  }

  #apply(state: DispatcherDescription): void {
    if (this.#closed) return;
    const { fleet } = this.#options;
    const { minWorkers, maxWorkers } = this.#limits;
    const names = fleet.names.filter((name) => !this.#stopping.has(name));
    const alive = state.workers.filter(({ alive }) => alive);
    this.#judgeStarts(names, alive);
    this.#hasAlive = alive.some(({ name }) => names.includes(name));
    const stillListed = alive.map(({ name }) => name).filter((name) => this.#fleetNames.has(name));
    this.#fleetNames = new Set([...names, ...this.#stopping.keys(), ...stillListed]);
    const others = alive.filter((worker) =>
      countsForFleet(worker) && !this.#fleetNames.has(worker.name)
    );
    const wantedOfFleet = wantedBeside(others, state.scaling, fleet.tags);
    const target = Math.min(maxWorkers, Math.max(minWorkers, wantedOfFleet));
    const running = names.length + this.#starting.size;
    const runningMax = maxWorkers - this.#stopping.size;
    for (let count = running; count < Math.min(target, runningMax); count++) {
      this.#start(count + 1, startReason(count + 1, wantedOfFleet, minWorkers, state.scaling.text));
    }
    // While workers are starting, the scaler cannot know which worker is the least useful.
    if (this.#starting.size > 0) return;
    for (const name of leastUseful(state, names).slice(0, Math.max(0, running - target))) {
      this.#stop(name, target, stopReason(wantedOfFleet, maxWorkers, state.scaling.text));
    }
  }

  /** Records which of the started workers have registered, and which have ended instead. */
  #judgeStarts(names: readonly string[], alive: DispatcherDescription["workers"]): void {
    for (const name of this.#unlisted) {
      if (alive.some((worker) => worker.name === name)) this.#hasSucceeded = true;
      else if (names.includes(name)) continue;
      else {
        this.#hasFailed = true;
        this.#fail(
          "The fleet could not start a worker",
          new LeatError(
            "unavailable",
            `"${name}" ended by itself before a check found it at the dispatcher. See its log`,
          ),
        );
      }
      this.#unlisted.delete(name);
    }
  }

  #start(workers: number, reason: string): void {
    this.#report({ action: "start", workers, reason });
    const starting = this.#callFleet(
      () => this.#startWorker(),
      "The fleet could not start a worker",
      // Workers that are alive started with the same settings. Without them nothing would be left.
      (error) => error.code === "invalid_argument" && !this.#hasAlive,
    ).finally(() => this.#starting.delete(starting));
    this.#starting.add(starting);
  }

  /** Calls the fleet, with a time limit: while a worker starts, the scaler stops none. */
  async #startWorker(): Promise<void> {
    const { fleet, timer = systemTimer } = this.#options;
    const started = fleet.start();
    const late = Promise.withResolvers<never>();
    const limit = timer(START_TIMEOUT_MS, () => {
      const minutes = START_TIMEOUT_MS / 60_000;
      late.reject(new LeatError("deadline_exceeded", `It took longer than ${minutes} minutes`));
    });
    try {
      await Promise.race([started, late.promise]);
    } finally {
      limit.cancel();
    }
    for (const name of this.#names()) {
      if (!this.#fleetNames.has(name)) this.#unlisted.add(name);
    }
  }

  #stop(name: string, workers: number, reason: string): void {
    this.#report({ action: "stop", worker: name, workers, reason });
    this.#unlisted.delete(name);
    const stopping = this.#callFleet(
      async () => {
        await this.#options.fleet.stop(name);
        this.#hasSucceeded = true;
      },
      `The fleet could not stop worker "${name}" gracefully`,
    ).finally(() => this.#stopping.delete(name));
    this.#stopping.set(name, stopping);
  }

  /** Calls the fleet, and records a failure. A synchronous throw counts like a rejection. */
  async #callFleet(
    call: () => Promise<void>,
    failure: string,
    isFinal = (_error: LeatError) => false,
  ): Promise<void> {
    try {
      await call();
    } catch (cause) {
      const error = LeatError.from(cause);
      if (isFinal(error)) return this.#giveUp(failure, error);
      this.#hasFailed = true;
      this.#fail(failure, error);
    }
  }

  /** Ends the scaler, because a retry would fail the same way. */
  #giveUp(what: string, cause: LeatError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#resolveFailed(new LeatError(cause.code, `${what}: ${cause.message}`, { cause }));
    this.#pause.wake();
  }

  #fail(what: string, error: unknown): void {
    const workers = this.#names().length;
    const reason = `${what}: ${LeatError.from(error).message}`;
    this.#report({ action: "fail", workers, reason });
  }

  /** The workers that run now, or ran when the fleet last said: `names` may be what failed. */
  #names(): readonly string[] {
    try {
      this.#lastNames = [...this.#options.fleet.names];
    } catch {
      // Each check reports that `names` fails.
    }
    return this.#lastNames;
  }

  /** Calls the listener. An error that it throws only goes to the console. */
  #report(step: ScalingStep): void {
    Promise.try(() => this.#options.onStep?.(step))
      .catch((error) => console.error("autoscale: onStep has failed:", error));
  }
}

/**
 * Whether a worker outside the fleet counts. A draining one does not: otherwise two scalers would each
 * drain a worker, because each counts on the other's.
 */
function countsForFleet(
  { isPrivate, unreachable, figures }: DispatcherDescription["workers"][number],
): boolean {
  return isPrivate !== true && unreachable === undefined && figures?.draining !== true;
}

/**
 * How many workers the fleet should have beside `others`: enough in all, and enough for each job
 * that it can serve.
 */
function wantedBeside(
  others: DispatcherDescription["workers"],
  { wanted, minWorkers, pools = [] }: ScalingDescription,
  tags: readonly string[] | undefined,
): number {
  const served = pools.filter((pool) =>
    tags === undefined || mayRead(pool, null, { tags, process: null, isPrivate: false })
  );
  const most = Math.max(minWorkers, ...served.map((pool) => pool.wanted));
  const total = served.length === pools.length ? wanted : Math.min(wanted, most);
  const ofPools = served.map((pool) =>
    Math.min(wanted, pool.wanted) - others.filter((worker) => isOfPool(pool, worker)).length
  );
  return Math.max(total - others.length, ...ofPools);
}

/** Why the fleet grows to `number` workers, if the dispatcher wants it to have `wantedOfFleet`. */
function startReason(
  number: number,
  wantedOfFleet: number,
  min: number,
  dispatcher: string,
): string {
  if (number <= wantedOfFleet) return dispatcher;
  return `never fewer than ${min} here (--min, minWorkers), whatever is wanted: ${dispatcher}`;
}

/** Why a worker of the fleet is stopped. */
function stopReason(wantedOfFleet: number, max: number, dispatcher: string): string {
  if (wantedOfFleet <= max) return dispatcher;
  return `never more than ${max} here (--max, maxWorkers), whatever is wanted: ${dispatcher}`;
}

/** Sorts names of workers: least useful first, and among equals the youngest first. */
export function leastUseful(state: DispatcherDescription, names: readonly string[]): string[] {
  const workers = new Map(state.workers.map((worker) => [worker.name, worker]));
  const useOf = (name: string): number => {
    const worker = workers.get(name);
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
  if (!(intervalMs > 0 && intervalMs <= TIMER_MS_MAX)) {
    throw new LeatError(
      "invalid_argument",
      `autoscale: intervalMs is ${intervalMs}; it must be above 0, and at most ${TIMER_MS_MAX}`,
    );
  }
  if (isCount(minWorkers) && isCount(maxWorkers) && maxWorkers >= Math.max(1, minWorkers)) {
    return { minWorkers, maxWorkers };
  }
  throw new LeatError(
    "invalid_argument",
    `autoscale: minWorkers is ${minWorkers} and maxWorkers ${maxWorkers}; they must be whole numbers, ` +
      "the first 0 or more, the second 1 or more and no less than the first",
  );
}

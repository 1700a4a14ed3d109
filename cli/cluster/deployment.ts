/**
 * A cluster of processes on this host: one dispatcher and some workers behind WebSockets.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { ChildProcess } from "./child_process.ts";
import { Children } from "./children.ts";

/** Short, so that a worker that was killed is missed while one looks on. */
export const WORKER_TIMEOUT_MS = 2_000;
/** Where none is to be killed: none that is only slow is given up, with what it has. */
export const WORKER_PATIENCE_MS = 60_000;
const HEARTBEAT_MS = 500;
/** What is left of a job when the cluster stops has nobody who wants it, unless it is said, in ms. */
const DRAIN_MS = 500;

/** What stands before a program: where it listens itself, and where it says that it does. */
export interface Front {
  readonly port: number;
  /** `host:port`. */
  readonly advertise: string;
}

/** How the programs are started. */
export interface DeploymentOptions {
  /** The folder of the dispatcher's journal; default: kept in memory. */
  readonly journal?: string;
  /** The window of DETERMINISTIC jobs. */
  readonly windowSplits?: number;
  /** The least grave lines of the logs. Default "warn". */
  readonly logLevel?: "info" | "warn";
  /** How long a worker may be silent before it is given up, in ms. Default 2,000. */
  readonly workerTimeoutMs?: number;
  /** Further arguments of the dispatcher. */
  readonly dispatcherArgs?: readonly string[];
  /** Further arguments of each worker. */
  readonly workerArgs?: readonly string[];
  /** How long clients may go on fetching from a worker that is stopped, in ms. Default 500. */
  readonly drainMs?: number;
  /** Deno's own flags, of all programs. */
  readonly flags?: readonly string[];
  /** Gets the lines of the programs' standard output, with the program's name. */
  readonly onOutput?: (name: string, line: string) => void;
  /** What stands before the program of that name. Default: nothing; it takes a free port. */
  readonly frontOf?: (name: string) => Front;
}

/** See the module. */
export class Deployment implements AsyncDisposable {
  /** The cluster's secret, which is this run's own. */
  readonly token: string = crypto.randomUUID();
  readonly #onLog: (line: string) => void;
  readonly #options: DeploymentOptions;
  #dispatcher: ChildProcess | undefined;
  #workers: ChildProcess[] = [];
  /** Workers that are stopped, or were. */
  readonly #leaving = new WeakSet<ChildProcess>();
  readonly #children = new Children<ChildProcess>();
  /** Starts that are under way: each has a file with the token, which it removes. */
  readonly #starting = new Set<Promise<void>>();
  #stopped: Promise<void> | undefined;

  /**
   * @param onLog Gets the log lines of all processes, with the process's name.
   * @param options See {@linkcode DeploymentOptions}.
   */
  constructor(onLog: (line: string) => void, options: DeploymentOptions = {}) {
    this.#onLog = onLog;
    this.#options = options;
  }

  /** The dispatcher's process. */
  get dispatcher(): ChildProcess {
    return this.#dispatcher!;
  }

  get workers(): readonly ChildProcess[] {
    return this.#workers;
  }

  /** Starts the dispatcher, then the workers; resolves when all listen. */
  async start(workers: number): Promise<void> {
    await this.#withToken(async (tokenFile) => {
      this.#dispatcher = await this.#startDispatcher(tokenFile);
      const numbers = Array.from({ length: workers }, (_, i) => i + 1);
      this.#workers = await Promise.all(
        numbers.map((number) => this.#startWorker(`worker-${number}`, tokenFile)),
      );
    });
  }

  /** Starts one more worker. */
  async add(name: string): Promise<void> {
    await this.#withToken(async (tokenFile) => {
      const worker = await this.#startWorker(name, tokenFile);
      // Others may have come or gone meanwhile.
      this.#workers = [...this.#workers, worker];
    });
  }

  /**
   * Stops a worker once clients have fetched what it holds, and kills it after `timeoutMs`. It is among
   * the others until it has ended, and is not started again.
   */
  async remove(worker: ChildProcess, timeoutMs: number): Promise<void> {
    this.#leaving.add(worker);
    await worker.stop(timeoutMs);
    this.#workers = this.#workers.filter((other) => other !== worker);
  }

  /** Starts a program that has ended again, under its name and, for the dispatcher, its address. */
  async restart(child: ChildProcess): Promise<void> {
    if (this.#leaving.has(child)) return;
    await this.#withToken(async (tokenFile) => {
      if (child === this.#dispatcher) {
        this.#dispatcher = await this.#startDispatcher(tokenFile, new URL(child.address).port);
      } else {
        const again = await this.#startWorker(child.name, tokenFile);
        this.#workers = this.#workers.map((worker) => worker === child ? again : worker);
      }
    });
  }

  /** Stops all processes. Idempotent. */
  stop(): Promise<void> {
    return this.#stopped ??= this.#stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** By a file: the arguments of a process are there for all to see. */
  async #withToken(start: (tokenFile: string) => Promise<void>): Promise<void> {
    this.#requireOpen();
    const starting = this.#startWith(start);
    this.#starting.add(starting);
    try {
      await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async #startWith(start: (tokenFile: string) => Promise<void>): Promise<void> {
    const tokenFile = await Deno.makeTempFile({ prefix: "leat-cluster-" });
    try {
      await Deno.writeTextFile(tokenFile, this.token);
      await start(tokenFile);
    } finally {
      await this.#children.running();
      await Deno.remove(tokenFile);
    }
  }

  #requireOpen(): void {
    if (this.#stopped === undefined) return;
    throw new LeatError("cancelled", "Nothing more is started: the cluster is being stopped");
  }

  #startDispatcher(tokenFile: string, port = "0"): Promise<ChildProcess> {
    const { journal, windowSplits, workerTimeoutMs = WORKER_TIMEOUT_MS, dispatcherArgs = [] } =
      this.#options;
    return this.#start("dispatcher", "cli/dispatcher.ts", port, [
      ...["--token-file", tokenFile],
      ...["--worker-timeout-ms", `${workerTimeoutMs}`],
      ...(journal === undefined ? [] : ["--journal", journal]),
      ...(windowSplits === undefined ? [] : ["--window-splits", `${windowSplits}`]),
      ...dispatcherArgs,
    ]);
  }

  #startWorker(name: string, tokenFile: string): Promise<ChildProcess> {
    const { address } = this.dispatcher;
    return this.#start(name, "cli/worker.ts", "0", [
      ...["--dispatcher", address, "--name", name, "--token-file", tokenFile],
      ...["--heartbeat-ms", `${HEARTBEAT_MS}`],
      ...["--drain-ms", `${this.#options.drainMs ?? DRAIN_MS}`],
      ...(this.#options.workerArgs ?? []),
    ]);
  }

  #start(
    name: string,
    program: string,
    ownPort: string,
    args: readonly string[],
  ): Promise<ChildProcess> {
    this.#requireOpen();
    const { logLevel = "warn", frontOf, flags = [], onOutput } = this.#options;
    const front = frontOf?.(name);
    const place = front === undefined
      ? ["--port", ownPort]
      : ["--port", `${front.port}`, "--advertise", front.advertise];
    const child = ChildProcess.start(
      name,
      program,
      [...place, "--log-level", logLevel, ...args],
      {
        flags,
        onLog: (line) => this.#onLog(`${name}: ${line}`),
        onOutput: (line) => onOutput?.(name, line),
      },
    );
    this.#children.add(child);
    return child;
  }

  /** The workers first: they say good-bye to the dispatcher. */
  async #stop(): Promise<void> {
    const children = await this.#children.running();
    const isWorker = (child: ChildProcess) => child !== this.#dispatcher;
    await Promise.all(children.filter(isWorker).map((worker) => worker.stop()));
    await this.#dispatcher?.stop();
    await Promise.allSettled(this.#starting);
  }
}

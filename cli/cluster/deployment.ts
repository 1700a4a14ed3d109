/** A cluster of processes on this host: one dispatcher and some workers behind WebSockets. */
import { join } from "node:path";
import { LeatError } from "../../core/error.ts";
import { makeTemporaryFolder, removeInUse } from "../lib/folders.ts";
import { ChildProcess } from "./child_process.ts";
import { Children } from "./children.ts";

/** The worker timeout of clusters with kills, in ms. Short, so that the dispatcher soon notices them. */
export const WORKER_TIMEOUT_MS = 2_000;
/** The worker timeout without kills, in ms. Long, so that no slow worker loses its splits. */
export const WORKER_TIMEOUT_LONG_MS = 60_000;
const HEARTBEAT_MS = 500;
/** Drain time when the cluster stops, in ms. It is short: usually no client wants the rest of a job. */
const DRAIN_MS = 500;

/** A proxy in front of a program. */
interface ProxyAddress {
  readonly port: number;
  /** The address that the program advertises: the proxy's, `host:port`. */
  readonly advertise: string;
}

export interface DeploymentOptions {
  /** The folder of the dispatcher's journal. Default: the journal is in memory. */
  readonly journal?: string;
  /** How many splits of a DETERMINISTIC job are assigned ahead. */
  readonly windowSplits?: number;
  /** The lowest log level to print. Default "warn". */
  readonly logLevel?: "info" | "warn";
  /** Time without heartbeats after which a worker is lost, in ms. Default 2,000. */
  readonly workerTimeoutMs?: number;
  /** Further arguments of the dispatcher. */
  readonly dispatcherArgs?: readonly string[];
  /** Further arguments of each worker. */
  readonly workerArgs?: readonly string[];
  /** How long clients may fetch from a worker that is stopped, in ms. Default 500. */
  readonly drainMs?: number;
  /** Deno's own flags, for all programs. */
  readonly flags?: readonly string[];
  /** Receives the lines of the programs' standard output, with the program's name. */
  readonly onOutput?: (name: string, line: string) => void;
  /** The proxy in front of the program with this name. Default: none, and the program takes a free port. */
  readonly frontOf?: (name: string) => ProxyAddress;
}

/** A dispatcher and workers, each in a process of its own. */
export class Deployment implements AsyncDisposable {
  /** The cluster's token, random for each run. */
  readonly token: string = crypto.randomUUID();
  readonly #onLog: (line: string) => void;
  readonly #options: DeploymentOptions;
  #dispatcher: ChildProcess | undefined;
  #workers: ChildProcess[] = [];
  /** Workers that are stopping, or have stopped. */
  readonly #leaving = new WeakSet<ChildProcess>();
  readonly #children = new Children<ChildProcess>();
  /** Starts in progress. Each has a file with the token, and removes the file when it ends. */
  readonly #starting = new Set<Promise<void>>();
  #stopped: Promise<void> | undefined;

  /**
   * @param onLog Receives the log lines of all processes, with the process's name.
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
      // The list may have changed while the worker started.
      this.#workers = [...this.#workers, worker];
    });
  }

  /**
   * Stops a worker after clients have fetched what it holds, and kills it after `timeoutMs`. The
   * worker stays in the list until it has ended. `restart` ignores it.
   */
  async remove(worker: ChildProcess, timeoutMs: number): Promise<void> {
    this.#leaving.add(worker);
    await worker.stop(timeoutMs);
    this.#workers = this.#workers.filter((other) => other !== worker);
  }

  /** Restarts an ended program under its name and, for the dispatcher, its address. */
  async restart(child: ChildProcess): Promise<void> {
    if (this.#leaving.has(child)) return;
    await this.#withToken(async (tokenFile) => {
      if (child === this.#dispatcher) {
        this.#dispatcher = await this.#startDispatcher(tokenFile, new URL(child.address).port);
      } else {
        const restarted = await this.#startWorker(child.name, tokenFile);
        this.#workers = this.#workers.map((worker) => worker === child ? restarted : worker);
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

  /** Passes the token in a file, because other users can see the arguments of a process. */
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
    const folder = makeTemporaryFolder("leat-cluster-");
    const tokenFile = join(folder, "token");
    try {
      await Deno.writeTextFile(tokenFile, this.token);
      await start(tokenFile);
    } finally {
      await this.#children.running();
      removeInUse(folder);
    }
  }

  #requireOpen(): void {
    if (this.#stopped === undefined) return;
    throw new LeatError("cancelled", "Cannot start a program: the cluster is being stopped");
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
    const listening = front === undefined
      ? ["--port", ownPort]
      : ["--port", `${front.port}`, "--advertise", front.advertise];
    const child = ChildProcess.start(
      name,
      program,
      [...listening, "--log-level", logLevel, ...args],
      {
        flags,
        onLog: (line) => this.#onLog(`${name}: ${line}`),
        onOutput: (line) => onOutput?.(name, line),
      },
    );
    this.#children.add(child);
    return child;
  }

  /** Stops the workers first, because they deregister at the dispatcher. */
  async #stop(): Promise<void> {
    const children = await this.#children.running();
    const isWorker = (child: ChildProcess) => child !== this.#dispatcher;
    await Promise.all(children.filter(isWorker).map((worker) => worker.stop()));
    await this.#dispatcher?.stop();
    await Promise.allSettled(this.#starting);
  }
}

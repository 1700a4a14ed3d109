/** Workers as processes on this host, which a scaler starts and stops. */
import type { LeatError } from "../../core/error.ts";
import type { WorkerFleet } from "../../mod.ts";
import { ChildProcess } from "./child_process.ts";

/** Time for a worker to stop after its drain time, in ms. */
const STOP_MARGIN_MS = 5_000;

interface ProcessFleetOptions {
  /** The prefix of the workers' names, before a number. */
  readonly prefix: string;
  /** The arguments of every worker, including `--dispatcher`. */
  readonly args: readonly string[];
  /** The tags in `args`. */
  readonly tags: readonly string[];
  /** How long clients may fetch from a worker that is stopped, in ms. */
  readonly drainMs: number;
  /** Receives the log lines of all workers. */
  readonly onLog: (line: string) => void;
}

/** Workers as processes on this host. */
export class ProcessFleet implements WorkerFleet, AsyncDisposable {
  readonly #options: ProcessFleetOptions;
  readonly #running = new Map<string, ChildProcess>();
  /** The processes of running and stopping workers. */
  readonly #children = new Set<ChildProcess>();
  /** Names of starting, running and stopping workers. */
  readonly #usedNames = new Set<string>();
  readonly #ending = new Set<Promise<void>>();
  /**
   * Why a worker ended, if all others with these settings would end the same way. Only the next start
   * fails with it: what the settings name, such as a file of a token, may have been mended by then.
   */
  #refusal: LeatError | undefined;
  #stopped = false;

  constructor(options: ProcessFleetOptions) {
    this.#options = options;
  }

  get names(): readonly string[] {
    return [...this.#running.keys()];
  }

  get tags(): readonly string[] {
    return this.#options.tags;
  }

  async start(): Promise<void> {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    if (refusal !== undefined) throw refusal;
    const { args, drainMs, onLog } = this.#options;
    const name = this.#freeName();
    this.#usedNames.add(name);
    try {
      const child = await ChildProcess.start(name, "cli/worker.ts", [
        ...args,
        ...[`--name=${name}`, `--drain-ms=${drainMs}`],
      ], { onLog: (line) => onLog(`${name}: ${line}`) });
      this.#children.add(child);
      const ending = child.ended.then((end) => this.#ended(child, end))
        .finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
      if (this.#stopped) return await child.stop();
      this.#running.set(name, child);
    } catch (error) {
      this.#usedNames.delete(name);
      throw error;
    }
  }

  async stop(name: string): Promise<void> {
    const child = this.#running.get(name);
    if (child === undefined) return;
    this.#running.delete(name);
    await child.stop(this.#options.drainMs + STOP_MARGIN_MS);
  }

  /** Kills all workers. One that is already stopping would drain on after this program's end. */
  kill(): void {
    for (const child of this.#children) child.kill();
  }

  /** Stops all workers at the same time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.names.map((name) => this.stop(name)));
    await Promise.all(this.#ending);
  }

  /**
   * Finds a free name. Names are reused, so that metrics and the dispatcher's list of workers do not
   * grow.
   */
  #freeName(): string {
    for (let number = 1;; number++) {
      const name = `${this.#options.prefix}-${number}`;
      if (!this.#usedNames.has(name)) return name;
    }
  }

  #ended(child: ChildProcess, end: string): void {
    const { name } = child;
    this.#children.delete(child);
    this.#usedNames.delete(name);
    if (!this.#running.delete(name)) return;
    this.#options.onLog(`${name}: ended by itself (${end})`);
    const { failure } = child;
    if (failure.code === "invalid_argument") this.#refusal = failure;
  }
}

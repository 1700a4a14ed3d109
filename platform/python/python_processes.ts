/**
 * Runs Python processes, at most one per core. They start when needed, and pipelines share them.
 * Identities take turns, and so do the pipelines of each.
 */
import { Fifo } from "../../actors/runtime/fifo.ts";
import { Turns } from "../../actors/worker/runner/turns.ts";
import { LeatError } from "../../core/error.ts";
import type { PythonBatch, PythonPool } from "./python_pool.ts";
import type { PythonLimits, PythonProcess } from "./python_process.ts";

/** What the pool uses of a {@linkcode PythonProcess}. */
type PythonCaller = Pick<PythonProcess, "call" | "isAlive" | "kill">;

/** A pipeline that calls Python functions. */
interface Client {
  readonly owner: string;
  readonly queue: Fifo<Job>;
  /** The processes that run its calls now. */
  readonly processes: Set<PythonCaller>;
  isClosed: boolean;
}

interface Job {
  readonly batch: PythonBatch;
  resolve(outcomes: Uint8Array): void;
  reject(error: LeatError): void;
}

export class PythonProcesses {
  readonly #idle: PythonCaller[] = [];
  #busy = 0;
  /** Open clients that have called a function. When the last one closes, the processes end. */
  readonly #clients = new Set<Client>();
  /**
   * The clients of each identity with waiting calls. The first is served next and then moves to the end
   * (round robin).
   */
  readonly #turns = new Turns(() => new Set<Client>());
  readonly #start: () => Promise<PythonCaller>;

  constructor(
    interpreter: string,
    limits: PythonLimits = {},
    start = () => startProcess(interpreter, limits),
  ) {
    this.#start = start;
  }

  /**
   * Opens the pool for one more pipeline.
   * @param owner The identity whose pipeline it is. Default: that of this program.
   */
  open(owner = ""): PythonPool {
    const client: Client = { owner, queue: new Fifo(), processes: new Set(), isClosed: false };
    return {
      run: (batch) => this.#enqueue(client, batch),
      close: () => this.#close(client),
    };
  }

  #enqueue(client: Client, batch: PythonBatch): Promise<Uint8Array> {
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    if (client.isClosed) reject(closed());
    else {
      this.#clients.add(client);
      client.queue.push({ batch, resolve, reject });
      this.#turns.queueOf(client.owner).add(client);
      this.#dispatch();
    }
    return promise;
  }

  #dispatch(): void {
    while (this.#busy < navigator.hardwareConcurrency) {
      const turn = this.#turns.begin();
      if (turn === undefined) return;
      const client = turn.queue.values().next().value!;
      turn.queue.delete(client);
      const job = client.queue.shift()!;
      if (client.queue.length > 0) turn.queue.add(client);
      this.#run(client, job);
    }
  }

  async #run(client: Client, { batch, resolve, reject }: Job): Promise<void> {
    this.#busy++;
    let process: PythonCaller | undefined;
    try {
      process = this.#idleProcess() ?? await this.#start();
      if (client.isClosed) throw closed();
      client.processes.add(process);
      resolve(await process.call(batch));
    } catch (error) {
      reject(LeatError.from(error));
    }
    this.#busy--;
    this.#turns.end(client.owner);
    if (process !== undefined) {
      client.processes.delete(process);
      if (process.isAlive) this.#idle.push(process);
    }
    if (this.#clients.size === 0) this.#endIdle();
    this.#dispatch();
  }

  /** Takes an idle process; drops those that have ended meanwhile. */
  #idleProcess(): PythonCaller | undefined {
    for (let process = this.#idle.pop(); process !== undefined; process = this.#idle.pop()) {
      if (process.isAlive) return process;
    }
    return undefined;
  }

  #close(client: Client): void {
    client.isClosed = true;
    this.#clients.delete(client);
    this.#turns.queueOf(client.owner).delete(client);
    this.#turns.forgetIdle(client.owner);
    for (let job = client.queue.shift(); job !== undefined; job = client.queue.shift()) {
      job.reject(closed());
    }
    for (const process of client.processes) process.kill();
    if (this.#clients.size === 0) this.#endIdle();
  }

  #endIdle(): void {
    for (const process of this.#idle) process.kill();
    this.#idle.length = 0;
  }
}

async function startProcess(interpreter: string, limits: PythonLimits): Promise<PythonCaller> {
  // Loaded lazily: most programs call no Python.
  const { PythonProcess } = await import("./python_process.ts");
  return new PythonProcess(interpreter, limits);
}

function closed(): LeatError {
  return new LeatError("cancelled", "The pipeline that called the Python function was closed");
}

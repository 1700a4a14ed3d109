/**
 * Runs Python processes, at most one per core at a time. They start when needed, and pipelines share
 * them. A process calls only functions of files in one folder: a file imports others in its folder,
 * and Python would take one of the same name that a file in another folder has imported.
 * Identities take turns, and so do the pipelines of each.
 */
import { dirname } from "node:path";
import { Turns } from "../../actors/worker/runner/turns.ts";
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { PythonBatch, PythonPool } from "./python_pool.ts";
import type { PythonLimits, PythonProcess } from "./python_process.ts";

/**
 * Limit of the processes per core, of which one runs: so two folders never end each other's processes
 * only because their calls alternate. If more folders are in use than fit, a call may wait until a
 * process starts, because that of its folder was ended for another.
 */
const PROCESSES_PER_CORE = 2;

/** What the pool uses of a {@linkcode PythonProcess}. */
type PythonCaller = Pick<PythonProcess, "call" | "isAlive" | "kill">;

/** A pipeline that calls Python functions. */
interface Client {
  readonly owner: string;
  readonly queue: Fifo<Job>;
  /** How many calls wait, for each folder whose functions it has called. */
  readonly waiting: Map<string, number>;
  /** The processes that run its calls now. */
  readonly processes: Set<PythonCaller>;
  isClosed: boolean;
}

interface Job {
  readonly batch: PythonBatch;
  resolve(outcomes: Uint8Array): void;
  reject(error: LeatError): void;
}

interface IdleProcess {
  /** The folder of the files whose functions it has called. */
  readonly folder: string;
  readonly process: PythonCaller;
}

export class PythonProcesses {
  /** The one that was used last is at the end. */
  #idle: IdleProcess[] = [];
  #busy = 0;
  /** Open clients that have called a function. */
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
    const client: Client = {
      owner,
      queue: new Fifo(),
      waiting: new Map(),
      processes: new Set(),
      isClosed: false,
    };
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
      countWaiting(client, batch, 1);
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
      countWaiting(client, job.batch, -1);
      if (client.queue.length > 0) turn.queue.add(client);
      this.#run(client, job);
    }
  }

  async #run(client: Client, { batch, resolve, reject }: Job): Promise<void> {
    this.#busy++;
    const folder = dirname(batch.file);
    let process: PythonCaller | undefined;
    try {
      process = this.#idleProcess(folder) ?? await this.#startAnother();
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
      if (process.isAlive) this.#idle.push({ folder, process });
    }
    if (client.isClosed) this.#endUnused();
    this.#dispatch();
  }

  /** Takes an idle process of a folder; drops those that have ended meanwhile. */
  #idleProcess(folder: string): PythonCaller | undefined {
    this.#idle = this.#idle.filter(({ process }) => process.isAlive);
    const last = this.#idle.findLastIndex((idle) => idle.folder === folder);
    return last < 0 ? undefined : this.#idle.splice(last, 1)[0]!.process;
  }

  /**
   * Starts a process. At the limit ends the idle one that was used least recently; one of a folder with
   * a waiting call only if there are no others.
   */
  #startAnother(): Promise<PythonCaller> {
    if (this.#busy + this.#idle.length > PROCESSES_PER_CORE * navigator.hardwareConcurrency) {
      const unwaited = this.#idle.findIndex(({ folder }) =>
        !this.#clients.values().some(({ waiting }) => (waiting.get(folder) ?? 0) > 0)
      );
      this.#idle.splice(Math.max(unwaited, 0), 1)[0]!.process.kill();
    }
    return this.#start();
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
    this.#endUnused();
  }

  /** Ends the idle processes of folders that no open client has called. */
  #endUnused(): void {
    this.#idle = this.#idle.filter(({ folder, process }) => {
      const isUsed = this.#clients.values().some(({ waiting }) => waiting.has(folder));
      if (!isUsed) process.kill();
      return isUsed;
    });
  }
}

function countWaiting({ waiting }: Client, { file }: PythonBatch, more: 1 | -1): void {
  const folder = dirname(file);
  waiting.set(folder, (waiting.get(folder) ?? 0) + more);
}

async function startProcess(interpreter: string, limits: PythonLimits): Promise<PythonCaller> {
  // Loaded lazily: most programs call no Python.
  const { PythonProcess } = await import("./python_process.ts");
  return new PythonProcess(interpreter, limits);
}

function closed(): LeatError {
  return new LeatError("cancelled", "The pipeline that called the Python function was closed");
}

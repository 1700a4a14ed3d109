/** Calls functions of Python in processes: one per core, started when they are needed, and kept. */
import { Fifo } from "../../actors/runtime/fifo.ts";
import { LeatError, type WireError } from "../../core/error.ts";
import type { PythonCallee, PythonRunner } from "../../data/host.ts";
import type { PythonProcess } from "./python_process.ts";

/** Most calls in a request: enough that its cost does not count. */
const CALLS_MAX = 16;

interface Call {
  readonly callee: PythonCallee;
  readonly args: readonly unknown[];
  readonly seed: number;
  /** Whether it is sent without others, because a request with it failed as a whole. */
  readonly isAlone: boolean;
  resolve(result: unknown): void;
  reject(error: LeatError): void;
}

/** What a call gave. */
type Outcome = { readonly value: unknown } | { readonly error: WireError };

export class PythonProcesses implements PythonRunner {
  readonly #interpreter: string;
  readonly #alive = new Set<PythonProcess>();
  readonly #idle: PythonProcess[] = [];
  #running = 0;
  readonly #queue = new Fifo<Call>();
  /** The next call, taken from the queue, which could not go with those before it. */
  #first: Call | undefined;
  #isDue = false;

  constructor(interpreter: string) {
    this.#interpreter = interpreter;
  }

  call(callee: PythonCallee, args: readonly unknown[], seed: number): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#enqueue({ callee, args, seed, isAlone: false, resolve, reject });
    return promise;
  }

  /** Ends the processes: the pipelines that called them are closed. */
  close(): void {
    for (const process of this.#alive) process.kill();
  }

  /** Calls that are made at once go together. */
  #enqueue(call: Call): void {
    this.#queue.push(call);
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.#dispatch();
    });
  }

  #dispatch(): void {
    const processesMax = navigator.hardwareConcurrency;
    while (this.#running < processesMax) {
      const waiting = this.#queue.length + (this.#first === undefined ? 0 : 1);
      if (waiting === 0) return;
      this.#run(this.#take(Math.min(CALLS_MAX, Math.ceil(waiting / processesMax))));
    }
  }

  /** The next calls of one function, at most `count`. */
  #take(count: number): Call[] {
    const calls = [this.#next()!];
    const [{ callee, isAlone }] = calls as [Call];
    while (calls.length < count && !isAlone) {
      const next = this.#next();
      if (next === undefined) break;
      if (next.callee !== callee || next.isAlone) {
        this.#first = next;
        break;
      }
      calls.push(next);
    }
    return calls;
  }

  #next(): Call | undefined {
    const next = this.#first ?? this.#queue.shift();
    this.#first = undefined;
    return next;
  }

  async #run(calls: Call[]): Promise<void> {
    this.#running++;
    let process: PythonProcess | undefined;
    try {
      process = this.#idleProcess() ?? await this.#start();
      const { callee } = calls[0]!;
      const asked = { ...callee, calls: calls.map(({ args, seed }) => ({ args, seed })) };
      const outcomes = await process.ask("call", asked) as Outcome[];
      calls.forEach((call, i) => settle(call, outcomes[i]!));
    } catch (thrown) {
      this.#failed(calls, LeatError.from(thrown), process?.hasLoaded ?? false);
    }
    this.#running--;
    if (process?.isAlive) this.#idle.push(process);
    this.#dispatch();
  }

  async #start(): Promise<PythonProcess> {
    // Most threads call no Python.
    const { PythonProcess } = await import("./python_process.ts");
    const process = new PythonProcess(this.#interpreter, () => this.#alive.delete(process));
    this.#alive.add(process);
    return process;
  }

  /** A process that has ended while it was idle is replaced. */
  #idleProcess(): PythonProcess | undefined {
    for (let process = this.#idle.pop(); process !== undefined; process = this.#idle.pop()) {
      if (process.isAlive) return process;
    }
    return undefined;
  }

  /** Only the call that ended its process fails: the others are made again. */
  #failed(calls: readonly Call[], error: LeatError, mayRepeat: boolean): void {
    for (const call of calls) {
      if (calls.length === 1 || !mayRepeat) call.reject(error);
      else this.#enqueue({ ...call, isAlone: true });
    }
  }
}

function settle(call: Call, outcome: Outcome): void {
  if ("error" in outcome) call.reject(LeatError.fromWire(outcome.error));
  else call.resolve(outcome.value);
}

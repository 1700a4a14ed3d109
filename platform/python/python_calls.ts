/** Calls Python functions in a pool of processes. Calls made at the same time share requests. */
import { LeatError, type LeatErrorCode, type WireError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { PythonCallee, PythonRunner } from "../../data/host.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import type { PythonPool } from "./python_pool.ts";

/** Limit of the calls in a request: enough to make the cost of a request negligible. */
const CALLS_MAX = 16;

/** Codes of failures that each call would repeat, such as a missing file, or no interpreter. */
const OF_ALL_CALLS: ReadonlySet<LeatErrorCode> = new Set<LeatErrorCode>([
  "failed_precondition",
  "permission_denied",
  "not_found",
  "cancelled",
]);

interface Call {
  readonly callee: PythonCallee;
  readonly args: readonly unknown[];
  readonly seed: number;
  /** Whether the call is sent alone, because a request that contained it failed as a whole. */
  readonly isAlone: boolean;
  resolve(result: unknown): void;
  reject(error: LeatError): void;
}

/** The outcome of a call. */
type Outcome = { readonly value: unknown } | { readonly error: WireError };

export class PythonCalls implements PythonRunner {
  readonly #pool: PythonPool;
  #running = 0;
  readonly #queue = new Fifo<Call>();
  /** The next call, if it was taken from the queue but did not fit the previous request. */
  #first: Call | undefined;
  #isScheduled = false;

  constructor(pool: PythonPool) {
    this.#pool = pool;
  }

  call(callee: PythonCallee, args: readonly unknown[], seed: number): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#enqueue({ callee, args, seed, isAlone: false, resolve, reject });
    return promise;
  }

  /** Queues a call, and dispatches in a microtask, so that calls made at once share a request. */
  #enqueue(call: Call): void {
    this.#queue.push(call);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#dispatch();
    });
  }

  #dispatch(): void {
    const runningMax = navigator.hardwareConcurrency;
    while (this.#running < runningMax) {
      const waiting = this.#queue.length + (this.#first === undefined ? 0 : 1);
      if (waiting === 0) return;
      this.#run(this.#take(Math.min(CALLS_MAX, Math.ceil(waiting / runningMax))));
    }
  }

  /** Takes at most `count` of the next calls, all of one function. */
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

  async #run(calls: readonly Call[]): Promise<void> {
    this.#running++;
    try {
      const outcomes = await this.#outcomesOf(calls);
      calls.forEach((call, i) => settle(call, outcomes[i]!));
    } catch (error) {
      const reason = LeatError.from(error);
      // One call may be the reason that no other has an outcome. Alone, only that call fails.
      if (calls.length > 1 && !OF_ALL_CALLS.has(reason.code)) this.#repeatAlone(calls);
      else for (const call of calls) call.reject(reason);
    }
    this.#running--;
    this.#dispatch();
  }

  /** @throws {LeatError} if the calls have no outcomes, because the request failed as a whole. */
  async #outcomesOf(calls: readonly Call[]): Promise<readonly Outcome[]> {
    const { file, name, captures = null } = calls[0]!.callee;
    const request = { captures, calls: calls.map(({ args, seed }) => ({ args, seed })) };
    const { bytesMax = Infinity } = this.#pool;
    const encoded = encodeMessage(request);
    if (encoded.length > bytesMax) {
      throw new LeatError(
        "resource_exhausted",
        `A confined pipeline can pass at most ${bytesMax} bytes to a Python function, and a call of ` +
          `"${name}" takes ${encoded.length}: pass smaller elements`,
      );
    }
    return decodeMessage(await this.#pool.run({ file, name, calls: encoded })) as Outcome[];
  }

  #repeatAlone(calls: readonly Call[]): void {
    for (const call of calls) this.#enqueue({ ...call, isAlone: true });
  }
}

function settle(call: Call, outcome: Outcome): void {
  if ("error" in outcome) call.reject(LeatError.fromWire(outcome.error));
  else call.resolve(outcome.value);
}

/** The calls of one operator that other threads make: gathers them in blocks, and hands out the results. */
import { LeatError } from "../../core/error.ts";
import type { Call } from "../udf/call.ts";
import type { OperatorMeter } from "../iterators/stats.ts";
import type { BlockOutcome, CallOutcome, OpenFunction } from "./function_threads.ts";
import { pack, unpack } from "./packing.ts";
import { unpackError } from "./packed_error.ts";

/** About how long a thread should work on a block, in ms. Sending a block takes far less. */
const BLOCK_MS = 1;
const BLOCK_CALLS_MAX = 256;
/** A block with this many bytes of arrays is complete. */
const BLOCK_BYTES_MAX = 2 ** 20;
/**
 * Blocks that a thread holds, the running one included, so that it need not wait for the next one.
 */
const BLOCKS_PER_THREAD = 2;
/** The weight of the newest block in the mean duration of a call. */
const NEWEST = 0.3;

interface PendingCall {
  readonly index: number;
  readonly element: unknown;
  /** How many threads ended while this call was alone there. */
  ends: number;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** A call fails once this many threads have ended because of it. */
const ENDS_MAX = 2;
/** The error codes of a block whose thread ended. Its calls may be repeated. */
const REPEATED: ReadonlySet<string> = new Set(["internal", "unavailable"]);

/** A block that is not complete yet. */
class Gathered {
  readonly calls: PendingCall[] = [];
  readonly elements: unknown[] = [];
  readonly buffers: ArrayBuffer[] = [];
  bytes = 0;

  /** @throws {LeatError} for an element that cannot be sent. */
  add(call: PendingCall): void {
    const before = this.buffers.length;
    this.elements.push(pack(call.element, this.buffers));
    this.calls.push(call);
    for (const buffer of this.buffers.slice(before)) this.bytes += buffer.byteLength;
  }
}

/** What a `ThreadedCalls` needs of its operator. */
export interface CallingOperator {
  readonly call: Call;
  readonly stats: OperatorMeter;
  /** How many threads may work for it at once, at present. */
  readonly threads: number;
  /** How many calls may be in flight: `numParallelCalls`. */
  readonly calls: number;
  /** Whether its consumer waits for a result. */
  readonly isAwaited: boolean;
  /** Called when a result cannot be sent between threads: further calls should be made here. */
  onObstacle(message: string): void;
}
export { pack };

export class ThreadedCalls {
  readonly #fn: OpenFunction;
  readonly #operator: CallingOperator;
  #gathered = new Gathered();
  #outstanding = 0;
  #msPerCall: number;
  /** Whether a call in the last block returned a promise. */
  #waits = false;

  /**
   * `msPerCall`: how long a call is expected to take. By default each call is a block of its own.
   */
  constructor(fn: OpenFunction, operator: CallingOperator, msPerCall = BLOCK_MS) {
    this.#fn = fn;
    this.#operator = operator;
    this.#msPerCall = msPerCall;
  }

  /** How many calls may be in flight so that threads always have work. */
  get window(): number {
    const { threads, calls } = this.#operator;
    return Math.max(calls, BLOCKS_PER_THREAD * threads * this.#blockLength);
  }

  get #blockLength(): number {
    const calls = Math.floor(BLOCK_MS / this.#msPerCall);
    return Math.max(1, Math.min(calls, BLOCK_CALLS_MAX));
  }

  /**
   * Makes a call, once its block is complete or `flush()` is called.
   *
   * @throws {LeatError} `failed_precondition` for an element that cannot be sent.
   */
  call(index: number, element: unknown): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#gathered.add({ index, element, ends: 0, resolve, reject });
    const { calls, bytes } = this.#gathered;
    if (calls.length >= this.#blockLength || bytes >= BLOCK_BYTES_MAX) this.send();
    return promise;
  }

  /** Sends an incomplete block if a thread has nothing to do: the consumer waits. */
  flush(): void {
    if (this.#outstanding < this.#operator.threads) this.send();
  }

  /** Sends what is gathered. */
  send(): void {
    if (this.#gathered.calls.length === 0) return;
    const gathered = this.#gathered;
    this.#gathered = new Gathered();
    this.#run(gathered);
  }

  /** Drops the calls that no thread has begun. */
  close(): void {
    const error = new LeatError("cancelled", "the iterator was disposed");
    for (const { reject } of this.#gathered.calls) reject(error);
    this.#fn.close();
  }

  async #run({ calls, elements, buffers }: Gathered, isAlone = false): Promise<void> {
    const indexes = calls.map(({ index }) => index);
    this.#outstanding++;
    let outcome: BlockOutcome;
    try {
      const block = { indexes, elements, buffers };
      outcome = await this.#fn.run(block, isAlone ? "alone" : this.#depth);
    } catch (error) {
      this.#outstanding--;
      return this.#failed(calls, LeatError.from(error));
    }
    this.#outstanding--;
    const { outcomes, tookMs, waited } = outcome;
    this.#waits = waited;
    this.#msPerCall += NEWEST * (tookMs / calls.length - this.#msPerCall);
    this.#operator.stats.calledOnThread(calls.length, tookMs);
    calls.forEach((call, i) => this.#settle(call, outcomes[i]!));
    if (this.#operator.isAwaited) this.flush();
  }

  /** How many blocks one thread may hold: more if calls wait, because waiting calls overlap. */
  get #depth(): number {
    const { threads, calls } = this.#operator;
    return this.#waits
      ? Math.max(BLOCKS_PER_THREAD, Math.ceil(calls / threads))
      : BLOCKS_PER_THREAD;
  }

  /**
   * Repeats calls whose thread ended, each alone on its thread, which tells the one that ended it. A
   * call that has ended two threads fails.
   */
  #failed(calls: readonly PendingCall[], error: LeatError): void {
    for (const call of calls) {
      if (error.code === "internal" && calls.length === 1) call.ends++;
      if (call.ends >= ENDS_MAX || !REPEATED.has(error.code)) {
        call.reject(this.#operator.call.failure(error, call.index));
        continue;
      }
      const again = new Gathered();
      again.add(call);
      this.#run(again, true);
    }
  }

  #settle({ index, element, resolve, reject }: PendingCall, outcome: CallOutcome): void {
    const { call } = this.#operator;
    if ("error" in outcome) return reject(unpackError(outcome.error));
    try {
      if ("value" in outcome) return resolve(call.checked(unpack(outcome.value), index));
      this.#operator.onObstacle(outcome.obstacle);
      resolve(call.again(index, element));
    } catch (error) {
      reject(error);
    }
  }
}

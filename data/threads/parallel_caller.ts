/** Makes the calls of `map` and `filter` with `numParallelCalls`: here, or on other threads if that pays. */
import { LeatError } from "../../core/error.ts";
import type { Setting } from "../autotune/model.ts";
import type { IteratorContext } from "../context.ts";
import type { Call, NodeFunction } from "../udf/call.ts";
import type { OpenFunction } from "./function_threads.ts";
import type { CallingOperator, ThreadedCalls } from "./threaded_calls.ts";
import { sizeOf } from "../iterators/stats.ts";

export class ParallelCaller implements CallingOperator {
  readonly call: Call;
  readonly #context: IteratorContext;
  readonly #fn: NodeFunction;
  readonly #limit: Setting;
  readonly #isAwaited: () => boolean;
  /** Measures calls made here, until it decides that other threads should make them. */
  #cost: CallCost | undefined;
  #opened: OpenFunction | undefined;
  /** Only with `threads: true`, while a thread loads the function. */
  #loading: Promise<void> | undefined;
  #threaded: ThreadedCalls | undefined;
  /**
   * Whether other threads make the next calls: true once they are ready, until something cannot be
   * sent.
   */
  #isThreaded = false;
  #stopped = false;

  /** `isAwaited`: whether the consumer waits for a result. */
  constructor(
    call: Call,
    fn: NodeFunction,
    context: IteratorContext,
    limit: Setting,
    isAwaited: () => boolean,
  ) {
    this.call = call;
    this.#fn = fn;
    this.#context = context;
    this.#limit = limit;
    this.#isAwaited = isAwaited;
    const { pool, isForced } = context.cores;
    // Not in datasets that functions make, because there may be any number of these.
    if (pool === undefined || context.stats.isNested || !fn.isSendable) return;
    const cost = costs.getOrInsertComputed(fn, () => new CallCost());
    if (isForced) this.#open();
    else if (cost.pays(pool.isWarm)) this.#open(cost.callMs);
    else this.#cost = cost;
  }

  get stats() {
    return this.#context.stats;
  }

  get threads(): number {
    return Math.min(this.#context.cores.threads, this.#limit.value);
  }

  get calls(): number {
    return this.#limit.value;
  }

  get isAwaited(): boolean {
    return this.#isAwaited();
  }

  /** Whether other threads make the next calls. */
  get isThreaded(): boolean {
    return this.#isThreaded;
  }

  /** How many calls may be in flight. */
  get window(): number {
    return this.#isThreaded ? this.#threaded!.window : this.#limit.value;
  }

  /** Calls the function on the next element. */
  one(element: unknown): unknown {
    if (this.#isThreaded || this.#loading !== undefined) {
      return this.again(this.call.index++, element);
    }
    return this.#cost?.shouldTime() === true
      ? this.#timed(this.#cost, element)
      : this.call.one(element);
  }

  /** Makes the call with this index, which was assigned before. */
  again(index: number, element: unknown): unknown {
    if (this.#loading !== undefined) {
      return this.#loading.then(() => {
        if (this.#stopped) throw new LeatError("cancelled", "the iterator was disposed");
        return this.again(index, element);
      });
    }
    if (this.#isThreaded) {
      try {
        return this.#threaded!.call(index, element);
      } catch (error) {
        this.onObstacle(LeatError.from(error).message);
      }
    }
    return this.call.again(index, element);
  }

  /** Called when the consumer waits for a result: gives idle threads an incomplete block. */
  flush(): void {
    this.#threaded?.flush();
  }

  /** Sends all calls that were gathered. */
  send(): void {
    this.#threaded?.send();
  }

  onObstacle(message: string): void {
    this.#isThreaded = false;
    this.#context.cores.returns(this.stats.number);
    this.#noteObstacle(message);
  }

  /** The next iterator measures again before it tries other threads. */
  #noteObstacle(message: string): void {
    costs.delete(this.#fn);
    this.stats.noteObstacle(message);
  }

  stop(): void {
    this.#stopped = true;
    this.call.stop();
    if (this.#threaded === undefined) this.#opened?.close();
    else this.#threaded.close();
  }

  #timed(cost: CallCost, element: unknown): unknown {
    const { host, cores } = this.#context;
    const startedAtMs = host.nowMs();
    const result = this.call.one(element);
    cost.note(host.nowMs() - startedAtMs, element, result);
    if (cost.pays(cores.pool!.isWarm)) {
      this.#cost = undefined;
      this.#open(cost.callMs);
    }
    return result;
  }

  /** Lets threads load the function. Until then it is called here, unless `threads` is true. */
  #open(msPerCall?: number): void {
    const opening = this.#load(msPerCall).catch((error) => {
      if (!this.#stopped) this.#noteObstacle(LeatError.from(error).message);
    });
    if (this.#context.cores.isForced) this.#loading = opening.then(() => this.#loading = undefined);
  }

  async #load(msPerCall?: number): Promise<void> {
    const { cores, stats: { operator, number }, readsSplits } = this.#context;
    const { split, task } = this.#context.randomState;
    const wire = this.#fn.serialize();
    // Loaded on demand: most pipelines run on one thread.
    const { pack, ThreadedCalls } = await import("./threaded_calls.ts");
    if (this.#stopped) return;
    const fn = pack(wire, []);
    const random = this.#context.callStream().name;
    this.#opened = cores.pool!.open({
      ...{ fn, random, operator, number, readsSplits },
      randomState: { split, task },
    }, {
      pipeline: cores,
      operator: this.#limit,
    });
    await this.#opened.ready;
    if (this.#stopped) return;
    this.#threaded = new ThreadedCalls(this.#opened, this, msPerCall);
    this.#isThreaded = true;
    cores.moves(number);
  }
}

/** Successive calls in a series. Their median is used, because a busy machine delays some calls. */
const SAMPLES = 9;
/**
 * This many successive series must be long, because the engine compiles a function only after some
 * calls.
 */
const LONG_SERIES = 3;
/** Calls between the first two series. The pause doubles each time, up to `PAUSE_MAX`. */
const PAUSE_FIRST = 8;
const PAUSE_MAX = 1_024;
/** Shorter calls are made here: see ADR 21. */
const CALL_MS_MIN = 0.02;
/** How long it takes this thread to send a million bytes, with a margin, in ms. */
const MS_PER_MEGABYTE = 1;
/** Threads are started only for an operator that has worked so long, in ms. */
const COLD_WORK_MS = 200;

/** By function, what all its iterators have measured: one that reads a short split makes few calls. */
const costs = new WeakMap<NodeFunction, CallCost>();

/** Times series of calls made here, to decide whether they are long enough for other threads. */
class CallCost {
  /**
   * Calls until the next series. The first call is not timed, because it also loads the function.
   */
  #until = 1;
  #pause = PAUSE_FIRST;
  readonly #samples: number[] = [];
  #workedMs = 0;
  /** How many of the newest successive series were long. */
  #longSeries = 0;
  #callMs = 0;

  /** The median of the last series, in ms. */
  get callMs(): number {
    return this.#callMs;
  }

  /** Counts a call that is about to be made. Returns whether to time it. */
  shouldTime(): boolean {
    if (this.#longSeries > 0 || this.#until <= 0) return true;
    this.#until--;
    return false;
  }

  /**
   * Notes a timed call. A promise counts as no time, because waiting calls overlap on one thread.
   */
  note(tookMs: number, element: unknown, result: unknown): void {
    const workedMs = result instanceof Promise ? 0 : tookMs;
    this.#workedMs += workedMs;
    this.#samples.push(workedMs);
    if (this.#samples.length < SAMPLES) return;
    this.#callMs = this.#samples.sort((a, b) => a - b)[SAMPLES >> 1]!;
    this.#samples.length = 0;
    if (this.#callMs >= CALL_MS_MIN + MS_PER_MEGABYTE * sizeOf(element) / 1e6) {
      this.#longSeries++;
      return;
    }
    this.#longSeries = 0;
    this.#until = this.#pause;
    this.#pause = Math.min(2 * this.#pause, PAUSE_MAX);
  }

  /** Whether other threads should make the next calls. `isWarm`: they run already. */
  pays(isWarm: boolean): boolean {
    return this.#longSeries >= LONG_SERIES && (isWarm || this.#workedMs >= COLD_WORK_MS);
  }
}

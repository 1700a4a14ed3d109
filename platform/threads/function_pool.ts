/** Threads that call user functions: at most one for each core, started when needed, and kept. */
import { LeatError } from "../../core/error.ts";
import type {
  BlockDepth,
  BlockOutcome,
  CallBlock,
  FunctionThreads,
  OpenFunction,
  OpenSegment,
  Segment,
  ThreadFunction,
  ThreadLimits,
} from "../../data/threads/function_threads.ts";
import type { FunctionThread } from "./function_thread.ts";
import type { SegmentThread } from "./segment_thread.ts";

/** A block that waits for a thread, or runs on one. */
export interface QueuedBlock {
  readonly fn: PooledFunction;
  readonly block: CallBlock;
  readonly depth: BlockDepth;
  resolve(outcome: BlockOutcome): void;
  reject(error: LeatError): void;
}

export class FunctionPool implements FunctionThreads {
  readonly count: number;
  readonly #threads = new Set<FunctionThread>();
  #queue: QueuedBlock[] = [];
  #functions = 0;
  readonly #segmentThreads = new Set<SegmentThread>();
  readonly #idleSegmentThreads: SegmentThread[] = [];
  #starting: Promise<void> | undefined;
  #isClosed = false;

  /** @param count The limit of the number of threads that call functions. */
  constructor(count: number) {
    this.count = count;
  }

  get isWarm(): boolean {
    return this.#threads.size > 0;
  }

  /** The number of threads now, and the sum of the functions that they have loaded. */
  get usage(): { readonly threads: number; readonly functions: number } {
    let functions = 0;
    for (const thread of this.#threads) functions += thread.functions;
    return { threads: this.#threads.size + this.#segmentThreads.size, functions };
  }

  open(fn: ThreadFunction, limits: ThreadLimits): OpenFunction {
    return new PooledFunction(this, ++this.#functions, fn, limits);
  }

  /** Ends all threads, also those that are being started. Blocks and segments fail from now on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { reject } of this.#queue.splice(0)) reject(closed());
    const threads = [...this.#threads, ...this.#segmentThreads];
    await Promise.all(threads.map((thread) => thread.terminate()));
  }

  /** @param python The interpreter of the segment's Python functions. Default: they are refused. */
  async openSegment(segment: Segment, python: string | false = false): Promise<OpenSegment> {
    const thread = this.#idleSegmentThreads.pop() ?? await this.#startSegmentThread();
    const { openSegment } = await import("./segment_thread.ts");
    return await openSegment(thread, { segment, python }, () => {
      const isKept = this.#idleSegmentThreads.length < this.count;
      if (thread.isAlive && isKept) this.#idleSegmentThreads.push(thread);
      else thread.terminate();
    });
  }

  async #startSegmentThread(): Promise<SegmentThread> {
    const { startSegmentThread } = await import("./segment_thread.ts");
    if (this.#isClosed) throw closed();
    const thread = startSegmentThread(() => {
      this.#segmentThreads.delete(thread);
      const idle = this.#idleSegmentThreads.indexOf(thread);
      if (idle >= 0) this.#idleSegmentThreads.splice(idle, 1);
    });
    this.#segmentThreads.add(thread);
    return thread;
  }

  async load(fn: PooledFunction): Promise<void> {
    await this.#grow(fn);
    const [first] = this.#threads;
    if (fn.isClosed) throw new LeatError("cancelled", "The iterator was disposed");
    if (first === undefined) throw new LeatError("unavailable", "The thread has ended");
    await first.load(fn);
  }

  queue(block: QueuedBlock): void {
    if (this.#isClosed) return block.reject(closed());
    this.#queue.push(block);
    this.#dispatch();
  }

  /** Drops the function's blocks that were sent to no thread, and unloads the function. */
  forget(fn: PooledFunction): void {
    this.#queue = this.#queue.filter((queued) => queued.fn !== fn);
    for (const thread of this.#threads) thread.forget(fn);
  }

  #dispatch(): void {
    for (let i = 0; i < this.#queue.length;) {
      const queued = this.#queue[i]!;
      const thread = this.#threadFor(queued);
      if (thread !== undefined) {
        this.#queue.splice(i, 1);
        thread.run(queued);
      } else if (queued.depth === "alone") return; // else later blocks would keep all threads busy
      else i++;
    }
  }

  /** The least busy thread among those that may run this block now. */
  #threadFor({ fn, depth }: QueuedBlock): FunctionThread | undefined {
    const { pipeline, operator } = fn.limits;
    const isOwn = (other: PooledFunction) => other === fn;
    const isOfPipeline = ({ limits }: PooledFunction) => limits.pipeline === pipeline;
    const ownThreads = this.#threadsWith(isOwn);
    const pipelineThreads = this.#threadsWith(isOfPipeline);
    const depthMax = depth === "alone" ? 1 : depth;
    let best: FunctionThread | undefined;
    for (const thread of this.#threads) {
      if (thread.isReserved || depth === "alone" && thread.outstanding > 0) continue;
      const blocks = thread.blocksOf(isOwn);
      if (blocks >= depthMax || (blocks === 0 && ownThreads >= operator.value)) continue;
      if (pipelineThreads >= pipeline.threads && thread.blocksOf(isOfPipeline) === 0) continue;
      if (best === undefined || thread.outstanding < best.outstanding) best = thread;
    }
    const mayUseAnother = ownThreads < operator.value && pipelineThreads < pipeline.threads;
    if (mayUseAnother && (best === undefined || best.outstanding > 0)) {
      this.#grow(fn).catch(() => {}); // the function's blocks wait for the other threads
    }
    return best;
  }

  /** The number of threads that have blocks of such functions. */
  #threadsWith(matches: (fn: PooledFunction) => boolean): number {
    let count = 0;
    for (const thread of this.#threads) if (thread.blocksOf(matches) > 0) count++;
    return count;
  }

  /** Starts a thread if there are fewer than the function may use. */
  #grow({ limits: { pipeline, operator } }: PooledFunction): Promise<void> {
    const wanted = Math.min(this.count, pipeline.threads, operator.value);
    if (this.#threads.size >= wanted) return Promise.resolve();
    return this.#starting ??= this.#start().finally(() => this.#starting = undefined);
  }

  async #start(): Promise<void> {
    // Loaded lazily: most programs need no thread.
    const { FunctionThread } = await import("./function_thread.ts");
    if (this.#isClosed) throw closed();
    const thread: FunctionThread = new FunctionThread({
      onFree: () => this.#dispatch(),
      onEnded: () => {
        this.#threads.delete(thread);
        this.#dispatch();
      },
    });
    this.#threads.add(thread);
    this.#dispatch();
  }
}

function closed(): LeatError {
  return new LeatError("cancelled", "The threads were closed");
}

export class PooledFunction implements OpenFunction {
  readonly number: number;
  readonly fn: ThreadFunction;
  readonly limits: ThreadLimits;
  readonly ready: Promise<void>;
  readonly #pool: FunctionPool;
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  constructor(pool: FunctionPool, number: number, fn: ThreadFunction, limits: ThreadLimits) {
    this.#pool = pool;
    this.number = number;
    this.fn = fn;
    this.limits = limits;
    this.ready = pool.load(this);
    this.ready.catch(() => {});
  }

  run(block: CallBlock, depth: BlockDepth): Promise<BlockOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<BlockOutcome>();
    if (!this.#isClosed) this.#pool.queue({ fn: this, block, depth, resolve, reject });
    return promise;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pool.forget(this);
  }
}

/** One thread of a `FunctionPool`. */
import { LeatError } from "../../core/error.ts";
import type {
  BlockOutcome,
  CallBlock,
  ThreadFunction,
} from "../../data/threads/function_threads.ts";
import { type PackedError, unpackError } from "../../data/threads/packed_error.ts";
import { startAskedThread } from "./asked_thread.ts";
import type { PooledFunction, QueuedBlock } from "./function_pool.ts";

/** A message to the thread. Requests are numbered. */
export type ThreadRequest =
  | {
    readonly kind: "load";
    readonly request: number;
    readonly fn: number;
    readonly of: ThreadFunction;
  }
  | {
    readonly kind: "run";
    readonly request: number;
    readonly fn: number;
    readonly block: Omit<CallBlock, "buffers">;
  }
  | { readonly kind: "forget"; readonly fn: number };

/** Its answer. `outcome` answers `run`. */
export interface ThreadAnswer {
  readonly request: number;
  readonly outcome?: BlockOutcome;
  /** Why the function cannot be loaded there. */
  readonly error?: PackedError;
}

export interface ThreadEvents {
  onFree(): void;
  onEnded(): void;
}

/** A function that it was asked to load. */
interface Loading {
  request: number;
  readonly loaded: Promise<void>;
  resolve(): void;
  reject(error: unknown): void;
}

export class FunctionThread {
  readonly #events: ThreadEvents;
  readonly #thread: ReturnType<typeof startAskedThread>;
  #requests = 0;
  /** Blocks that were sent and not answered, by request, in order. */
  readonly #blocks = new Map<number, QueuedBlock>();
  readonly #loadings = new Map<PooledFunction, Loading>();
  #hasEnded = false;

  constructor(events: ThreadEvents) {
    this.#events = events;
    const entry = new URL("./function_thread_entry.ts", import.meta.url);
    this.#thread = startAskedThread<ThreadAnswer>(entry, { name: "leat-functions" }, {
      onMessage: (answer) => this.#answered(answer),
      onEnded: (why) => this.#ended(why),
    });
  }

  get outstanding(): number {
    return this.#blocks.size;
  }

  get functions(): number {
    return this.#loadings.size;
  }

  held(isSuch: (fn: PooledFunction) => boolean): number {
    let count = 0;
    for (const { fn } of this.#blocks.values()) if (isSuch(fn)) count++;
    return count;
  }

  /** Resolves when it has loaded the function; rejects where it cannot. */
  async load(fn: PooledFunction): Promise<void> {
    let loading = this.#loadings.get(fn);
    if (loading === undefined) {
      const { promise: loaded, resolve, reject } = Promise.withResolvers<void>();
      loaded.catch(() => {});
      loading = { request: ++this.#requests, loaded, resolve, reject };
      this.#loadings.set(fn, loading);
      this.#hold();
      this.#post({ kind: "load", request: loading.request, fn: fn.number, of: fn.fn });
    }
    await loading.loaded;
  }

  /** Sends a block, which it runs after those that it has. */
  run(queued: QueuedBlock): void {
    const { fn, block: { indexes, elements, buffers } } = queued;
    this.load(fn).catch(() => {}); // the block fails, too
    const request = ++this.#requests;
    this.#blocks.set(request, queued);
    this.#hold();
    const block = { indexes, elements };
    this.#post({ kind: "run", request, fn: fn.number, block }, buffers);
  }

  forget(fn: PooledFunction): void {
    if (this.#loadings.delete(fn)) this.#post({ kind: "forget", fn: fn.number });
  }

  async terminate(): Promise<void> {
    this.#ended("it was closed");
    await this.#thread.worker.terminate();
  }

  #post(request: ThreadRequest, buffers: readonly ArrayBuffer[] = []): void {
    if (!this.#hasEnded) this.#thread.port.postMessage(request, [...buffers]);
  }

  #answered({ request, outcome, error }: ThreadAnswer): void {
    const queued = this.#blocks.get(request);
    if (queued !== undefined) {
      this.#blocks.delete(request);
      if (outcome !== undefined) queued.resolve(outcome);
      else queued.reject(LeatError.from(unpackError(error!)));
    }
    for (const loading of this.#loadings.values()) {
      if (loading.request !== request) continue;
      if (error === undefined) loading.resolve();
      else loading.reject(unpackError(error));
      loading.request = NONE;
    }
    this.#hold();
    this.#events.onFree();
  }

  /** Keeps the program alive while it has work. */
  #hold(): void {
    const isLoading = [...this.#loadings.values()].some(({ request }) => request !== NONE);
    if (this.#blocks.size > 0 || isLoading) this.#thread.worker.ref();
    else this.#thread.worker.unref();
  }

  #ended(why: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#thread.port.close();
    this.#events.onEnded();
    const error = new LeatError("internal", `The thread that called it has ended: ${why}`);
    for (const { reject } of this.#loadings.values()) reject(error);
    // Blocks behind the first may be run on another thread.
    let isFirst = true;
    for (const { reject } of this.#blocks.values()) {
      reject(isFirst ? error : new LeatError("unavailable", error.message));
      isFirst = false;
    }
    this.#blocks.clear();
  }
}

/** The request of a function that was loaded, or cannot be. */
const NONE = 0;

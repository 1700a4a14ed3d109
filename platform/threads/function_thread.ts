/** One thread of a `FunctionPool`. */
import { LeatError } from "../../core/error.ts";
import type {
  BlockOutcome,
  CallBlock,
  ThreadFunction,
} from "../../data/threads/function_threads.ts";
import { AskedThread } from "./asked_thread.ts";
import type { PooledFunction, QueuedBlock } from "./function_pool.ts";

/** A message to the thread. Messages with a number are answered, `run` with an outcome. */
export type ThreadRequest =
  | {
    readonly number: number;
    readonly kind: "load";
    readonly fn: number;
    readonly of: ThreadFunction;
  }
  | {
    readonly number: number;
    readonly kind: "run";
    readonly fn: number;
    readonly block: Omit<CallBlock, "buffers">;
  }
  | { readonly kind: "forget"; readonly fn: number };

export interface ThreadEvents {
  /** Called when the thread has answered a block. */
  onFree(): void;
  onEnded(): void;
}

export class FunctionThread {
  readonly #events: ThreadEvents;
  readonly #thread: AskedThread<BlockOutcome>;
  /** The blocks that were sent and not answered, in order. */
  readonly #blocks = new Set<QueuedBlock>();
  /** The functions that the thread was asked to load. */
  readonly #loading = new Map<PooledFunction, Promise<unknown>>();

  constructor(events: ThreadEvents) {
    this.#events = events;
    this.#thread = new AskedThread(new URL("./function_thread_entry.ts", import.meta.url), {
      name: "leat-functions",
      what: "The thread that called it",
      onEnded: (error) => this.#ended(error),
    });
  }

  get outstanding(): number {
    return this.#blocks.size;
  }

  get functions(): number {
    return this.#loading.size;
  }

  /** Whether its block must remain the only one. */
  get isReserved(): boolean {
    const [first] = this.#blocks;
    return first?.depth === "alone";
  }

  /** The number of unanswered blocks of such functions. */
  blocksOf(matches: (fn: PooledFunction) => boolean): number {
    let count = 0;
    for (const { fn } of this.#blocks) if (matches(fn)) count++;
    return count;
  }

  /** Resolves when the thread has loaded the function; rejects if that fails. */
  async load(fn: PooledFunction): Promise<void> {
    await this.#loading.getOrInsertComputed(
      fn,
      () => this.#thread.ask({ kind: "load", fn: fn.number, of: fn.fn }),
    );
  }

  /** Sends a block. The thread begins blocks in order; blocks whose calls wait may overlap. */
  async run(queued: QueuedBlock): Promise<void> {
    const { fn, block: { indexes, elements, buffers } } = queued;
    this.load(fn).catch(() => {}); // the block fails, too
    this.#blocks.add(queued);
    const block = { indexes, elements };
    try {
      const outcome = await this.#thread.ask({ kind: "run", fn: fn.number, block }, buffers);
      queued.resolve(outcome!);
    } catch (error) {
      if (!fn.isClosed) queued.reject(LeatError.from(error)); // else nobody waits for it
    }
    this.#blocks.delete(queued);
    if (this.#thread.isAlive) this.#events.onFree();
  }

  forget(fn: PooledFunction): void {
    if (this.#loading.delete(fn)) this.#thread.tell({ kind: "forget", fn: fn.number });
  }

  terminate(): Promise<void> {
    return this.#thread.terminate();
  }

  /**
   * A block that was alone fails with `internal`, because it ended the thread. Several fail with
   * `unavailable`, because any of them may have ended it: the system does not say which.
   */
  #ended({ message }: LeatError): void {
    this.#events.onEnded();
    if (this.#blocks.size === 1) return;
    for (const { reject } of this.#blocks) reject(new LeatError("unavailable", message));
  }
}

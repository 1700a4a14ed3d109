/**
 * What a user iterates with: the asynchronous face of a running pipeline.
 */
import { RandomStream } from "../core/philox.ts";
import { IteratorContext } from "./context.ts";
import { type Host, installedHost } from "./host.ts";
import { type ElementIterator, END } from "./iterator.ts";
import type { DatasetNode } from "./node.ts";
import { seedOf } from "./operators/options.ts";
import type { SplitSource } from "./splits.ts";
import type { IteratorStats } from "./stats.ts";

/** How a pipeline is run by somebody else than its user: a worker's task, a test. */
export interface IterationOptions {
  /** Default: the installed host. */
  readonly host?: Host;
  /** Overrides the seed of `withOptions`. */
  readonly seed?: bigint;
  /** Sets this task's luck apart from that of others which run the same dataset. Default 0. */
  readonly salt?: bigint;
  /** Counts the iterations of the dataset. Default 0. */
  readonly epoch?: number;
  /** The number of the split that is run as a dataset of its own. Default 0. */
  readonly split?: number;
  /** Where the splits to read come from; without it sources are read whole. */
  readonly splits?: SplitSource;
}

/** Starts running a graph. Nothing is read before the first `next()`. */
export function openIterator<T = unknown>(
  node: DatasetNode,
  options: IterationOptions = {},
): DatasetIterator<T> {
  return new DatasetIterator<T>(rootContext(node, options));
}

/** The context of a graph's last operator, with its luck. */
export function rootContext(node: DatasetNode, options: IterationOptions): IteratorContext {
  const host = options.host ?? installedHost();
  const seed = options.seed ?? seedOf(node);
  const { salt = 0n, epoch = 0, split = 0 } = options;
  const stream = new RandomStream(seed ?? host.entropy64(), [String(salt)]);
  const luck = { root: () => stream, seeded: seed !== undefined, salt, epoch, split };
  return IteratorContext.root(node, host, luck, options.splits);
}

/** A call of `next()` that waits for its turn. */
type Request = PromiseWithResolvers<IteratorResult<unknown, undefined>>;

/**
 * An iterator over a dataset's elements.
 *
 * - Calls of `next()` that are not awaited queue up and are answered in order.
 * - An element that fails rejects its `next()`; the next call goes on with the element after it. A
 *   `for await` loop ends at the first error without closing the iterator, as the language has it:
 *   declare it with `await using` where elements may fail.
 * - Elements that are ready do not starve timers: every few milliseconds the event loop gets a turn.
 * - `return()` and disposal stop reading and calling at once; what waits is answered with the end.
 *
 * @example
 * ```ts
 * import { Dataset } from "../mod.ts";
 *
 * await using iterator = Dataset.range(3).iterator();
 * for await (const x of iterator) console.log(x); // 0 1 2
 * ```
 */
export class DatasetIterator<T> implements AsyncIterableIterator<T, undefined>, AsyncDisposable {
  readonly #context: IteratorContext;
  readonly #elements: ElementIterator;
  readonly #queue: Request[] = [];
  #busy = false;

  /** Made by `Dataset.iterator()` and `openIterator()`. */
  constructor(context: IteratorContext) {
    this.#context = context;
    this.#elements = context.makeIterator();
  }

  /** The next element. Rejects with the error of an element that failed. */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#elements.disposed) return this.return();
    if (this.#busy) return this.#enqueue();
    if (this.#context.pacer.due()) return this.#pull(this.#context.pacer.yield());
    try {
      const element = this.#elements.next();
      return element instanceof Promise
        ? this.#pull(undefined, element)
        : Promise.resolve(resultOf<T>(element));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Ends the iteration. What was being read or called is dropped. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.#dispose();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#dispose();
    return Promise.resolve();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** What every operator has done so far; a copy. */
  stats(): IteratorStats {
    return this.#context.collectStats();
  }

  /** Answers one call that has to wait, and then those that came meanwhile. */
  #pull(
    before: Promise<void> | undefined,
    element?: Promise<unknown>,
  ): Promise<IteratorResult<T, undefined>> {
    this.#busy = true;
    const answer = this.#enqueue();
    this.#serve(before, element);
    return answer;
  }

  #enqueue(): Promise<IteratorResult<T, undefined>> {
    const request: Request = Promise.withResolvers();
    this.#queue.push(request);
    return request.promise as Promise<IteratorResult<T, undefined>>;
  }

  async #serve(before: Promise<void> | undefined, element: unknown): Promise<void> {
    await before;
    let pulled = element;
    while (this.#queue.length > 0) {
      try {
        const settled = await (pulled ?? this.#elements.next());
        this.#queue.shift()?.resolve(resultOf(settled));
      } catch (error) {
        this.#queue.shift()?.reject(error);
      }
      pulled = undefined;
      if (this.#context.pacer.due()) await this.#context.pacer.yield();
    }
    this.#busy = false;
  }

  /** Nobody who waits is left waiting for what will not come. */
  #dispose(): void {
    this.#elements.dispose();
    for (const request of this.#queue.splice(0)) request.resolve({ done: true, value: undefined });
  }
}

function resultOf<T>(element: unknown): IteratorResult<T, undefined> {
  return element === END ? { done: true, value: undefined } : { done: false, value: element as T };
}

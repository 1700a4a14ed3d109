/**
 * What a user iterates with: the asynchronous face of a running pipeline.
 */
import { LeatError } from "../core/error.ts";
import { RandomStream } from "../core/philox.ts";
import { IteratorContext } from "./context.ts";
import { type Host, installedHost } from "./host.ts";
import type { LastReaders } from "./service/last_readers.ts";
import { Explanation } from "./explanation.ts";
import { type ElementIterator, END } from "./iterator.ts";
import type { DatasetNode } from "./node.ts";
import { deterministicOf, seedOf } from "./operators/options.ts";
import { ReadingFailure, toldOf } from "./iterators/reading_failure.ts";
import { decodeIteration, encodeIteration, type SavedIteration } from "./checkpoint/saving.ts";
import { restoreShared, saveShared } from "./checkpoint/shared_state.ts";
import { isWhole, missingIn } from "./elements/spec_check.ts";
import type { SplitSource } from "./sharding/splits.ts";
import { type IteratorStats, OperatorMeter } from "./iterators/stats.ts";
import { Stopwatch } from "./iterators/stopwatch.ts";

/** How a pipeline is run by somebody else than its user: a worker's task, a test. */
export interface IterationOptions {
  /** Default: the installed host. */
  readonly host?: Host;
  /** Overrides the seed of `withOptions`. */
  readonly seed?: bigint;
  /** Sets this task's luck apart from that of others which run the same dataset. Default 0. */
  readonly salt?: bigint;
  /** Sets the luck of this task's functions apart from that of others with other elements. Default 0. */
  readonly task?: number;
  /** Counts the iterations of the dataset. Default 0. */
  readonly epoch?: number;
  /** The number of the split that is run as a dataset of its own. Default 0. */
  readonly split?: number;
  /** Where the splits to read come from; without it sources are read whole. */
  readonly splits?: SplitSource;
  /** As whom the dataset's iterations have read streams of services. Default: as nobody yet. */
  readonly lastReaders?: LastReaders;
  /** The iteration that this one is a part of. */
  readonly within?: IteratorContext;
  /** Told the epoch of an iteration that was restored, and as whom it reads: the one after it is the next. */
  readonly onRestored?: (epoch: number, lastReaders: LastReaders) => void;
  /** Closes the iterator at the first element that fails. */
  readonly closesAtError?: boolean;
  /** Rejects with a `ReadingFailure` as it is, for who has to tell it from an element's error. */
  readonly keepsReadingFailures?: boolean;
}

/** Starts running a graph. Nothing is read before the first `next()`. */
export function openIterator<T = unknown>(
  node: DatasetNode,
  options: IterationOptions = {},
): DatasetIterator<T> {
  return new DatasetIterator<T>(node, options);
}

/** An iteration's coordinates of luck. */
type Coordinates = Omit<SavedIteration, "shared" | "state">;

/** The coordinates that options, or the graph's own seed, or entropy give. */
function coordinatesOf(node: DatasetNode, host: Host, options: IterationOptions): Coordinates {
  const seed = options.seed ?? seedOf(node);
  const { salt = 0n, epoch = 0, split = 0 } = options;
  return { seed: seed ?? host.entropy64(), seeded: seed !== undefined, salt, epoch, split };
}

/** The context of a graph's last operator, with its luck. */
export function rootContext(
  node: DatasetNode,
  options: IterationOptions,
  coordinates?: Coordinates,
): IteratorContext {
  const host = options.host ?? installedHost();
  const { seed, seeded, salt, epoch, split } = coordinates ?? coordinatesOf(node, host, options);
  const stream = new RandomStream(seed, [String(salt)]);
  const { task = 0 } = options;
  const luck = { root: () => stream, seeded, salt, epoch, split, task };
  const deterministic = deterministicOf(node);
  const { splits, lastReaders, within } = options;
  return IteratorContext.root(node, host, { luck, deterministic, splits, lastReaders, within });
}

/** A call that waits for its turn. */
interface Request {
  /** Does what was asked for, once it is the request's turn. */
  readonly run: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** What it is answered where the iterator is closed before. */
  readonly whenClosed: (this: Request) => void;
}

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * An iterator over a dataset's elements.
 *
 * - Calls of `next()`, `save()` and `restore()` that are not awaited queue up and are answered in order.
 * - An element that fails rejects its `next()`; the next call goes on with the element after it. A
 *   `for await` loop over an iterator ends at the first error without closing it, as the language has
 *   it: declare it with `await using` where elements may fail. A loop over a dataset closes its own.
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
  readonly #node: DatasetNode;
  readonly #options: IterationOptions;
  #coordinates: Coordinates;
  #context: IteratorContext;
  #elements: ElementIterator;
  readonly #queue: Request[] = [];
  /** When the first `next()` was called, and when the end was found. */
  #startedAtMs = NaN;
  #endedAtMs: number | undefined;
  /** How long promises of `next()` were waited for. */
  #waitedMs = 0;
  /** How long calls of it held the thread. */
  #held = new OperatorMeter("next", -1);
  #watch: Stopwatch;
  readonly #pullNow = (): unknown => this.#elements.next();
  #busy = false;
  #ended = false;
  /** It cannot be read on, which was told. Where it stands may still be saved. */
  #failed = false;
  #closed = false;

  /** Made by `Dataset.iterator()` and `openIterator()`. */
  constructor(node: DatasetNode, options: IterationOptions) {
    this.#node = node;
    this.#options = { ...options, host: options.host ?? installedHost() };
    this.#coordinates = coordinatesOf(node, this.#options.host!, options);
    this.#context = rootContext(node, this.#options, this.#coordinates);
    this.#elements = this.#context.makeIterator();
    this.#watch = new Stopwatch(this.#context.host, this.#held);
  }

  /** The next element. Rejects with the error of an element that failed. */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#closed || this.#failed) return Promise.resolve(DONE);
    if (this.#busy) return this.#enqueue(() => this.#pull(), resolveDone);
    if (Number.isNaN(this.#startedAtMs)) this.#startedAtMs = this.#context.host.nowMs();
    if (this.#context.pacer.due()) {
      return this.#start(() => this.#pull(), this.#context.pacer.yield());
    }
    try {
      const element = this.#watch.time(this.#pullNow);
      if (!(element instanceof Promise)) return Promise.resolve(this.#resultOf(element));
      const later = this.#later(element);
      // Nobody asks for it where the iterator is closed before the call's turn.
      later.catch(() => {});
      return this.#start(() => later);
    } catch (error) {
      const told = this.#told(error);
      const closing = this.#closeAtError();
      return closing === undefined
        ? Promise.reject(told)
        : closing.then(() => Promise.reject(told));
    }
  }

  /**
   * Where the iteration stands, as bytes from which `restore()` goes on with the element after: the
   * position of every operator, the luck, the epoch, and what operators hold. What they hold is
   * saved as numbers of elements where these can be had again from a source with random access
   * (ranges, tensors in memory, names of files, and one-to-one functions of them), and by content
   * otherwise; `stats()` says how many bytes are held. What is drawn once for all iterations of a
   * dataset, such as the order of `shuffle(n, { reshuffleEachIteration: false })` without a seed, is
   * saved with each of them.
   *
   * Reading ahead and calls in flight go on afterwards as if nothing had been. A call in flight is
   * waited for where its element cannot be had again; otherwise `restore()` makes it again, with the
   * same `index` and `random`, as it does for elements that are saved as numbers: what functions
   * return must depend on these, their captures and their element alone. That holds for functions that
   * make datasets, too: the functions within them draw luck from a `random` of their own. A generator
   * is run again up to where it was; a cache in memory is saved with its contents, one in files as a
   * position in these.
   *
   * The error of an element is part of the stream: one that was found and not told yet is saved, and
   * told in its place. What ends the reading of a distributed dataset is not (its service cannot be
   * reached, say, or does not know this reader any more), nor that what `load` waits for does not come:
   * one `next()` is rejected with it, those after it answer the end, and `save()` still answers the
   * position before it, from which `restore()` reads on.
   *
   * Errors: `failed_precondition` where an operator cannot be saved: a distributed dataset, elements
   * that are no plain data.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * const dataset = Dataset.range(5).shuffle(3, { seed: 1 });
   * await using iterator = dataset.iterator();
   * await iterator.next();
   * const state = await iterator.save();
   * await using other = dataset.iterator();
   * await other.restore(state);
   * console.log((await iterator.next()).value === (await other.next()).value); // true
   * ```
   */
  save(): Promise<Uint8Array<ArrayBuffer>> {
    return this.#whenFree(() => this.#save());
  }

  /**
   * Goes on from where another iterator of the same pipeline was saved, in this process or another.
   * Whatever this one did before is forgotten; if it fails, nothing is. The next iterator of its dataset
   * is the epoch after, however many there have been; of several iterators the one restored last decides.
   * Where a service gives each epoch once (`distribute` unless DETERMINISTIC), it is one that was not begun.
   *
   * Errors: `invalid_argument` for bytes that are no saved iterator, `data_loss` for damaged ones,
   * `failed_precondition` where the pipeline, or what it reads, has changed.
   */
  restore(state: Uint8Array): Promise<void> {
    return this.#whenFree(() => this.#restore(state));
  }

  /** Ends the iteration. What was being read or called is dropped. */
  return(): Promise<IteratorResult<T, undefined>> {
    return this.#close()?.then(() => DONE) ?? Promise.resolve(DONE);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close() ?? Promise.resolve();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * What every operator has done since the iterator was opened or restored, from the last one down; a
   * copy. Elements that `globalShuffle` reads by their numbers are not counted below it, and operators
   * below a function that runs in a confined process are not counted at all.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * await using iterator = Dataset.range(8).batch(4).iterator();
   * for await (const _ of iterator);
   * const [batch, range] = iterator.stats();
   * console.log(range!.elements, range!.bytesOut, batch!.elements, batch!.bytesIn); // 8 64 2 64
   * ```
   */
  stats(): IteratorStats {
    return this.#context.collectStats();
  }

  /**
   * The graph with the figures of each operator, and at the end in words which of them the time goes
   * into, and what to do about it. Say it after some seconds of training: what it tells is of all
   * the time since the first `next()`, in which the consumer has a part, too.
   *
   * @example
   * ```ts
   * import { Dataset } from "../mod.ts";
   *
   * await using iterator = Dataset.range(1000).map((x) => Math.sqrt(x)).batch(10).iterator();
   * for await (const _ of iterator);
   * console.log(String(iterator.explain()));
   * ```
   */
  explain(): Explanation {
    const runMs = (this.#endedAtMs ?? this.#context.host.nowMs()) - this.#startedAtMs;
    const heldMs = this.#held.read(0).selfMs;
    const waitedMs = this.#waitedMs;
    return new Explanation(this.#node, { stats: this.stats(), runMs, waitedMs, heldMs });
  }

  async #save(): Promise<Uint8Array<ArrayBuffer>> {
    try {
      const state = this.#ended ? null : await this.#elements.save();
      const shared = saveShared(this.#node, this.#context);
      return encodeIteration(this.#node, { ...this.#coordinates, shared, state });
    } catch (error) {
      throw toldOf(error);
    } finally {
      this.#context.pause.end();
    }
  }

  async #restore(bytes: Uint8Array): Promise<void> {
    let context: IteratorContext | undefined;
    let elements: ElementIterator | undefined;
    let saved: SavedIteration;
    try {
      saved = decodeIteration(this.#node, bytes);
      const { seed, seeded, salt, epoch, split } = saved;
      context = rootContext(this.#node, this.#options, { seed, seeded, salt, epoch, split });
      restoreShared(this.#node, saved.shared, context);
      elements = context.makeIterator();
      await elements.restore(saved.state);
    } catch (error) {
      if (elements !== undefined) dropHalfRestored(elements);
      context?.endRestoring(false);
      await context?.close();
      throw error instanceof LeatError ? toldOf(error) : unreadableState(error);
    }
    const { state, shared: _, ...coordinates } = saved;
    context.endRestoring(true);
    this.#elements.dispose();
    const closing = this.#context.close();
    this.#coordinates = coordinates;
    this.#context = context;
    this.#elements = elements;
    this.#ended = state === null;
    this.#failed = false;
    this.#startedAtMs = NaN;
    this.#endedAtMs = undefined;
    this.#waitedMs = 0;
    this.#held = new OperatorMeter("next", -1);
    this.#watch = new Stopwatch(context.host, this.#held);
    if (this.#closed) this.#dispose();
    else this.#options.onRestored?.(coordinates.epoch, context.lastReaders);
    await closing;
  }

  #pull(): IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>> {
    if (this.#failed) return DONE;
    let element: unknown;
    try {
      element = this.#watch.time(this.#pullNow);
    } catch (error) {
      throw this.#told(error);
    }
    return element instanceof Promise ? this.#later(element) : this.#resultOf(element);
  }

  async #later(pending: Promise<unknown>): Promise<IteratorResult<T, undefined>> {
    const { host } = this.#context;
    const startedAtMs = host.nowMs();
    try {
      const result = this.#resultOf(await pending);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      throw this.#told(error);
    } finally {
      this.#waitedMs += host.nowMs() - startedAtMs;
    }
  }

  /** What a call of `next()` is rejected with. A failure of reading is told once, and nothing comes after it. */
  #told(error: unknown): unknown {
    if (error instanceof ReadingFailure) {
      this.#failed = true;
      this.#endedAtMs ??= this.#context.host.nowMs();
    }
    return this.#options.keepsReadingFailures === true ? error : toldOf(error);
  }

  #resultOf(
    element: unknown,
  ): IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>> {
    if (element !== END) {
      if (isWhole(element)) return { done: false, value: element as T };
      const { stats } = this.#context;
      throw stats.failed(missingIn(element, `${stats.operator}: an element it gives`));
    }
    this.#ended = true;
    this.#endedAtMs ??= this.#context.host.nowMs();
    const closing = this.#context.close();
    return closing === undefined ? DONE : closing.then(() => DONE);
  }

  #whenFree<R>(run: () => Promise<R>): Promise<R> {
    if (this.#closed) return Promise.reject(closedError());
    return this.#busy
      ? this.#enqueue(run, rejectClosed)
      : this.#start(run, undefined, rejectClosed);
  }

  /** Answers one call that has to wait, and then those that came meanwhile. */
  #start<R>(
    run: () => unknown,
    before?: Promise<void>,
    whenClosed: Request["whenClosed"] = resolveDone,
  ): Promise<R> {
    this.#busy = true;
    const answer = this.#enqueue<R>(run, whenClosed);
    this.#serve(before);
    return answer;
  }

  #enqueue<R>(run: () => unknown, whenClosed: Request["whenClosed"]): Promise<R> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#queue.push({ run, resolve, reject, whenClosed });
    return promise as Promise<R>;
  }

  async #serve(before: Promise<void> | undefined): Promise<void> {
    await before;
    for (let request = this.#queue[0]; request !== undefined; request = this.#queue[0]) {
      try {
        request.resolve(await request.run());
      } catch (error) {
        // Closing answers those that wait; this one is told its error.
        if (this.#queue[0] === request) this.#queue.shift();
        const closing = this.#closeAtError();
        if (closing !== undefined) await closing;
        request.reject(error);
      }
      if (this.#queue[0] === request) this.#queue.shift(); // gone where the iterator was closed
      if (this.#context.pacer.due()) await this.#context.pacer.yield();
    }
    this.#busy = false;
  }

  #closeAtError(): Promise<void> | undefined {
    return this.#options.closesAtError ? this.#close() : undefined;
  }

  /** Nobody who waits is left waiting for what will not come. */
  #close(): Promise<void> | undefined {
    this.#closed = true;
    const closing = this.#dispose();
    for (const request of this.#queue.splice(0)) request.whenClosed();
    return closing;
  }

  #dispose(): Promise<void> | undefined {
    this.#elements.dispose();
    return this.#context.close();
  }
}

/** Lets go of what has been restored so far. What a wrong state has left in it may not be what it lets go of. */
function dropHalfRestored(elements: ElementIterator): void {
  try {
    elements.dispose();
  } catch {
    // Why it was not restored is told.
  }
}

/** A state with a right checksum that no operator here wrote: operators trust what they find in theirs. */
function unreadableState(cause: unknown): LeatError {
  return new LeatError(
    "invalid_argument",
    `restore: this state was not written by save() of this pipeline, in this version of Leat: ${
      LeatError.from(cause).message
    }`,
    { cause },
  );
}

function resolveDone(this: Request): void {
  this.resolve(DONE);
}

function rejectClosed(this: Request): void {
  this.reject(closedError());
}

function closedError(): LeatError {
  return new LeatError("failed_precondition", "This iterator was closed; open another one.");
}

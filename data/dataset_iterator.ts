/** The iterator that users hold: the asynchronous interface of a running pipeline. */

import { LeatError } from "../core/error.ts";
import type { Consumption } from "./autotune/tuner.ts";
import {
  decodeIteration,
  encodeIteration,
  type Identity,
  identityOf,
  type SavedIteration,
  unreadableState,
} from "./checkpoint/saving.ts";
import { restoreShared, saveShared } from "./checkpoint/shared_state.ts";
import type { IteratorContext } from "./context.ts";
import { requireWhole } from "./elements/spec_check.ts";
import { Explanation } from "./explanation.ts";
import { installedHost } from "./host.ts";
import type { Coordinates, IterationOptions } from "./iteration_options.ts";
import { dropHalfRestored, END } from "./iterator.ts";
import { ReadingFailure, userErrorOf } from "./iterators/reading_failure.ts";
import {
  closedError,
  DONE,
  rejectClosed,
  type Request,
  resolveDone,
} from "./iterators/requests.ts";
import { type IteratorStats, OperatorMeter } from "./iterators/stats.ts";
import { Stopwatch } from "./iterators/stopwatch.ts";
import type { DatasetNode } from "./node.ts";
import { type LastIterator, openLast } from "./optimizer/rules/prefetch_injection.ts";
import { coordinatesOf, rootContext } from "./root_context.ts";

/** Starts running a graph. Nothing is read before the first `next()`. */
export function openIterator<T = unknown>(
  node: DatasetNode,
  options: IterationOptions = {},
): DatasetIterator<T> {
  return new DatasetIterator<T>(node, options);
}

/** A position that is being restored. */
interface Restoring {
  readonly context: IteratorContext;
  last?: LastIterator;
}

/**
 * An iterator over a dataset's elements.
 *
 * - Calls of `next()`, `save()` and `restore()` may be made without awaiting earlier ones. They are
 *   answered in order.
 * - An element that fails rejects its `next()`; the next call continues with the element after it.
 *   A `for await` loop over an iterator ends at the first error without closing it, as JavaScript
 *   defines: declare it with `await using` if elements may fail. A loop over a dataset closes its own
 *   iterator.
 * - Elements that are ready do not starve timers: it yields to the event loop every few ms.
 * - `return()` and disposal stop all reading and calling. Pending calls of `next()` get the end;
 *   `save()` and `restore()` reject with `failed_precondition`.
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
  /** Of the graph as this iterator reads it. Kept, because large captures take long to write. */
  #identity: Identity | undefined;
  #context: IteratorContext;
  #last: LastIterator;
  #restoring: Restoring | undefined;
  /** In the order of the calls. A set, because `shift()` of a long array moves all items after it. */
  readonly #queue = new Set<Request>();
  /** When the first `next()` was called. */
  #startedAtMs = NaN;
  /** When the end was reached, reading failed, or the iterator was closed. */
  #endedAtMs: number | undefined;
  /** Total time that promises of `next()` were waited for. */
  #waitedMs = 0;
  /** How long calls of `next()` held the thread. */
  #held = new OperatorMeter("next", -1);
  #watch: Stopwatch;
  readonly #pullNow = (): unknown => this.#last.elements.next();
  readonly #consumption = (): Consumption => {
    const waitedMs = this.#waitedMs + this.#held.read(0).selfMs;
    return { waitedMs, consumerMs: this.#context.host.nowMs() - this.#startedAtMs - waitedMs };
  };
  #busy = false;
  #ended = false;
  /** Whether a `ReadingFailure` was reported. The position before it can still be saved. */
  #failed = false;
  #closed = false;

  /** @ignore Made by `Dataset.iterator()` and `openIterator()`. */
  constructor(node: DatasetNode, options: IterationOptions) {
    this.#node = node;
    this.#options = { ...options, host: options.host ?? installedHost() };
    try {
      this.#coordinates = coordinatesOf(node, this.#options.host!, options);
      this.#context = rootContext(node, this.#options, this.#coordinates);
      this.#last = this.#open(this.#context);
    } catch (error) {
      // Opening recurses into inputs, so the stack overflows if the pipeline nests too deep.
      throw LeatError.from(error);
    }
    this.#watch = new Stopwatch(this.#context.host, this.#held);
  }

  /**
   * Whether reading has failed, as when a service is unreachable. `next()` rejected with that failure
   * once and now gives only the end, but `save()` still gives the position before the failure.
   */
  get hasReadingFailed(): boolean {
    return this.#failed;
  }

  /** The next element. Rejects with the error of an element that failed. */
  next(): Promise<IteratorResult<T, undefined>> {
    // A restore in the queue may end the failure: calls after it wait for it.
    if (this.#closed || this.#failed && !this.#busy) return Promise.resolve(DONE);
    if (this.#busy) return this.#enqueue(() => this.#pull(), resolveDone);
    this.#begin();
    if (this.#context.pacer.dueAtCall()) {
      return this.#start(() => this.#pull(), this.#context.pacer.yield());
    }
    try {
      const element = this.#watch.time(this.#pullNow);
      if (!(element instanceof Promise)) return Promise.resolve(this.#resultOf(element));
      const awaited = this.#resultOfPromise(element);
      // If the iterator is closed before `#serve()` runs the request, nobody handles a rejection.
      awaited.catch(() => {});
      return this.#start(() => awaited);
    } catch (error) {
      const reason = this.#rejectionOf(error);
      const closing = this.#closeAtError();
      return closing === undefined
        ? Promise.reject(reason)
        : closing.then(() => Promise.reject(reason));
    }
  }

  /**
   * The position of the iteration as bytes, from which `restore()` continues with the next element.
   * They contain the position of every operator, the random state, the epoch, and the elements that
   * operators hold. If a source with random access can recompute a held element (ranges, tensors in
   * memory, file names, and one-to-one functions of them), only its index is saved, otherwise its
   * content; `stats()` says how many bytes are held. Random numbers that all iterations of a dataset
   * share, such as the order of `shuffle(n, { reshuffleEachIteration: false })` without a seed, are
   * saved, too.
   *
   * Afterwards, reading ahead and calls in flight continue unchanged. `save()` waits for a read in
   * flight, also if a `prefetch` waits for a dataset that is still being written (`load` with `wait`):
   * until its next elements are there, or `timeoutMs` is over. It waits for a call in flight if its
   * element cannot be recomputed. Otherwise `restore()` repeats the call, with the same
   * `index` and `random`, as it does for elements saved as indices. So a function's result must depend
   * only on these, its captures and its element. That also holds for functions that return datasets,
   * whose own functions get a `random` of their own. A generator is rerun up to its position. A cache
   * in memory is saved with its contents, one in files as a position.
   *
   * The error of an element is part of the stream: if it was found and not reported yet, it is
   * saved and reported at its position. Errors that end the reading are not saved. They occur if
   * the service of a distributed dataset is unreachable or no longer knows this reader, if the
   * storage of files cannot answer although requests were repeated, or if the save that `load`
   * waits for stops. Such an error rejects one `next()`, and later ones give the end. `save()` still gives the position before the error, from which `restore()` continues.
   *
   * Errors: `failed_precondition` if an operator cannot be saved (a distributed dataset under another
   * mode than DETERMINISTIC), or elements are not plain data.
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
   * Continues from the saved position of another iterator of the same pipeline, in this process or
   * another. If it fails, this iterator keeps its state. The next iterator of the dataset reads the
   * epoch after the restored one, however many there were before; of several restored iterators,
   * the last decides. With `distribute` under other modes than DETERMINISTIC no epoch can be read
   * again. There the next iterator reads an epoch that no iterator of the dataset has begun.
   *
   * Errors: `invalid_argument` for bytes that are not a saved iterator, `data_loss` for damaged
   * ones, `failed_precondition` if the pipeline, or its data, has changed.
   */
  restore(state: Uint8Array): Promise<void> {
    return this.#whenFree(() => this.#restore(state));
  }

  /** Ends the iteration. Reads and calls in flight are dropped. */
  return(): Promise<IteratorResult<T, undefined>> {
    return this.#close()?.then(() => DONE) ?? Promise.resolve(DONE);
  }

  /** Ends the iteration, as `return()` does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#close() ?? Promise.resolve();
  }

  /** The iterator itself, for `for await`. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * The figures of every operator since the iterator was opened or restored, from the last one
   * down; a copy. Elements that `globalShuffle` reads by index are not counted below it, and
   * operators below a function that runs in a confined process are not counted at all.
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
   * The graph with the figures of each operator, and at the end advice: which operators take the
   * time, and what to do about it. Call it after some seconds of training: it covers all the time
   * since the first `next()`, the consumer's own time included.
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
    const { isReplaced: isOffloaded } = this.#context;
    const run = {
      stats: this.stats(),
      awaitedMs: this.#context.collectAwaited(),
      runMs,
      waitedMs,
      heldMs,
      isOffloaded,
      hasEnded: this.#ended,
    };
    return new Explanation(this.#node, run);
  }

  /** @ignore Whether it gives no more elements. */
  get isOver(): boolean {
    return this.#closed || this.#ended || this.#failed;
  }

  async #save(): Promise<Uint8Array<ArrayBuffer>> {
    try {
      const saved = this.#ended ? { state: null } : await this.#last.save();
      const shared = saveShared(this.#node, this.#context);
      this.#identity ??= identityOf(this.#node);
      return encodeIteration(this.#identity, { ...this.#coordinates, shared, ...saved });
    } catch (error) {
      throw userErrorOf(error);
    } finally {
      this.#context.pause.end();
    }
  }

  async #restore(bytes: Uint8Array): Promise<void> {
    let context: IteratorContext;
    let last: LastIterator;
    let identity: Identity;
    let saved: SavedIteration;
    try {
      ({ identity, saved } = this.#decode(bytes));
      const { seed, seeded, salt, epoch, split } = saved;
      context = rootContext(this.#node, this.#options, { seed, seeded, salt, epoch, split });
      this.#restoring = { context };
      restoreShared(this.#node, saved.shared, context);
      last = this.#restoring.last = this.#open(context, saved.ahead);
      await last.restore(saved.state);
      if (this.#closed) throw closedError();
    } catch (error) {
      await this.#stopRestoring();
      throw error instanceof LeatError ? userErrorOf(error) : unreadableState(error);
    } finally {
      this.#restoring = undefined;
    }
    const { seed, seeded, salt, epoch, split, state, ahead } = saved;
    const coordinates = { seed, seeded, salt, epoch, split };
    context.endRestoring(true);
    const closing = this.#dispose();
    this.#coordinates = coordinates;
    this.#identity = identity;
    this.#context = context;
    this.#last = last;
    this.#ended = state === null && ahead === undefined;
    this.#failed = false;
    this.#startedAtMs = NaN;
    this.#endedAtMs = undefined;
    this.#waitedMs = 0;
    this.#held = new OperatorMeter("next", -1);
    this.#watch = new Stopwatch(context.host, this.#held);
    this.#options.onRestored?.(coordinates.epoch, context.lastReaders);
    await closing;
  }

  /** A state of this iterator has its own identity, also if functions wrote to their captures since. */
  #decode(bytes: Uint8Array): { readonly identity: Identity; readonly saved: SavedIteration } {
    const own = this.#identity;
    if (own !== undefined) {
      try {
        return { identity: own, saved: decodeIteration(own, bytes) };
      } catch {
        // Another iterator may have saved it. Otherwise it fails again below.
      }
    }
    const identity = identityOf(this.#node);
    return { identity, saved: decodeIteration(identity, bytes) };
  }

  /** Ends a restore that failed, or that closing interrupts, and undoes what it has changed. */
  #stopRestoring(): Promise<void> | undefined {
    if (this.#restoring === undefined) return undefined;
    const { context, last } = this.#restoring;
    if (last !== undefined) dropHalfRestored(last.elements);
    context.endRestoring(false);
    return context.close();
  }

  #pull(): IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>> {
    if (this.#failed) return DONE;
    this.#begin();
    let element: unknown;
    try {
      element = this.#watch.time(this.#pullNow);
    } catch (error) {
      throw this.#rejectionOf(error);
    }
    return element instanceof Promise ? this.#resultOfPromise(element) : this.#resultOf(element);
  }

  #begin(): void {
    if (Number.isNaN(this.#startedAtMs)) this.#startedAtMs = this.#context.host.nowMs();
  }

  async #resultOfPromise(pending: Promise<unknown>): Promise<IteratorResult<T, undefined>> {
    const { host } = this.#context;
    const startedAtMs = host.nowMs();
    try {
      const result = this.#resultOf(await pending);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      throw this.#rejectionOf(error);
    } finally {
      this.#waitedMs += host.nowMs() - startedAtMs;
    }
  }

  /** The error with which `next()` rejects. A reading failure is reported once; then comes the end. */
  #rejectionOf(error: unknown): unknown {
    if (error instanceof ReadingFailure) {
      this.#failed = true;
      this.#endedAtMs ??= this.#context.host.nowMs();
    }
    return this.#options.keepsReadingFailures === true ? error : userErrorOf(error);
  }

  #resultOf(
    element: unknown,
  ): IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>> {
    this.#context.tuner.tick(this.#consumption);
    if (element !== END) {
      requireWhole(element, this.#context.stats);
      return { done: false, value: element as T };
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

  /** Makes one call that has to wait, and then the calls that arrived in the meantime. */
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
    this.#queue.add({ run, resolve, reject, whenClosed });
    return promise as Promise<R>;
  }

  async #serve(before: Promise<void> | undefined): Promise<void> {
    await before;
    for (const request of this.#queue) { // also those that arrive in the meantime
      try {
        request.resolve(await request.run());
      } catch (error) {
        // Closing answers all queued calls with the end. This call gets its error: remove it first.
        this.#queue.delete(request);
        const closing = this.#closeAtError();
        if (closing !== undefined) await closing;
        request.reject(error);
      }
      this.#queue.delete(request);
      if (this.#context.pacer.due()) await this.#context.pacer.yield();
    }
    this.#busy = false;
  }

  #closeAtError(): Promise<void> | undefined {
    return this.#options.closesAtError ? this.#close() : undefined;
  }

  /** Ends the iteration, and answers all pending calls with the end. */
  #close(): Promise<void> | undefined {
    this.#closed = true;
    this.#endedAtMs ??= this.#context.host.nowMs();
    const stopping = this.#stopRestoring();
    const closing = this.#dispose();
    for (const request of this.#queue) request.whenClosed();
    this.#queue.clear();
    return stopping === undefined ? closing : stopping.then(() => closing);
  }

  #dispose(): Promise<void> | undefined {
    this.#context.noteDisposed();
    this.#last.elements.dispose();
    return this.#context.close();
  }

  /** Injects no `prefetch` into a task of a service: the task reads ahead itself. */
  #open(context: IteratorContext, ahead?: SavedIteration["ahead"]): LastIterator {
    const { splits, split } = this.#options;
    const injects = splits === undefined && split === undefined &&
      context.uses("prefetchInjection");
    return openLast(context, this.#node, { injects, ahead });
  }
}

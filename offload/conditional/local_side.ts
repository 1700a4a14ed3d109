/** The local side of the conditional operator: runs splits in this process, a little ahead. */
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import type { Host } from "../../data/host.ts";
import { END } from "../../data/iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { Item, Side } from "./items.ts";
import type { SplitEvents } from "./epoch_splits.ts";
import { nextElement, nextPlace, type SplitRun } from "./split_run.ts";

export type OpenSplit = (
  sequence: number,
  events: SplitEvents,
) => { readonly split: number; readonly iterator: DatasetIterator<unknown> };

/** A split in progress. */
interface LocalRun extends SplitRun {
  /** Whether its source has been read to the end. Functions may still work on its last elements. */
  isRead: boolean;
  /** The first element, if the split was begun before its turn. */
  first?: Promise<Item | undefined>;
}

export interface LocalSideOptions {
  readonly host: Pick<Host, "yield" | "nowMs">;
  readonly open: OpenSplit;
  /** Limit of the items that are produced before they are requested. */
  readonly aheadMax: number;
}

/** Runs the splits of a queue, in order. */
export class LocalSide implements Side {
  readonly #options: LocalSideOptions;
  /** Splits that have not begun, ascending. */
  #queue: number[];
  /** The split that gives items. While functions work on its last elements, also the next split. */
  #runs: LocalRun[] = [];
  #ready: (Item | { readonly failure: unknown })[] = [];
  #waiting: PromiseWithResolvers<Item | typeof END> | undefined;
  #isWorking = false;
  #aheadSinceMs: number | undefined;
  /** Counts stops. What was begun before the last one is dropped. */
  #stops = 0;
  #disposed = false;

  constructor(queue: readonly number[], options: LocalSideOptions) {
    this.#queue = [...queue];
    this.#options = options;
  }

  get aheadSinceMs(): number | undefined {
    return this.#aheadSinceMs;
  }

  get isReady(): boolean {
    return this.#ready.length > 0;
  }

  /** The splits that have not begun. */
  get queue(): readonly number[] {
    return this.#queue;
  }

  /** Whether nothing is left. */
  get isEmpty(): boolean {
    return this.#queue.length === 0 && this.#runs.length === 0 && this.#ready.length === 0;
  }

  add(sequences: readonly number[]): void {
    this.#queue = [...this.#queue, ...sequences].sort((a, b) => a - b);
  }

  /** Removes splits that have not begun; returns those that were in the queue. */
  remove(sequences: readonly number[]): number[] {
    const unwanted = new Set(sequences);
    const removed = this.#queue.filter((at) => unwanted.has(at));
    this.#queue = this.#queue.filter((at) => !unwanted.has(at));
    return removed;
  }

  /** Starts again with other splits, and drops what was produced ahead. */
  restart(queue: readonly number[]): void {
    this.#stop();
    this.#queue = [...queue];
  }

  next(): Promise<Item | typeof END> {
    const item = this.#ready.shift();
    if (item !== undefined) {
      this.#work();
      return "failure" in item ? Promise.reject(item.failure) : Promise.resolve(item);
    }
    if (this.#disposed || this.isEmpty) return Promise.resolve(END);
    this.#waiting = Promise.withResolvers();
    this.#work();
    return this.#waiting.promise;
  }

  dispose(): void {
    this.#disposed = true;
    this.#stop();
    this.#waiting?.resolve(END);
    this.#waiting = undefined;
  }

  #stop(): void {
    this.#stops++;
    this.#isWorking = false;
    for (const { iterator } of this.#runs) iterator.return();
    this.#runs = [];
    this.#queue = [];
    this.#ready = [];
  }

  /** Produces items until enough are ready. */
  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#aheadSinceMs = undefined;
    const stops = this.#stops;
    const isStopped = () => stops !== this.#stops;
    try {
      while (this.#ready.length < this.#options.aheadMax) {
        // An item that is not asked for yet is produced only when the event loop is idle.
        if (this.#waiting === undefined) await this.#options.host.yield();
        if (isStopped()) return;
        const item = await this.#produce();
        if (isStopped()) return;
        if (item === END) break;
        this.#give(item);
      }
    } catch (error) {
      if (isStopped()) return;
      const failure = ReadingFailure.of(error);
      if (this.#waiting === undefined) this.#ready.push({ failure });
      else this.#waiting.reject(failure);
      this.#waiting = undefined;
    }
    this.#isWorking = false;
    this.#aheadSinceMs = this.#options.host.nowMs();
    if (this.#waiting === undefined) return;
    if (this.#ready.length > 0 || this.#queue.length > 0) return void this.#work();
    this.#waiting.resolve(END);
    this.#waiting = undefined;
  }

  #give(item: Item): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#ready.push(item);
    else waiting.resolve(item);
  }

  async #produce(): Promise<Item | typeof END> {
    const run = this.#runs[0] ?? this.#open();
    if (run === undefined) return END;
    const { first } = run;
    delete run.first;
    const element = await (first ?? nextElement(run));
    if (element !== undefined) return element;
    const { remainder } = run;
    run.remainder = undefined;
    if (remainder !== undefined) {
      return { kind: "remainder", place: nextPlace(run), rows: remainder.rows };
    }
    if (this.#runs[0] === run) this.#runs.shift();
    this.#beginNext();
    return { kind: "split_end", place: nextPlace(run) };
  }

  #open(): LocalRun | undefined {
    const sequence = this.#queue.shift();
    if (sequence === undefined) return undefined;
    const opened = this.#options.open(sequence, {
      onRemainder: (rows) => run.remainder = { rows },
      onRead: () => {
        run.isRead = true;
        this.#beginNext();
      },
    });
    const run: LocalRun = {
      ...{ sequence, ...opened, index: 0, remainder: undefined, hasEnded: false, isRead: false },
    };
    this.#runs.push(run);
    return run;
  }

  /** Begins the next split once the source of this one has been read: otherwise cores would be idle. */
  #beginNext(): void {
    if (this.#runs.length !== 1 || !this.#runs[0]!.isRead) return;
    const next = this.#open();
    if (next === undefined) return;
    next.first = Promise.resolve().then(() => nextElement(next));
    next.first.catch(() => {});
  }
}

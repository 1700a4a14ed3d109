/**
 * Runs the operators above the part that workers run, on this host and split by split. A split then
 * has the same items as one that this host prepares alone.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../../data/context.ts";
import type { DatasetIterator } from "../../data/dataset_iterator.ts";
import { ElementIterator, END } from "../../data/iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import type { Attributes, DatasetNode } from "../../data/node.ts";
import { SameElementsNode } from "../../data/operators/unary.ts";
import type { Item } from "./items.ts";
import { nextElement, nextPlace, type SplitRun } from "./split_run.ts";

/** Gives the next element of the lower part of a split: what workers prepare. */
export type ReadLower = () => Promise<unknown | typeof END>;

/** Opens a split, with the elements of its lower part from `read`. */
export type OpenUpper = (
  split: number,
  read: ReadLower,
  onRemainder: (rows: unknown) => void,
) => DatasetIterator<unknown>;

interface Run extends SplitRun {
  /** How many items of the lower part it has taken. */
  taken: number;
}

/** Turns the items of the lower part into those of the whole part. */
export class UpperPart {
  readonly #open: OpenUpper;
  readonly #take: () => Promise<Item | typeof END>;
  readonly #nowMs: () => number;
  #run: Run | undefined;
  /** The item that was requested last, if it was not used yet. */
  #taking: Promise<Item | typeof END> | undefined;
  /** The next item, once it is being assembled. */
  #assembling: Promise<Item | typeof END> | undefined;
  #readySinceMs: number | undefined;
  #isDisposed = false;

  constructor(open: OpenUpper, take: () => Promise<Item | typeof END>, nowMs: () => number) {
    this.#open = open;
    this.#take = take;
    this.#nowMs = nowMs;
  }

  /** Since when the next item is assembled. Undefined if it is not yet. */
  get readySinceMs(): number | undefined {
    return this.#readySinceMs;
  }

  /** Assembles the next item before it is requested. */
  prepare(): void {
    if (this.#assembling !== undefined) return;
    const assembling = this.#assembling = this.#assemble();
    const noteReady = () => {
      if (this.#assembling === assembling) this.#readySinceMs = this.#nowMs();
    };
    assembling.then(noteReady, noteReady);
  }

  /** The next item; `END` after the last split. */
  async next(): Promise<Item | typeof END> {
    const item = await (this.#assembling ?? this.#assemble());
    this.#assembling = this.#readySinceMs = undefined;
    return item;
  }

  async #assemble(): Promise<Item | typeof END> {
    const run = this.#run ?? await this.#begin();
    if (run === undefined) return END;
    const element = await nextElement(run);
    if (element !== undefined) return element;
    this.#run = undefined;
    const { remainder } = run, place = nextPlace(run);
    return remainder === undefined
      ? { kind: "split_end", place }
      : { kind: "remainder", place, rows: remainder.rows };
  }

  dispose(): void {
    this.#isDisposed = true;
    this.#run?.iterator.return();
    this.#run = undefined;
  }

  async #begin(): Promise<Run | undefined> {
    const item = await (this.#taking ??= this.#take());
    if (item === END || this.#isDisposed) return undefined;
    const { sequence, split, index } = item.place;
    if (index !== 0) throw brokenOff(split);
    const read = () => this.#read(run);
    const iterator = this.#open(split, read, (rows) => run.remainder = { rows });
    const run: Run = {
      ...{ sequence, split, iterator },
      ...{ index: 0, taken: 0, remainder: undefined, hasEnded: false },
    };
    return this.#run = run;
  }

  /** The next element of the lower part of a split. */
  async #read(run: Run): Promise<unknown | typeof END> {
    for (;;) {
      const taking = this.#taking ??= this.#take();
      const item = await taking;
      // This part was disposed.
      if (this.#run !== run) return END;
      if (item === END || item.place.sequence !== run.sequence) throw brokenOff(run.split);
      this.#taking = undefined;
      if (item.kind === "split_end") return END;
      if (item.place.index < run.taken) continue;
      run.taken = item.place.index + 1;
      if (item.kind === "error") throw item.error;
      if (item.kind === "element") return item.element;
      throw brokenOff(run.split);
    }
  }
}

function brokenOff(split: number): ReadingFailure {
  return new ReadingFailure(
    new LeatError("internal", `The service did not give all elements of split ${split}`),
  );
}

/** The part of a pipeline above `lower`, whose elements come from `read`. */
export class UpperNode extends SameElementsNode {
  override readonly division = "whole";
  /** The user has not written this operator: it must not change the random seeds of the others. */
  override readonly isSetting = true;
  readonly #lower: DatasetNode;
  readonly #read: ReadLower;

  constructor(input: DatasetNode, lower: DatasetNode, read: ReadLower) {
    super("upper", input);
    this.#lower = lower;
    this.#read = read;
  }

  override get attributes(): Attributes {
    return {};
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    context.replace(this.#lower, (context) => new LowerIterator(context, this.#read));
    return context.passInput();
  }
}

/** Gives the elements of the lower part. */
class LowerIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #read: ReadLower;
  #hasEnded = false;

  constructor(context: IteratorContext, read: ReadLower) {
    super();
    this.#context = context;
    this.#read = read;
  }

  override async next(): Promise<unknown> {
    if (this.disposed || this.#hasEnded) return END;
    const { stats } = this.#context;
    let element: unknown;
    try {
      element = await this.#context.waitFor(this.#read());
    } catch (error) {
      throw error instanceof ReadingFailure ? error : stats.failed(error);
    }
    if (element === END || this.disposed) {
      this.#hasEnded = true;
      return END;
    }
    return stats.gave(element);
  }

  protected override saveState(): Promise<unknown> {
    throw new LeatError("internal", "A split in progress has no state of its own");
  }

  protected override restoreState(): Promise<void> {
    return Promise.resolve();
  }

  protected override release(): void {}
}

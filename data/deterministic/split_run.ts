/** Runs one split of an ordered chain as a dataset of its own. */
import type { IteratorContext } from "../context.ts";
import { type DatasetIterator, openIterator } from "../dataset_iterator.ts";
import type { IterationOptions } from "../iteration_options.ts";
import { type ElementIterator, END, type Pulled } from "../iterator.ts";
import { rebuilt } from "../foreign/foreign.ts";
import type { Attributes, DatasetNode } from "../node.ts";
import { ElementsOfInputNode, UnaryIterator } from "../operators/unary.ts";
import type { ReadGiven, Split } from "../sharding/splits.ts";
import { type OrderedChain, withInputs } from "./chain.ts";
import { type Remainder, rowsIn } from "./remainder.ts";

export interface SplitRunOptions extends
  Pick<
    IterationOptions,
    "host" | "batchMemory" | "isReadOnly" | "keepsReadingFailures" | "settings"
  > {
  readonly seed: bigint;
  readonly epoch: number;
  /** The split's index in its table. */
  readonly index: number;
  readonly split: Split;
  /** Receives the last rows of the split, if they do not fill a batch. */
  readonly onRemainder: (remainder: Remainder) => void;
  /**
   * Called once the source has been read to the end of the split. Its last elements may still
   * follow.
   */
  readonly onRead?: (() => void) | undefined;
  /** Reads the elements of a `given` source. */
  readonly read?: ReadGiven | undefined;
}

/**
 * Opens a split. The iterator gives its elements or, if the chain has a batch, its full batches, to
 * which it has applied the operators after the batch.
 */
export function openSplit(chain: OrderedChain, options: SplitRunOptions): DatasetIterator<unknown> {
  const { seed, epoch, index, split, onRemainder, onRead, read, host } = options;
  const { batchMemory, isReadOnly = false, keepsReadingFailures = false, settings } = options;
  let handedOut = false;
  return openIterator(graphOf(chain, onRemainder), {
    ...(host === undefined ? {} : { host }),
    seed,
    epoch,
    batchMemory,
    isReadOnly,
    keepsReadingFailures,
    settings,
    // A split that is run again must give the same elements by the same numbers.
    needsOrder: true,
    // 0 means that the iteration does not run a split.
    split: index + 1,
    splits: {
      next: () => {
        if (handedOut) onRead?.();
        const next = handedOut ? END : split;
        handedOut = true;
        return Promise.resolve(next);
      },
      total: () => Promise.resolve(1),
      read,
    },
  });
}

function graphOf(
  { perSplit, batch, after }: OrderedChain,
  onRemainder: (remainder: Remainder) => void,
): DatasetNode {
  if (batch === undefined) return perSplit;
  const short = "keepsRows" in batch ? { keepsRows: true } : {};
  const batches = rebuilt(batch, { ...batch.attributes, dropRemainder: false, ...short }, [
    perSplit,
  ]);
  return after.reduce(
    (below, node) => withInputs(node, [below]),
    new FullBatchesNode(batches, batchSizeOf(batch), onRemainder) as DatasetNode,
  );
}

/** The operator `batch` over `rows`, set to keep a short last batch. */
export function gathering(batch: DatasetNode, rows: DatasetNode): DatasetNode {
  return withInputs(withoutDropping(batch), [rows]);
}

function withoutDropping(batch: DatasetNode): DatasetNode {
  if (batch.attributes["dropRemainder"] !== true) return batch;
  return rebuilt(batch, { ...batch.attributes, dropRemainder: false }, batch.inputs);
}

/** How many rows fill a batch. */
export function batchSizeOf(batch: DatasetNode): number {
  return batch.attributes["size"] as number;
}

/** Passes full batches on. A short batch is kept back and ends the stream. */
class FullBatchesNode extends ElementsOfInputNode {
  override readonly division = "whole";
  /** A setting changes no random numbers of the user's operators. */
  override readonly isSetting = true;
  readonly size: number;
  readonly onRemainder: (remainder: Remainder) => void;

  constructor(input: DatasetNode, size: number, onRemainder: (remainder: Remainder) => void) {
    super("fullBatches", input);
    this.size = size;
    this.onRemainder = onRemainder;
  }

  override get attributes(): Attributes {
    return { size: this.size };
  }

  /** Whether the input wraps its batches, full ones too, as `Remainder`s. */
  get isWrapped(): boolean {
    return this.input.attributes["keepsRows"] === true;
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return new FullBatchesIterator(context, this);
  }
}

class FullBatchesIterator extends UnaryIterator {
  readonly #node: FullBatchesNode;

  constructor(context: IteratorContext, node: FullBatchesNode) {
    super(context);
    this.#node = node;
  }

  override next(): Pulled<unknown> {
    const batch = this.input.next();
    return batch instanceof Promise
      ? this.arrival(batch).then((element) => this.#pass(element))
      : this.#pass(batch);
  }

  #pass(batch: unknown): unknown {
    if (batch === END || this.disposed) return END;
    const given = (this.#node.isWrapped ? batch : { batch }) as Remainder;
    if ("batch" in given && rowsIn(given) === this.#node.size) return this.stats.gave(given.batch);
    this.#node.onRemainder(given);
    return END;
  }

  protected override ownState(): object {
    return {};
  }

  protected override restoreOwn(): void {}
}

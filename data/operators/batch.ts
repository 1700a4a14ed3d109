/**
 * `batch`: consecutive elements stacked along a new first axis.
 */
import { checkBoolean, checkInteger, checkOptionalBoolean } from "../check.ts";
import { columnFor } from "../columns.ts";
import type { IteratorContext } from "../context.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { checkParallelCalls } from "../parallelism.ts";
import { type ElementSpec, mapSpec, TensorSpec } from "../spec.ts";
import { GatheringIterator } from "./gathering.ts";
import { UnaryNode } from "./unary.ts";

/** The number of batches that `count` elements make. */
export function countBatches(count: number, size: number, dropRemainder: boolean): number {
  if (count === UNKNOWN_CARDINALITY || count === Infinity) return count;
  return dropRemainder ? Math.floor(count / size) : Math.ceil(count / size);
}

/** How `batch` runs. */
export interface BatchAttributes {
  /** Leaves out a last batch that is not full; default false. */
  readonly dropRemainder?: boolean | undefined;
  /**
   * Recorded, and without effect: a batch is put together on the pipeline's one thread. What overlaps
   * are the calls below it (`map`), and its making with its consumer (`prefetch`).
   */
  readonly numParallelCalls?: number | undefined;
  /** Recorded, and without effect: batches always come in order. */
  readonly deterministic?: boolean | undefined;
}

export class BatchNode extends UnaryNode {
  readonly size: number;
  readonly dropRemainder: boolean;
  readonly #parallelism: Omit<BatchAttributes, "dropRemainder">;

  constructor(input: DatasetNode, size: unknown, options: BatchAttributes = {}) {
    super("batch", input);
    this.size = checkInteger("batch", "size", size, 1);
    this.dropRemainder = checkBoolean("batch", "dropRemainder", options.dropRemainder, false);
    this.#parallelism = {
      numParallelCalls: checkParallelCalls("batch", options.numParallelCalls),
      deterministic: checkOptionalBoolean("batch", "deterministic", options.deterministic),
    };
  }

  override get attributes(): Attributes {
    return { size: this.size, dropRemainder: this.dropRemainder, ...this.#parallelism };
  }

  override get elementSpec(): ElementSpec {
    const rows = this.dropRemainder ? this.size : null;
    return mapSpec(
      this.input.elementSpec,
      (leaf) => new TensorSpec(leaf.dtype, [rows, ...leaf.shape]),
    );
  }

  override get cardinality(): number {
    return countBatches(this.input.cardinality, this.size, this.dropRemainder);
  }

  override splitMultiple(multiple: number): number {
    return multiple * this.size;
  }

  override makeIterator(context: IteratorContext): GatheringIterator {
    const spec = this.input.elementSpec;
    return new GatheringIterator(
      context,
      this,
      (element) => columnFor(element, spec, this.size),
    );
  }
}

registerNode("batch", {
  fromWire: (a, [input]) => new BatchNode(input!, a.size, a),
});

/**
 * `batch`: consecutive elements stacked along a new first axis.
 */
import { checkBoolean, checkInteger } from "../check.ts";
import { columnFor } from "../columns.ts";
import type { IteratorContext } from "../context.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { type ElementSpec, mapSpec, TensorSpec } from "../spec.ts";
import { GatheringIterator } from "./gathering.ts";
import { UnaryNode } from "./unary.ts";

/** The number of batches that `count` elements make. */
export function countBatches(count: number, size: number, dropRemainder: boolean): number {
  if (count === UNKNOWN_CARDINALITY || count === Infinity) return count;
  return dropRemainder ? Math.floor(count / size) : Math.ceil(count / size);
}

export class BatchNode extends UnaryNode {
  readonly size: number;
  readonly dropRemainder: boolean;

  constructor(input: DatasetNode, size: unknown, dropRemainder?: unknown) {
    super("batch", input);
    this.size = checkInteger("batch", "size", size, 1);
    this.dropRemainder = checkBoolean("batch", "dropRemainder", dropRemainder, false);
  }

  override get attributes(): Attributes {
    return { size: this.size, dropRemainder: this.dropRemainder };
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
  fromWire: (a, [input]) => new BatchNode(input!, a.size, a.dropRemainder),
});

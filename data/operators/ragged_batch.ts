/**
 * `raggedBatch`: consecutive elements of different lengths, behind each other.
 */
import { checkBoolean, checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { raggedColumnFor, raggedSpec } from "../ragged.ts";
import type { ElementSpec } from "../spec.ts";
import { countBatches } from "./batch.ts";
import { GatheringIterator } from "./gathering.ts";
import { UnaryNode } from "./unary.ts";

/** How `raggedBatch` ends. */
export interface RaggedBatchAttributes {
  /** Leaves out a last batch that is not full; default false. */
  readonly dropRemainder?: boolean | undefined;
}

export class RaggedBatchNode extends UnaryNode {
  readonly size: number;
  readonly dropRemainder: boolean;

  constructor(input: DatasetNode, size: unknown, { dropRemainder }: RaggedBatchAttributes = {}) {
    super("raggedBatch", input);
    this.size = checkInteger("raggedBatch", "size", size, 1);
    this.dropRemainder = checkBoolean("raggedBatch", "dropRemainder", dropRemainder, false);
  }

  override get attributes(): Attributes {
    return { size: this.size, dropRemainder: this.dropRemainder };
  }

  override get elementSpec(): ElementSpec {
    return raggedSpec(this.input.elementSpec, this.dropRemainder ? this.size : null);
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
      (element) => raggedColumnFor(element, spec, this.size),
    );
  }
}

registerNode("raggedBatch", {
  fromWire: (a, [input]) => new RaggedBatchNode(input!, a.size, a),
});

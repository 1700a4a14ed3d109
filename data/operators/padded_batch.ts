/**
 * `paddedBatch`: consecutive elements of different lengths, padded and stacked.
 */
import { checkBoolean, checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import {
  checkPaddedShapes,
  checkPadding,
  paddedColumnFor,
  type PaddedShapes,
  paddedSpec,
  type Padding,
  type PaddingValues,
} from "../padding.ts";
import type { ElementSpec } from "../spec.ts";
import { countBatches } from "./batch.ts";
import { GatheringIterator } from "./gathering.ts";
import { UnaryNode } from "./unary.ts";

/** How `paddedBatch` pads. */
export interface PaddedBatchAttributes {
  readonly paddedShapes?: PaddedShapes | undefined;
  readonly paddingValues?: PaddingValues | undefined;
  readonly dropRemainder?: boolean | undefined;
}

export class PaddedBatchNode extends UnaryNode {
  readonly size: number;
  readonly dropRemainder: boolean;
  readonly padding: Padding;

  constructor(input: DatasetNode, size: unknown, options: PaddedBatchAttributes = {}) {
    super("paddedBatch", input);
    this.size = checkInteger("paddedBatch", "size", size, 1);
    this.dropRemainder = checkBoolean(
      "paddedBatch",
      "dropRemainder",
      options.dropRemainder,
      false,
    );
    this.padding = {
      shapes: checkPaddedShapes("paddedBatch", options.paddedShapes),
      values: options.paddingValues,
    };
    checkPadding("paddedBatch", input.elementSpec, this.padding);
  }

  override get attributes(): Attributes {
    return {
      size: this.size,
      dropRemainder: this.dropRemainder,
      paddedShapes: this.padding.shapes,
      paddingValues: this.padding.values,
    };
  }

  override get elementSpec(): ElementSpec {
    const rows = this.dropRemainder ? this.size : null;
    return paddedSpec(this.input.elementSpec, this.padding.shapes, rows);
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
      (element) => paddedColumnFor(element, spec, this.padding, this.size),
    );
  }
}

registerNode("paddedBatch", {
  fromWire: (a, [input]) => new PaddedBatchNode(input!, a.size, a),
});

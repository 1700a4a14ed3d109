/** `paddedBatch`: consecutive elements of different lengths, padded and stacked. */
import { checkBoolean, optionsOf } from "../../check.ts";
import type { Column } from "../../elements/leaf_columns.ts";
import { type Attributes, type Changeable, type DatasetNode, registerNode } from "../../node.ts";
import {
  checkPaddedShapes,
  checkPadding,
  paddedColumnFor,
  type PaddedShapes,
  paddedSpec,
  type Padding,
  type PaddingValues,
} from "../../elements/padding.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { GatheringNode } from "./gathering.ts";

/** Options of `paddedBatch`. */
export interface PaddedBatchOptions {
  /**
   * The shape of every component, `[]` for a scalar; -1 or null is the longest of the batch. Default:
   * null everywhere.
   */
  readonly paddedShapes?: PaddedShapes | undefined;
  /** The values to pad with: one, or one per component. Default: 0, `false` or `""`. */
  readonly paddingValues?: PaddingValues | undefined;
  /** Drops a last batch that is not full. Default false. */
  readonly dropRemainder?: boolean | undefined;
}

export class PaddedBatchNode extends GatheringNode {
  static readonly options = optionsOf<PaddedBatchOptions>("paddedBatch", {
    paddedShapes: true,
    paddingValues: true,
    dropRemainder: true,
  });
  readonly padding: Padding;
  /**
   * Whether it gives `{ batch }`, or `{ rows }` if the rows do not fill a batch (see `Remainder`).
   * Rows of several splits are padded together, so they must not be padded before.
   */
  readonly keepsRows: boolean;

  constructor(
    input: DatasetNode,
    size: unknown,
    options: PaddedBatchOptions & { readonly keepsRows?: unknown } = {},
  ) {
    super("paddedBatch", input, size, options.dropRemainder);
    this.keepsRows = checkBoolean("paddedBatch", "keepsRows", options.keepsRows, false);
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
      ...(this.keepsRows ? { keepsRows: true } : {}),
    };
  }

  override get elementSpec(): ElementSpec {
    if (this.keepsRows) return undefined;
    return paddedSpec(this.input.elementSpec, this.padding.shapes, this.rows);
  }

  override changeableInput(own: Changeable): Changeable {
    return this.keepsRows ? "all" : super.changeableInput(own);
  }

  override giveBatch(column: Column, count: number): unknown {
    if (!this.keepsRows) return super.giveBatch(column, count);
    if (count === this.size) return { batch: column.finish(count) };
    return { rows: Array.from({ length: count }, (_, i) => column.read(i)) };
  }

  protected override columnsOf(spec: ElementSpec): (element: unknown) => Column {
    return (element) => paddedColumnFor(element, spec, this.padding, this.size);
  }
}

registerNode("paddedBatch", {
  fromWire: (a, [input]) => new PaddedBatchNode(input!, a.size, a),
});

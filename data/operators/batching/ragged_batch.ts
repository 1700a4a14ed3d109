/** `raggedBatch`: consecutive elements of different lengths, concatenated. */
import { optionsOf } from "../../check.ts";
import type { Column } from "../../elements/leaf_columns.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { raggedColumnFor, raggedSpec } from "../../elements/ragged.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { GatheringNode } from "./gathering.ts";

/** Options of `raggedBatch`. */
export interface RaggedBatchOptions {
  /** Drops a last batch that is not full; default false. */
  readonly dropRemainder?: boolean | undefined;
}

export class RaggedBatchNode extends GatheringNode {
  static readonly options = optionsOf<RaggedBatchOptions>("raggedBatch", { dropRemainder: true });
  constructor(input: DatasetNode, size: unknown, { dropRemainder }: RaggedBatchOptions = {}) {
    super("raggedBatch", input, size, dropRemainder);
  }

  override get attributes(): Attributes {
    return { size: this.size, dropRemainder: this.dropRemainder };
  }

  override get elementSpec(): ElementSpec {
    return raggedSpec(this.input.elementSpec, this.rows);
  }

  protected override columnsOf(spec: ElementSpec): (element: unknown) => Column {
    return (element) => raggedColumnFor(element, spec, this.size);
  }
}

registerNode("raggedBatch", {
  fromWire: (a, [input]) => new RaggedBatchNode(input!, a.size, a),
});

/** `batch`: consecutive elements stacked along a new first axis. */
import { checkOptionalBoolean, optionsOf } from "../../check.ts";
import { columnFor } from "../../elements/columns.ts";
import type { Column } from "../../elements/leaf_columns.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import { checkParallelCalls } from "../../parallelism.ts";
import { type ElementSpec, mapSpec, TensorSpec } from "../../elements/spec.ts";
import { GatheringNode } from "./gathering.ts";

/** Options of `batch`. */
export interface BatchOptions {
  /** Drops a last batch that is not full; default false. */
  readonly dropRemainder?: boolean | undefined;
  /**
   * Recorded, without effect, because a batch is assembled on the pipeline's thread. Calls of a
   * `map` before it can run in parallel, and a `prefetch` after it can overlap it with the
   * consumer.
   */
  readonly numParallelCalls?: number | undefined;
  /** Recorded, without effect: batches always come in order. */
  readonly deterministic?: boolean | undefined;
}

export class BatchNode extends GatheringNode {
  static readonly options = optionsOf<BatchOptions>("batch", {
    dropRemainder: true,
    numParallelCalls: true,
    deterministic: true,
  });
  override readonly isPlain = true;
  readonly #parallelism: Omit<BatchOptions, "dropRemainder">;

  constructor(input: DatasetNode, size: unknown, options: BatchOptions = {}) {
    super("batch", input, size, options.dropRemainder);
    this.#parallelism = {
      numParallelCalls: checkParallelCalls("batch", options.numParallelCalls),
      deterministic: checkOptionalBoolean("batch", "deterministic", options.deterministic),
    };
  }

  override get attributes(): Attributes {
    return { size: this.size, dropRemainder: this.dropRemainder, ...this.#parallelism };
  }

  override get elementSpec(): ElementSpec {
    const { rows } = this;
    return mapSpec(
      this.input.elementSpec,
      (leaf) => new TensorSpec(leaf.dtype, [rows, ...leaf.shape]),
    );
  }

  protected override columnsOf(spec: ElementSpec): (element: unknown) => Column {
    return (element) => columnFor(element, spec, this.size);
  }
}

registerNode("batch", {
  fromWire: (a, [input]) => new BatchNode(input!, a.size, a),
});

/** `unbatch`: the rows of every element, one by one. */
import { flattenTree, treePaths } from "../../../core/tree.ts";
import { commonRows, rowSpec, SingleRows } from "../../elements/components.ts";
import type { IteratorContext } from "../../context.ts";
import { type HeldElements, heldFrom, restoreHeld, saveHeld } from "../../elements/held.ts";
import { END } from "../../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { type ElementSpec, leavesOfSpec, mapSpec } from "../../elements/spec.ts";
import { checkHasRows } from "../../elements/spec_check.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";

export class UnbatchNode extends UnaryNode {
  override readonly division = "split";
  override readonly attributes: Attributes = {};

  constructor(input: DatasetNode) {
    super("unbatch", input);
    checkHasRows("unbatch", input.elementSpec);
  }

  override get elementSpec(): ElementSpec {
    return mapSpec(this.input.elementSpec, rowSpec);
  }

  /** Exact if every batch has the same known number of rows in all components. */
  override get cardinality(): number {
    const { cardinality, elementSpec } = this.input;
    if (cardinality === 0 || cardinality === Infinity) return cardinality;
    const rows = new Set(leavesOfSpec(elementSpec)?.map((leaf) => leaf.shape[0] ?? null));
    rows.delete(null);
    if (cardinality === UNKNOWN_CARDINALITY || rows.size !== 1) return UNKNOWN_CARDINALITY;
    return cardinality * [...rows][0]!;
  }

  override makeIterator(context: IteratorContext): UnbatchIterator {
    return new UnbatchIterator(context);
  }
}

registerNode("unbatch", { fromWire: (_, [input]) => new UnbatchNode(input!) });

interface UnbatchState {
  readonly batch: unknown;
  readonly row: number;
  readonly rows: number;
}

const NOTHING: HeldElements = { elements: [], tokens: [] };

class UnbatchIterator extends ElementwiseIterator {
  /** The batch whose rows are being given. */
  #batch = NOTHING;
  /** Its rows; made from the batch on demand. */
  #single: SingleRows | undefined;
  #row = 0;
  #rows = 0;

  override step(): unknown {
    if (this.#row >= this.#rows) return super.step();
    this.#single ??= new SingleRows(this.#batch.elements[0], this.#rows, this.context.changeable);
    return this.stats.gave(this.#single.at(this.#row++));
  }

  protected override accept(batch: unknown): unknown {
    if (batch === END) return END;
    this.#rows = this.#row = 0;
    this.#single = undefined;
    const rows = commonRows("unbatch", flattenTree(batch), treePaths(batch));
    this.#batch = heldFrom(this.input, batch);
    this.#rows = rows;
    return AGAIN;
  }

  protected override ownState(): UnbatchState {
    return {
      batch: saveHeld(this.#row < this.#rows ? this.#batch : NOTHING),
      row: this.#row,
      rows: this.#rows,
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { batch, row, rows } = state as UnbatchState;
    this.#batch = await restoreHeld(batch, this.input);
    this.#row = row;
    this.#rows = rows;
  }

  protected override release(): void {
    super.release();
    this.#batch = NOTHING;
    this.#single = undefined;
    this.#rows = this.#row;
  }
}

/**
 * `unbatch`: the rows of every element, one by one.
 */
import { flattenTree, treePaths } from "../../core/tree.ts";
import { commonRows, rowAt, rowSpec } from "../components.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { type ElementSpec, mapSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

export class UnbatchNode extends UnaryNode {
  constructor(input: DatasetNode) {
    super("unbatch", input);
  }

  override get attributes(): Attributes {
    return {};
  }

  override get elementSpec(): ElementSpec {
    return mapSpec(this.input.elementSpec, rowSpec);
  }

  override get cardinality(): number {
    return this.input.cardinality === 0 ? 0 : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): UnbatchIterator {
    return new UnbatchIterator(context);
  }
}

registerNode("unbatch", { fromWire: (_, [input]) => new UnbatchNode(input!) });

class UnbatchIterator extends UnaryIterator implements Stepping {
  #batch: unknown;
  #row = 0;
  #rows = 0;

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.#row < this.#rows) {
      this.stats.elements++;
      return rowAt(this.#batch, this.#row++);
    }
    const batch = this.input.next();
    return batch instanceof Promise ? this.#later(batch) : this.#accept(batch);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#accept(await this.arrival(pending));
  }

  #accept(batch: unknown): unknown {
    if (batch === END || this.disposed) return END;
    this.#rows = this.#row = 0;
    const rows = commonRows("unbatch", flattenTree(batch), treePaths(batch));
    this.#batch = batch;
    this.#rows = rows;
    return AGAIN;
  }

  protected override release(): void {
    super.release();
    this.#batch = undefined;
    this.#rows = this.#row;
  }
}

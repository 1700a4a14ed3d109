/** `counter`: an endless sequence of numbers. */
import { checkNumber, invalidArgument } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type Attributes, DatasetNode, registerNode } from "../../node.ts";
import { TensorSpec } from "../../elements/spec.ts";
import type { Replicated } from "../../sharding/splits.ts";
import { BlockIterator } from "./indexed.ts";

export class CounterNode extends DatasetNode implements Replicated {
  override readonly division = "whole";
  override readonly elementSpec = new TensorSpec("float64", []);
  override readonly cardinality = Infinity;
  readonly isReplicated = true;
  readonly start: number;
  readonly step: number;

  constructor(start: unknown = 0, step: unknown = 1) {
    super("counter", []);
    this.start = checkNumber("counter", "start", start);
    this.step = checkNumber("counter", "step", step);
    if (this.step === 0) throw invalidArgument("counter", "step", "other than 0", step);
  }

  override get attributes(): Attributes {
    return { start: this.start, step: this.step };
  }

  override makeIterator(context: IteratorContext): CounterIterator {
    return new CounterIterator(context, this);
  }
}

registerNode("counter", { fromWire: (a) => new CounterNode(a.start, a.step) });

class CounterIterator extends BlockIterator {
  readonly #start: number;
  readonly #step: number;

  constructor(context: IteratorContext, { start, step }: CounterNode) {
    super(context, Infinity);
    this.#start = start;
    this.#step = step;
  }

  protected override at(index: number): number {
    return this.#start + index * this.#step;
  }
}

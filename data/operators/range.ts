/**
 * `range`: evenly spaced numbers.
 */
import { checkNumber, invalidArgument } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { Pulled } from "../iterator.ts";
import { type Attributes, registerNode } from "../node.ts";
import { TensorSpec } from "../spec.ts";
import { IndexedIterator, IndexedNode } from "./indexed.ts";

export class RangeNode extends IndexedNode {
  readonly start: number;
  readonly stop: number;
  readonly step: number;

  constructor(start: unknown, stop: unknown, step: unknown) {
    super("range");
    this.start = checkNumber("range", "start", start);
    this.stop = checkNumber("range", "stop", stop);
    this.step = checkNumber("range", "step", step);
    if (this.step === 0) throw invalidArgument("range", "step", "other than 0", step);
  }

  override get attributes(): Attributes {
    return { start: this.start, stop: this.stop, step: this.step };
  }

  override get elementSpec(): TensorSpec {
    return new TensorSpec("float64", []);
  }

  override get cardinality(): number {
    return Math.max(0, Math.ceil((this.stop - this.start) / this.step));
  }

  override makeIterator(context: IteratorContext): RangeIterator {
    return new RangeIterator(context, this);
  }
}

registerNode("range", { fromWire: (a) => new RangeNode(a.start, a.stop, a.step) });

class RangeIterator extends IndexedIterator {
  readonly #start: number;
  readonly #step: number;

  constructor(context: IteratorContext, { start, step, cardinality }: RangeNode) {
    super(context, cardinality);
    this.#start = start;
    this.#step = step;
  }

  /** Written out, because the class above serves many sources and is slower for it. */
  override next(): Pulled<unknown> {
    if (this.position >= this.stop) return this.beyond();
    return this.#start + this.position++ * this.#step;
  }

  protected override at(index: number): number {
    return this.#start + index * this.#step;
  }
}

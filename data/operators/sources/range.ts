/** `range`: evenly spaced numbers. */
import { checkNumber, invalidArgument } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { NO_BLOCK } from "../../iterator.ts";
import { type Attributes, registerNode } from "../../node.ts";
import { TensorSpec } from "../../elements/spec.ts";
import { IndexedIterator, IndexedNode } from "./indexed.ts";

export class RangeNode extends IndexedNode {
  override readonly elementSpec = new TensorSpec("float64", []);
  readonly start: number;
  readonly stop: number;
  readonly step: number;

  constructor(start: unknown, stop: unknown, step: unknown) {
    super("range");
    this.start = checkNumber("range", "start", start);
    this.stop = checkNumber("range", "stop", stop);
    this.step = checkNumber("range", "step", step);
    if (this.step === 0) throw invalidArgument("range", "step", "other than 0", step);
    if (this.cardinality > Number.MAX_SAFE_INTEGER) {
      const wanted = `no more than ${Number.MAX_SAFE_INTEGER} steps from start`;
      throw invalidArgument("range", "stop", wanted, stop);
    }
  }

  override get attributes(): Attributes {
    return { start: this.start, stop: this.stop, step: this.step };
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
  readonly #isWhole: boolean;

  constructor(context: IteratorContext, { start, step, cardinality }: RangeNode) {
    super(context, cardinality);
    this.#start = start;
    this.#step = step;
    this.#isWhole = [start, step, start + cardinality * step].every(Number.isSafeInteger);
  }

  override nextBlock(into: unknown[], count: number): number {
    const first = this.position;
    // `| 0`: V8 then keeps positions as small integers, even if the division made `stop` a double.
    const length = Math.min(count, this.stop - first) | 0;
    if (length <= 0) return NO_BLOCK;
    if (this.#isWhole) this.#count(into, first, length);
    else for (let i = 0; i < length; i++) into[i] = this.at(first + i);
    this.position = first + length;
    this.stats.gaveBlock(into, length);
    return length;
  }

  protected override at(index: number): number {
    return this.#start + index * this.#step;
  }

  /** Uses sums, which are exact for integers and which V8 keeps as integers, unlike products. */
  #count(into: unknown[], first: number, length: number): void {
    const step = this.#step;
    let value = this.at(first);
    for (let i = 0; i < length; i++) {
      into[i] = value;
      value += step;
    }
  }
}

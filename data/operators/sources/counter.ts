/** `counter`: an endless sequence of numbers. */
import { checkNumber, invalidArgument } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { NO_BLOCK } from "../../iterator.ts";
import { type Attributes, DatasetNode, registerNode } from "../../node.ts";
import { TensorSpec } from "../../elements/spec.ts";
import type { Replicated } from "../../sharding/splits.ts";
import { IndexedIterator } from "./indexed.ts";

export class CounterNode extends DatasetNode implements Replicated {
  override readonly division = "whole";
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

  override get elementSpec(): TensorSpec {
    return new TensorSpec("float64", []);
  }

  override get cardinality(): number {
    return Infinity;
  }

  get isReplicated(): boolean {
    return true;
  }

  override makeIterator(context: IteratorContext): CounterIterator {
    return new CounterIterator(context, this);
  }
}

registerNode("counter", { fromWire: (a) => new CounterNode(a.start, a.step) });

class CounterIterator extends IndexedIterator {
  readonly #start: number;
  readonly #step: number;

  constructor(context: IteratorContext, { start, step }: CounterNode) {
    super(context, Infinity);
    this.#start = start;
    this.#step = step;
  }

  override nextBlock(into: unknown[], count: number): number {
    const first = this.position;
    const length = Math.min(count, this.stop - first);
    if (length <= 0) return NO_BLOCK;
    for (let i = 0; i < length; i++) into[i] = this.at(first + i);
    this.position = first + length;
    this.stats.gaveBlock(into, length);
    return length;
  }

  protected override at(index: number): number {
    return this.#start + index * this.#step;
  }
}

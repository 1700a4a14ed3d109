/** `take` and `skip`: the first elements, and all after the first. */
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, NO_BLOCK, type Pulled, type Token } from "../iterator.ts";
import {
  type Attributes,
  type Changeable,
  type DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { AGAIN } from "../iterators/stepping.ts";
import type { NoOp } from "../optimizer/no_op.ts";
import { PassingIterator } from "./elementwise.ts";
import { ElementsOfInputNode } from "./unary.ts";

/** The node of an operator whose only option is a number: of elements, or of repetitions. */
export abstract class CountingNode extends ElementsOfInputNode {
  override readonly division = "whole";
  /** How many; -1 for all. */
  readonly count: number;

  constructor(kind: string, input: DatasetNode, count: unknown) {
    super(kind, input);
    this.count = checkInteger(kind, "count", count, -1);
  }

  override get attributes(): Attributes {
    return { count: this.count };
  }

  override fieldsOfInput(wanted: readonly string[] | undefined): readonly string[] | undefined {
    return wanted;
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }
}

export class TakeNode extends CountingNode {
  override readonly needsWholeInput = true;

  constructor(input: DatasetNode, count: unknown) {
    super("take", input, count);
  }

  override get cardinality(): number {
    const all = this.input.cardinality;
    if (this.count < 0 || all === 0) return all;
    if (this.count === 0) return 0;
    return all === UNKNOWN_CARDINALITY ? UNKNOWN_CARDINALITY : Math.min(all, this.count);
  }

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index);
  }

  override get noOp(): NoOp | undefined {
    const all = this.input.cardinality;
    // Not if both are equal, because `take` then ends without requesting the input's end.
    const isAll = this.count < 0 || all !== UNKNOWN_CARDINALITY && all < this.count;
    return isAll ? { fields: { left: this.count < 0 ? Infinity : this.count } } : undefined;
  }

  override makeIterator(context: IteratorContext): TakeIterator {
    return new TakeIterator(context, this.count < 0 ? Infinity : this.count);
  }
}

registerNode("take", { fromWire: (a, [input]) => new TakeNode(input!, a.count) });

abstract class CountdownIterator extends PassingIterator {
  protected left: number;

  constructor(context: IteratorContext, count: number) {
    super(context);
    this.left = count;
  }

  protected override ownState(): object {
    return { left: this.left };
  }

  protected override restoreOwn(state: unknown): void {
    this.left = (state as { left: number }).left;
  }
}

class TakeIterator extends CountdownIterator {
  override next(): Pulled<unknown> {
    return this.left === 0 ? END : super.next();
  }

  override nextBlock(into: unknown[], count: number): number {
    if (this.left === 0) return NO_BLOCK;
    const given = this.input.nextBlock(into, Math.min(count, this.left));
    if (given > 0) {
      this.stats.gaveBlock(into, given);
      this.left -= given;
      if (this.left === 0) this.input.dispose();
    }
    return given;
  }

  /** Failed elements are not counted. The input is disposed after the last element. */
  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    if (--this.left === 0) this.input.dispose();
    return this.stats.gave(element);
  }
}

export class SkipNode extends CountingNode {
  override readonly needsWholeInput = true;

  constructor(input: DatasetNode, count: unknown) {
    super("skip", input, count);
  }

  override get cardinality(): number {
    const all = this.input.cardinality;
    if (this.count < 0) return 0;
    return all === UNKNOWN_CARDINALITY ? UNKNOWN_CARDINALITY : Math.max(0, all - this.count);
  }

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index + this.count);
  }

  override get noOp(): NoOp | undefined {
    return this.count === 0 ? { fields: { left: 0 } } : undefined;
  }

  override makeIterator(context: IteratorContext): SkipIterator {
    return new SkipIterator(context, this.count < 0 ? Infinity : this.count);
  }
}

registerNode("skip", { fromWire: (a, [input]) => new SkipNode(input!, a.count) });

/** `left` elements remain to be skipped; `Infinity` skips everything without reading it. */
class SkipIterator extends CountdownIterator {
  override next(): Pulled<unknown> {
    return this.left === Infinity ? END : super.next();
  }

  override nextBlock(into: unknown[], count: number): number {
    if (this.left > 0) return NO_BLOCK;
    const given = this.input.nextBlock(into, count);
    if (given > 0) this.stats.gaveBlock(into, given);
    return given;
  }

  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    if (this.left > 0) {
      this.left--;
      return AGAIN;
    }
    return this.stats.gave(element);
  }
}

/**
 * `take` and `skip`: the first elements, and all but the first.
 */
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, NO_BLOCK, type Pulled, type Token } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import type { ElementSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";
import { UnaryIterator, UnaryNode } from "./unary.ts";

export class TakeNode extends UnaryNode {
  /** How many; -1 for all. */
  readonly count: number;

  constructor(input: DatasetNode, count: unknown) {
    super("take", input);
    this.count = checkInteger("take", "count", count, -1);
  }

  override get attributes(): Attributes {
    return { count: this.count };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
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

  override makeIterator(context: IteratorContext): TakeIterator {
    return new TakeIterator(context, this.count < 0 ? Infinity : this.count);
  }
}

registerNode("take", { fromWire: (a, [input]) => new TakeNode(input!, a.count) });

class TakeIterator extends UnaryIterator {
  #left: number;

  constructor(context: IteratorContext, count: number) {
    super(context);
    this.#left = count;
  }

  /** A failed element is not counted. */
  override next(): Pulled<unknown> {
    if (this.#left === 0) return END;
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#count(element);
  }

  override nextBlock(into: unknown[], count: number): number {
    if (this.#left === 0) return NO_BLOCK;
    const given = this.input.nextBlock(into, Math.min(count, this.#left));
    if (given > 0) {
      this.stats.gaveBlock(into, given);
      this.#left -= given;
      if (this.#left === 0) this.input.dispose();
    }
    return given;
  }

  override token(): Token | undefined {
    return this.input.token();
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }

  protected override async saveState(): Promise<unknown> {
    return { left: this.#left, input: await this.input.save() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { left, input } = state as { left: number; input: unknown };
    this.#left = left;
    await this.input.restore(input);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#count(await this.arrival(pending));
  }

  /** The input is let go with the last element, since nothing more is read of it. */
  #count(element: unknown): unknown {
    if (element === END) return END;
    if (--this.#left === 0) this.input.dispose();
    return this.stats.gave(element);
  }
}

export class SkipNode extends UnaryNode {
  /** How many; -1 for all. */
  readonly count: number;

  constructor(input: DatasetNode, count: unknown) {
    super("skip", input);
    this.count = checkInteger("skip", "count", count, -1);
  }

  override get attributes(): Attributes {
    return { count: this.count };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    const all = this.input.cardinality;
    if (this.count < 0) return 0;
    return all === UNKNOWN_CARDINALITY ? UNKNOWN_CARDINALITY : Math.max(0, all - this.count);
  }

  override tokenAt(index: number): Token | undefined {
    return this.input.tokenAt(index + this.count);
  }

  override makeIterator(context: IteratorContext): SkipIterator {
    return new SkipIterator(context, this.count < 0 ? Infinity : this.count);
  }
}

registerNode("skip", { fromWire: (a, [input]) => new SkipNode(input!, a.count) });

class SkipIterator extends UnaryIterator implements Stepping {
  /** How many are still to be skipped; `Infinity` skips everything without reading it. */
  #left: number;

  constructor(context: IteratorContext, count: number) {
    super(context);
    this.#left = count;
  }

  override next(): Pulled<unknown> {
    if (this.#left === Infinity) return END;
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#pass(element);
  }

  #pass(element: unknown): unknown {
    if (element === END) return END;
    if (this.#left > 0) {
      this.#left--;
      return AGAIN;
    }
    return this.stats.gave(element);
  }

  override nextBlock(into: unknown[], count: number): number {
    if (this.#left > 0) return NO_BLOCK;
    const given = this.input.nextBlock(into, count);
    if (given > 0) this.stats.gaveBlock(into, given);
    return given;
  }

  override token(): Token | undefined {
    return this.input.token();
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }

  protected override async saveState(): Promise<unknown> {
    return { left: this.#left, input: await this.input.save() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { left, input } = state as { left: number; input: unknown };
    this.#left = left;
    await this.input.restore(input);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#pass(await this.arrival(pending));
  }
}

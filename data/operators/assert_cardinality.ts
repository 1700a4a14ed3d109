/** `assertCardinality`: passes elements through and checks that there are as many as declared. */
import { LeatError } from "../../core/error.ts";
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, NO_BLOCK } from "../iterator.ts";
import { type Attributes, type Changeable, type DatasetNode, registerNode } from "../node.ts";
import { PassingIterator } from "./elementwise.ts";
import { ElementsOfInputNode } from "./unary.ts";

export class AssertCardinalityNode extends ElementsOfInputNode {
  override readonly division = "position";
  readonly expected: number;

  constructor(input: DatasetNode, expected: unknown) {
    super("assertCardinality", input);
    this.expected = expected === Infinity
      ? Infinity
      : checkInteger("assertCardinality", "expected", expected, 0);
  }

  override get attributes(): Attributes {
    return { expected: this.expected };
  }

  override get cardinality(): number {
    return this.expected;
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  override makeIterator(context: IteratorContext): AssertCardinalityIterator {
    return new AssertCardinalityIterator(context, this.expected);
  }
}

registerNode("assertCardinality", {
  fromWire: (a, [input]) => new AssertCardinalityNode(input!, a.expected),
});

/** Reports at most one error, and then ends. */
class AssertCardinalityIterator extends PassingIterator {
  readonly #expected: number;
  /** Whether this task sees only a part of the elements, so that it cannot check their number. */
  readonly #seesPart: boolean;
  #count = 0;

  constructor(context: IteratorContext, expected: number) {
    super(context);
    this.#expected = expected;
    this.#seesPart = context.readsSplits;
  }

  override nextBlock(into: unknown[], count: number): number {
    const room = this.#seesPart ? count : Math.min(count, this.#expected - this.#count);
    if (room === 0) return NO_BLOCK;
    const given = this.input.nextBlock(into, room);
    if (given > 0) {
      this.#count += given;
      this.stats.gaveBlock(into, given);
    }
    return given;
  }

  protected override accept(element: unknown): unknown {
    if (element === END) {
      if (this.#count < this.#expected && !this.#seesPart) throw this.#fail("only");
      return END;
    }
    if (++this.#count > this.#expected && !this.#seesPart) throw this.#fail("at least");
    return this.stats.gave(element);
  }

  #fail(found: "only" | "at least"): LeatError {
    this.dispose();
    const expected = this.#expected === Infinity ? "infinitely many" : this.#expected;
    return new LeatError(
      "failed_precondition",
      `assertCardinality: the input was expected to have ${expected} elements, but has ${found} ` +
        `${this.#count}`,
    );
  }

  protected override ownState(): object {
    return { count: this.#count };
  }

  protected override restoreOwn(state: unknown): void {
    this.#count = (state as { count: number }).count;
  }
}

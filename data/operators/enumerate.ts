/** `enumerate`: elements with their numbers. Failed elements are counted, too. */
import { checkInteger } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Pulled, type Token } from "../iterator.ts";
import { type Attributes, type Changeable, type DatasetNode, registerNode } from "../node.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { type ElementSpec, TensorSpec } from "../elements/spec.ts";
import { OneToOneNode, UnaryIterator } from "./unary.ts";

export class EnumerateNode extends OneToOneNode {
  override readonly division = "position";
  override readonly needsWholeInput = true;
  readonly start: number;

  constructor(input: DatasetNode, start: unknown = 0) {
    super("enumerate", input);
    this.start = checkInteger("enumerate", "start", start, Number.MIN_SAFE_INTEGER);
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override get attributes(): Attributes {
    return { start: this.start };
  }

  override get elementSpec(): ElementSpec {
    return [new TensorSpec("float64", []), this.input.elementSpec];
  }

  override tokenAt(index: number): Token | undefined {
    const token = this.input.tokenAt(index);
    return token === undefined ? undefined : [this.start + index, token];
  }

  override makeIterator(context: IteratorContext): EnumerateIterator {
    return new EnumerateIterator(context, this.start);
  }
}

registerNode("enumerate", { fromWire: (a, [input]) => new EnumerateNode(input!, a.start) });

class EnumerateIterator extends UnaryIterator {
  #number: number;

  constructor(context: IteratorContext, start: number) {
    super(context);
    this.#number = start;
  }

  override next(): Pulled<unknown> {
    try {
      const element = this.input.next();
      return element instanceof Promise ? this.#later(element) : this.#pair(element);
    } catch (error) {
      throw this.#numbered(error);
    }
  }

  override token(): Token | undefined {
    const token = this.input.token();
    return token === undefined ? undefined : [this.#number - 1, token];
  }

  override async again(token: Token): Promise<unknown> {
    const [number, ofInput] = token as [number, Token];
    return [number, await this.input.again(ofInput)];
  }

  protected override ownState(): object {
    return { number: this.#number };
  }

  protected override restoreOwn(state: unknown): void {
    this.#number = (state as { number: number }).number;
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    try {
      return this.#pair(await this.arrival(pending));
    } catch (error) {
      throw this.#numbered(error);
    }
  }

  /** A failed element has a number, too. */
  #numbered(error: unknown): unknown {
    if (!(error instanceof ReadingFailure)) this.#number++;
    return error;
  }

  #pair(element: unknown): unknown {
    if (element === END) return END;
    return this.stats.gave([this.#number++, element]);
  }
}

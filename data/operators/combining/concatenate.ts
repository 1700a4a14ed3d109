/** `concatenate`: one dataset after the other. */
import type { IteratorContext } from "../../context.ts";
import { ElementIterator, END, type Pulled, type Token } from "../../iterator.ts";
import {
  type Attributes,
  type Changeable,
  DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { commonSpec, type ElementSpec } from "../../elements/spec.ts";
import { AGAIN, stepOn, type Stepping } from "../../iterators/stepping.ts";

export class ConcatenateNode extends DatasetNode {
  override readonly division = "whole";
  override readonly attributes: Attributes = {};
  override readonly elementSpec: ElementSpec;

  constructor(first: DatasetNode, second: DatasetNode) {
    super("concatenate", [first, second]);
    this.elementSpec = commonSpec("concatenate", [first.elementSpec, second.elementSpec]);
  }

  override get cardinality(): number {
    const [first, second] = this.inputs.map((input) => input.cardinality) as [number, number];
    if (first === Infinity || second === Infinity) return Infinity;
    const isUnknown = first === UNKNOWN_CARDINALITY || second === UNKNOWN_CARDINALITY;
    return isUnknown ? UNKNOWN_CARDINALITY : first + second;
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override tokenAt(index: number): Token | undefined {
    const [first, second] = this.inputs as [DatasetNode, DatasetNode];
    const [ofFirst, ofSecond] = [first.tokenAt(index), second.tokenAt(index - first.cardinality)];
    if (ofFirst === undefined || ofSecond === undefined) return undefined;
    return index < first.cardinality ? [0, ofFirst] : [1, ofSecond];
  }

  override makeIterator(context: IteratorContext): ConcatenateIterator {
    return new ConcatenateIterator(context);
  }
}

registerNode("concatenate", {
  fromWire: (_, [first, second]) => new ConcatenateNode(first!, second!),
});

interface ConcatenateState {
  readonly position: number;
  readonly current: unknown;
}

class ConcatenateIterator extends ElementIterator implements Stepping {
  readonly #context: IteratorContext;
  /** The input being read: 0, then 1, then 2 for none. */
  #position = 0;
  /** Both inputs, the second once it is needed. They are kept to recompute elements. */
  readonly #inputs: ElementIterator[];

  constructor(context: IteratorContext) {
    super();
    this.#context = context;
    this.#inputs = [context.makeInput(0)];
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.#context.pacer);
  }

  step(): unknown {
    if (this.#position === 2) return END;
    const element = this.#inputs[this.#position]!.next();
    return element instanceof Promise
      ? this.#context.waitFor(element, this.#position).then((element) => this.#accept(element))
      : this.#accept(element);
  }

  #accept(element: unknown): unknown {
    if (this.disposed) return END;
    if (element !== END) return this.#context.stats.gave(element);
    this.#inputs[this.#position]!.dispose();
    if (++this.#position === 2) return END;
    this.#second();
    return AGAIN;
  }

  #second(): ElementIterator {
    if (this.#inputs[1] === undefined) {
      this.#inputs[1] = this.#context.makeInput(1);
      if (this.disposed) this.#inputs[1].dispose(); // it recomputes elements all the same
    }
    return this.#inputs[1];
  }

  override token(): Token | undefined {
    const token = this.#inputs[this.#position]?.token();
    return token === undefined ? undefined : [this.#position, token];
  }

  override again(token: Token): unknown {
    const [position, ofInput] = token as [number, Token];
    return (position === 0 ? this.#inputs[0]! : this.#second()).again(ofInput);
  }

  protected override async saveState(): Promise<ConcatenateState> {
    const current = await this.#inputs[this.#position]?.save() ?? null;
    return { position: this.#position, current };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { position, current } = state as ConcatenateState;
    this.#position = position;
    if (position > 0) this.#inputs[0]!.dispose();
    const input = position === 1 ? this.#second() : this.#inputs[position];
    await input?.restore(current);
  }

  protected override release(): void {
    this.#position = 2;
    for (const input of this.#inputs) input.dispose();
  }
}

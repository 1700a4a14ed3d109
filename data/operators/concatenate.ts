/**
 * `concatenate`: one dataset after the other.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import { type ElementSpec, isTuple, mergeSpecs, TensorSpec } from "../spec.ts";
import { AGAIN, stepOn, type Stepping } from "../stepping.ts";

export class ConcatenateNode extends DatasetNode {
  readonly #spec: ElementSpec;

  constructor(first: DatasetNode, second: DatasetNode) {
    super("concatenate", [first, second]);
    this.#spec = mergeSpecs(first.elementSpec, second.elementSpec, (path, a, b) => {
      throw new LeatError(
        "invalid_argument",
        `concatenate: the datasets' elements differ at ${path}: ${describe(a)} and ${describe(b)}`,
      );
    });
  }

  override get attributes(): Attributes {
    return {};
  }

  override get elementSpec(): ElementSpec {
    return this.#spec;
  }

  override get cardinality(): number {
    const [first, second] = this.inputs.map((input) => input.cardinality) as [number, number];
    if (first === Infinity || second === Infinity) return Infinity;
    const isUnknown = first === UNKNOWN_CARDINALITY || second === UNKNOWN_CARDINALITY;
    return isUnknown ? UNKNOWN_CARDINALITY : first + second;
  }

  override makeIterator(context: IteratorContext): ConcatenateIterator {
    return new ConcatenateIterator(context);
  }
}

registerNode("concatenate", {
  fromWire: (_, [first, second]) => new ConcatenateNode(first!, second!),
});

function describe(spec: ElementSpec): string {
  if (spec instanceof TensorSpec) return `${spec.dtype}`;
  if (isTuple(spec)) return `a tuple of ${spec.length}`;
  return `an object of {${Object.keys(spec ?? {}).join(", ")}}`;
}

class ConcatenateIterator extends ElementIterator implements Stepping {
  readonly #context: IteratorContext;
  /** The input being read: 0, then 1, then 2 for none. */
  #position = 0;
  #current: ElementIterator;

  constructor(context: IteratorContext) {
    super();
    this.#context = context;
    this.#current = context.makeInput(0);
  }

  override next(): Pulled<unknown> {
    return stepOn(this, this.#context.pacer);
  }

  step(): unknown {
    if (this.#position === 2) return END;
    const element = this.#current.next();
    return element instanceof Promise ? this.#later(element) : this.#accept(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    return this.#accept(await pending);
  }

  #accept(element: unknown): unknown {
    if (this.disposed) return END;
    if (element !== END) {
      this.#context.stats.elements++;
      return element;
    }
    this.#current.dispose();
    if (++this.#position === 2) return END;
    this.#current = this.#context.makeInput(1);
    return AGAIN;
  }

  protected override release(): void {
    this.#position = 2;
    this.#current.dispose();
  }
}

/** `unique`: drops elements that are equal to an earlier one. */
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { show } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { TensorSpec } from "../elements/spec.ts";
import { BufferMeter } from "../iterators/stats.ts";
import { AGAIN } from "../iterators/stepping.ts";
import type { NoOp } from "../optimizer/no_op.ts";
import { sameBelow } from "../optimizer/rules/dead_transformation_elimination.ts";
import { PassingIterator } from "./elementwise.ts";
import { ElementsOfInputNode } from "./unary.ts";

export class UniqueNode extends ElementsOfInputNode {
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  override readonly attributes: Attributes = {};

  constructor(input: DatasetNode) {
    super("unique", input);
    const spec = input.elementSpec;
    const isScalar = spec === undefined ||
      (spec instanceof TensorSpec && (spec.shape.length === 0 || spec.dtype === "uint8"));
    if (!isScalar) throw notScalar("elements of a structure or with axes");
  }

  override get dead(): NoOp | undefined {
    return sameBelow(this) === undefined ? undefined : { fields: { seen: [], seenBytes: [] } };
  }

  override makeIterator(context: IteratorContext): UniqueIterator {
    return new UniqueIterator(context);
  }
}

registerNode("unique", { fromWire: (_, [input]) => new UniqueNode(input!) });

function notScalar(found: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `unique: elements must be numbers, bigints, booleans, strings or byte strings, got ${found}; ` +
      "map each to a scalar that identifies it first",
  );
}

class UniqueIterator extends PassingIterator {
  readonly #meter: BufferMeter;
  #seen = new Set<unknown>();
  /** Byte strings, in base64. */
  #seenBytes = new Set<string>();

  constructor(context: IteratorContext) {
    super(context);
    this.#meter = new BufferMeter(context.stats);
  }

  protected override accept(element: unknown): unknown {
    if (element === END) return END;
    const scalar = scalarOf(element);
    const isNew = scalar instanceof Uint8Array
      ? addTo(this.#seenBytes, scalar.toBase64())
      : addTo(this.#seen, scalar);
    if (!isNew) return AGAIN;
    this.#meter.enters(scalar);
    this.#meter.holds(this.#seen.size + this.#seenBytes.size);
    return this.stats.gave(element);
  }

  protected override ownState(): object {
    return { seen: [...this.#seen], seenBytes: [...this.#seenBytes] };
  }

  protected override restoreOwn(state: unknown): void {
    const { seen, seenBytes } = state as { seen: unknown[]; seenBytes: string[] };
    this.#seen = new Set(seen);
    this.#seenBytes = new Set(seenBytes);
    for (const scalar of [...seen, ...seenBytes]) this.#meter.enters(scalar);
    this.#meter.holds(seen.length + seenBytes.length);
  }

  protected override release(): void {
    super.release();
    this.#seen.clear();
    this.#seenBytes.clear();
    this.#meter.holds(0);
  }
}

/** Adds a value and returns whether it is new. */
function addTo<T>(seen: Set<T>, value: T): boolean {
  const before = seen.size;
  seen.add(value);
  return seen.size > before;
}

function scalarOf(element: unknown): unknown {
  switch (typeof element) {
    case "number":
    case "bigint":
    case "boolean":
    case "string":
      return element;
  }
  if (element instanceof Uint8Array) return element;
  if (element instanceof Tensor && element.shape.length === 0) return element.data[0];
  throw notScalar(
    element instanceof Tensor ? `a tensor of shape [${element.shape}]` : show(element),
  );
}

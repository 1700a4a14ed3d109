/** `padToCardinality`: appends elements of zeros until there are `count` elements. */
import { dtypeOf, TYPED_ARRAYS } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { RaggedTensor, Tensor } from "../../../core/tensor.ts";
import { isPlainObject, type Leaf, mapTree } from "../../../core/tree.ts";
import { checkInteger, invalidArgument, show } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { END } from "../../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { type ElementSpec, isRecordSpec, isTuple, TensorSpec } from "../../elements/spec.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";

const KIND = "padToCardinality";

export class PadToCardinalityNode extends UnaryNode {
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  readonly count: number;
  /** The component that is true in the elements of the input and false in padding. */
  readonly maskKey: string;

  constructor(input: DatasetNode, count: unknown, maskKey: unknown = "valid") {
    super(KIND, input);
    this.count = checkInteger(KIND, "count", count, 0);
    if (typeof maskKey !== "string") throw invalidArgument(KIND, "maskKey", "a string", maskKey);
    this.maskKey = maskKey;
    const { cardinality, elementSpec } = input;
    if (cardinality !== UNKNOWN_CARDINALITY && cardinality > this.count) {
      throw invalidArgument(
        KIND,
        "count",
        `at least the input's cardinality, ${cardinality}`,
        count,
      );
    }
    if (elementSpec === undefined) return;
    if (!isRecordSpec(elementSpec)) throw noRecord("elements of another structure");
    if (Object.hasOwn(elementSpec, maskKey)) throw maskTaken(maskKey);
  }

  override get attributes(): Attributes {
    return { count: this.count, maskKey: this.maskKey };
  }

  override get elementSpec(): ElementSpec {
    const spec = this.input.elementSpec;
    if (!isRecordSpec(spec)) return undefined;
    return { ...spec, [this.maskKey]: new TensorSpec("bool", []) };
  }

  override get cardinality(): number {
    return this.count;
  }

  override makeIterator(context: IteratorContext): PadToCardinalityIterator {
    return new PadToCardinalityIterator(context, this, this.input.elementSpec);
  }
}

registerNode(KIND, {
  fromWire: (a, [input]) => new PadToCardinalityNode(input!, a.count, a.maskKey),
});

function noRecord(found: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `${KIND}: elements must be objects of named components, got ${found}; map them to { x } first`,
  );
}

function maskTaken(maskKey: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `${KIND}: elements have a component ${maskKey} already; choose another maskKey`,
  );
}

interface PaddingState {
  readonly given: number;
  readonly padding: unknown;
  readonly inputEnded: boolean;
}

class PadToCardinalityIterator extends ElementwiseIterator {
  readonly #count: number;
  readonly #maskKey: string;
  readonly #spec: ElementSpec;
  #given = 0;
  /**
   * Makes zeros like the last element of the input. It holds no part of the element, because its
   * consumer may transfer or change it.
   */
  #zeros: (() => unknown) | undefined;
  #inputEnded = false;

  constructor(context: IteratorContext, node: PadToCardinalityNode, spec: ElementSpec) {
    super(context);
    this.#count = node.count;
    this.#maskKey = node.maskKey;
    this.#spec = spec;
  }

  override step(): unknown {
    return this.#inputEnded && !this.disposed ? this.#pad() : super.step();
  }

  protected override accept(element: unknown): unknown {
    if (element === END) {
      this.#inputEnded = true;
      return this.#pad();
    }
    if (!isPlainObject(element)) throw noRecord(show(element));
    if (Object.hasOwn(element, this.#maskKey)) throw maskTaken(this.#maskKey);
    if (this.#given === this.#count) {
      this.dispose();
      throw new LeatError(
        "failed_precondition",
        `${KIND}: the input has more than the ${this.#count} elements to pad to`,
      );
    }
    this.#zeros = zerosLike(element);
    return this.#give({ ...element, [this.#maskKey]: true });
  }

  #pad(): unknown {
    if (this.#given === this.#count) return END;
    return this.#give({ ...this.#makePadding() as object, [this.#maskKey]: false });
  }

  /** Ends the iteration if the structure of padding is unknown. */
  #makePadding(): unknown {
    try {
      this.#zeros ??= zerosLike(zerosOfSpec(this.#spec));
      return this.#zeros();
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  #give(element: unknown): unknown {
    this.#given++;
    return this.stats.gave(element);
  }

  protected override ownState(): PaddingState {
    return {
      given: this.#given,
      padding: this.#zeros?.(),
      inputEnded: this.#inputEnded,
    };
  }

  protected override restoreOwn(state: unknown): void {
    const { given, padding, inputEnded } = state as PaddingState;
    this.#given = given;
    if (padding !== undefined) this.#zeros = zerosLike(padding);
    this.#inputEnded = inputEnded;
  }

  protected override release(): void {
    super.release();
    this.#zeros = undefined;
  }
}

/** Makes elements of zeros with the same structure, types and shapes. Fails where `mapTree()` does. */
function zerosLike(element: unknown): () => unknown {
  const zeros: (() => unknown)[] = [];
  try {
    const structure = mapTree(element, (leaf) => zeros.push(zeroLike(leaf)) - 1);
    return () => mapTree(structure, (at) => zeros[at as number]!());
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function zeroLike(leaf: Leaf): () => unknown {
  if (leaf === null) return () => null;
  if (leaf instanceof Tensor) {
    const { dtype, shape } = leaf;
    return () => Tensor.zeros(dtype, shape);
  }
  if (leaf instanceof RaggedTensor) {
    const { dtype, shape } = leaf.values;
    const rowSplits = leaf.rowSplits.slice();
    return () => new RaggedTensor(Tensor.zeros(dtype, shape), rowSplits.slice());
  }
  if (typeof leaf === "object") {
    const Type = TYPED_ARRAYS[dtypeOf(leaf)!];
    const { length } = leaf;
    return () => new Type(length);
  }
  switch (typeof leaf) {
    case "string":
      return () => "";
    case "bigint":
      return () => 0n;
    case "boolean":
      return () => false;
    default:
      return () => 0;
  }
}

/** For an input without elements: zeros according to the spec, with empty variable axes. */
function zerosOfSpec(spec: ElementSpec): unknown {
  if (spec === undefined) {
    throw new LeatError(
      "failed_precondition",
      `${KIND}: the input has no elements and no spec, so padding has no known structure; ` +
        `declare it, for example with map(…, { spec })`,
    );
  }
  if (spec instanceof TensorSpec) {
    const zeros = Tensor.zeros(spec.dtype, spec.shape.map((length) => length ?? 0));
    if (zeros.shape.length > 0) return zeros;
    return spec.dtype === "bool" ? false : zeros.data[0];
  }
  if (isTuple(spec)) return spec.map(zerosOfSpec);
  return Object.fromEntries(Object.entries(spec).map(([key, part]) => [key, zerosOfSpec(part)]));
}

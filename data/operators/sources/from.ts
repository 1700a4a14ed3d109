/** `from`, `fromTensors`, `fromTensorSlices`: sources that hold their elements in memory. */
import { LeatError } from "../../../core/error.ts";
import { flattenTree, treePaths } from "../../../core/tree.ts";
import { show } from "../../check.ts";
import { commonRows, rowAt, rowSpec, specOf, tensorize } from "../../elements/components.ts";
import type { IteratorContext } from "../../context.ts";
import { type Attributes, registerNode } from "../../node.ts";
import { checkSpec, type ElementSpec, mapSpec, mergeSpecs } from "../../elements/spec.ts";
import { BlockIterator, IndexedNode } from "./indexed.ts";

export class FromNode extends IndexedNode {
  readonly elements: readonly unknown[];
  readonly #given: ElementSpec;
  #spec: { known: ElementSpec } | undefined;

  /**
   * @param spec The spec of the elements, if another dataset gave them.
   * @param isFinal Whether `spec` is the spec even if it is unknown. Default: an unknown spec is
   *     computed on demand, from all elements.
   */
  constructor(elements: unknown, spec?: ElementSpec, isFinal = spec !== undefined) {
    super("from");
    this.#given = checkSpec("from", spec);
    if (isFinal) this.#spec = { known: spec };
    if (!isIterable(elements)) {
      throw new LeatError(
        "invalid_argument",
        `from: elements must be an iterable, got ${show(elements)}; use fromGenerator for ` +
          `elements that are produced on demand`,
      );
    }
    this.elements = [...elements];
  }

  override get attributes(): Attributes {
    return { elements: this.elements, spec: this.#given };
  }

  /** The common spec of all elements; computed once, on demand. */
  override get elementSpec(): ElementSpec {
    this.#spec ??= { known: commonSpec(this.elements) };
    return this.#spec.known;
  }

  override get cardinality(): number {
    return this.elements.length;
  }

  override makeIterator(context: IteratorContext): ArrayIterator {
    return new ArrayIterator(context, this.elements);
  }
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "string" ||
    (typeof value === "object" && value !== null && Symbol.iterator in value);
}

function commonSpec(elements: readonly unknown[]): ElementSpec {
  let common = specOf(elements[0]);
  const type = typeof elements[0];
  let isMixed = false;
  const onConflict = (): undefined => {
    isMixed = true;
    return undefined;
  };
  for (const element of elements) {
    if (type !== "object" && typeof element === type) continue;
    common = mergeSpecs(common, specOf(element), onConflict);
    if (isMixed || common === undefined) return undefined;
  }
  return common;
}

registerNode("from", { fromWire: (a) => new FromNode(a.elements, a.spec as ElementSpec) });

export class FromTensorsNode extends IndexedNode {
  override readonly cardinality = 1;
  readonly element: unknown;

  constructor(element: unknown) {
    super("fromTensors");
    this.element = tensorsOf("fromTensors", "element", element);
  }

  override get attributes(): Attributes {
    return { element: this.element };
  }

  override get elementSpec(): ElementSpec {
    return specOf(this.element);
  }

  override makeIterator(context: IteratorContext): ArrayIterator {
    return new ArrayIterator(context, [this.element]);
  }
}

/** Reads an argument's nested arrays as tensors; refuses values that cannot be part of an element. */
function tensorsOf(operator: string, argument: string, value: unknown): unknown {
  try {
    const tensors = tensorize(value);
    treePaths(tensors);
    return tensors;
  } catch (error) {
    const { code, message } = LeatError.from(error, "invalid_argument");
    throw new LeatError(code, `${operator}: ${argument}: ${message}`, { cause: error });
  }
}

registerNode("fromTensors", { fromWire: (a) => new FromTensorsNode(a.element) });

/** Slices along axis 0 of every component. */
export class FromTensorSlicesNode extends IndexedNode {
  readonly components: unknown;
  readonly #rows: number;

  constructor(components: unknown) {
    super("fromTensorSlices");
    this.components = tensorsOf("fromTensorSlices", "components", components);
    this.#rows = commonRows(
      "fromTensorSlices",
      flattenTree(this.components),
      treePaths(this.components),
    );
  }

  override get attributes(): Attributes {
    return { components: this.components };
  }

  override get elementSpec(): ElementSpec {
    return mapSpec(specOf(this.components), rowSpec);
  }

  override get cardinality(): number {
    return this.#rows;
  }

  override makeIterator(context: IteratorContext): SlicesIterator {
    return new SlicesIterator(context, this.components, this.#rows);
  }
}

registerNode("fromTensorSlices", { fromWire: (a) => new FromTensorSlicesNode(a.components) });

class ArrayIterator extends BlockIterator {
  readonly #elements: readonly unknown[];

  constructor(context: IteratorContext, elements: readonly unknown[]) {
    super(context, elements.length);
    this.#elements = elements;
  }

  protected override at(index: number): unknown {
    return this.context.given(this.#elements[index]);
  }
}

class SlicesIterator extends BlockIterator {
  readonly #components: unknown;

  constructor(context: IteratorContext, components: unknown, rows: number) {
    super(context, rows);
    this.#components = components;
  }

  protected override at(index: number): unknown {
    return this.context.given(rowAt(this.#components, index));
  }
}

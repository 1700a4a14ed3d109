/** The placeholder, in a graph that runs elsewhere, for an operator that stays where the graph was made. */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import type { ElementIterator } from "../iterator.ts";
import { type Attributes, DatasetNode } from "../node.ts";
import { checkSpec, type ElementSpec } from "../elements/spec.ts";

/** The kind of such an operator. */
export const PART_INPUT = "partInput";

interface PartInputAttributes {
  /** Its number among the inputs of the part; none for one that is only counted. */
  readonly input?: number | undefined;
  readonly spec?: ElementSpec;
  readonly cardinality: number;
  readonly isSetting: boolean;
}

/**
 * It has as many placeholders below it as there are operators below the original, so that all
 * operators of the graph keep the numbers that their random state depends on.
 */
export class PartInputNode extends DatasetNode {
  override readonly division = "whole";
  override readonly isSetting: boolean;
  readonly #attributes: PartInputAttributes;
  #make: ((context: IteratorContext) => ElementIterator) | undefined;

  constructor(attributes: Attributes, below: readonly DatasetNode[]) {
    super(PART_INPUT, below);
    this.#attributes = attributes as unknown as PartInputAttributes;
    this.isSetting = this.#attributes.isSetting;
  }

  /** The placeholder for `node`, as the input with this number. */
  static of(node: DatasetNode, input: number): PartInputNode {
    const { elementSpec: spec, cardinality, isSetting } = node;
    return new PartInputNode({ input, spec, cardinality, isSetting }, node.inputs.map(filler));
  }

  get input(): number | undefined {
    return this.#attributes.input;
  }

  /** Sets, in the process that runs the part, where its elements come from. */
  connect(make: (context: IteratorContext) => ElementIterator): void {
    this.#make = make;
  }

  override get attributes(): Attributes {
    return { ...this.#attributes };
  }

  override get elementSpec(): ElementSpec {
    return checkSpec(PART_INPUT, this.#attributes.spec);
  }

  override get cardinality(): number {
    return this.#attributes.cardinality;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    if (this.#make === undefined) throw new LeatError("internal", "An input is not connected");
    return this.#make(context);
  }
}

function filler({ cardinality, isSetting, inputs }: DatasetNode): PartInputNode {
  return new PartInputNode({ cardinality, isSetting }, inputs.map(filler));
}

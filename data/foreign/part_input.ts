/**
 * Another process may run a part of a graph. This is the placeholder, in that part, for an operator
 * that stays here.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import type { ElementIterator } from "../iterator.ts";
import { type Attributes, DatasetNode } from "../node.ts";
import { checkSpec, type ElementSpec } from "../elements/spec.ts";

export const PART_INPUT = "partInput";

interface PartInputAttributes {
  /** The operator's number among the part's inputs. Absent below an input: nothing reads those. */
  readonly input?: number | undefined;
  readonly spec?: ElementSpec;
  readonly cardinality: number;
  /** Whether the operator only configures others. */
  readonly isSetting: boolean;
  readonly isLeftOutOfCheckpoints: boolean;
}

/**
 * Below it are as many placeholders as there are operators below the original, so that all operators
 * of the graph keep their numbers, on which their random state and saved shared state depend.
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
    return placeholder(node, { input, spec: node.elementSpec });
  }

  get input(): number | undefined {
    return this.#attributes.input;
  }

  /** Sets how the elements are made, in the process that runs the part. */
  connect(make: (context: IteratorContext) => ElementIterator): void {
    this.#make = make;
  }

  override get attributes(): Attributes {
    return { ...this.#attributes };
  }

  override get isLeftOutOfCheckpoints(): boolean {
    return this.#attributes.isLeftOutOfCheckpoints;
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

function placeholder(
  { cardinality, isSetting, isLeftOutOfCheckpoints, inputs }: DatasetNode,
  ofInput: Pick<PartInputAttributes, "input" | "spec"> = {},
): PartInputNode {
  const attributes = { ...ofInput, cardinality, isSetting, isLeftOutOfCheckpoints };
  return new PartInputNode(attributes, inputs.map((below) => placeholder(below)));
}

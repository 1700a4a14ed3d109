/**
 * `withOptions`: settings that hold for a whole pipeline.
 */
import { checkSeed } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { ElementIterator } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import type { ElementSpec } from "../spec.ts";
import { UnaryNode } from "./unary.ts";

/** Settings of a pipeline. */
export interface DatasetOptions {
  /** What all of its luck is drawn from. Without it, every iteration draws its own. */
  readonly seed?: number | bigint | undefined;
}

/** Marks a pipeline with options; it does nothing to the elements. */
export class OptionsNode extends UnaryNode {
  readonly seed: bigint | undefined;

  constructor(input: DatasetNode, options: DatasetOptions) {
    super("withOptions", input);
    this.seed = checkSeed("withOptions", options.seed);
  }

  override get attributes(): Attributes {
    return { seed: this.seed };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    return this.input.cardinality;
  }

  override splitMultiple(multiple: number): number {
    return multiple;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return context.makeInput();
  }
}

registerNode("withOptions", { fromWire: (a, [input]) => new OptionsNode(input!, a) });

/** The seed that holds for a graph: the last one set along its chain. */
export function seedOf(node: DatasetNode): bigint | undefined {
  if (node instanceof OptionsNode && node.seed !== undefined) return node.seed;
  for (const input of node.inputs) {
    const seed = seedOf(input);
    if (seed !== undefined) return seed;
  }
  return undefined;
}

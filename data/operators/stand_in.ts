/**
 * `standIn`: takes the place of an operator after the part that runs here, which another process
 * runs. So the operators before it draw the same random numbers and have the same splits.
 */
import { checkInteger } from "../check.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { PassedNode } from "./unary.ts";

export class StandInNode extends PassedNode {
  /** The `splitMultiple(1)` of the replaced operator: a batch's size, for example. */
  readonly multiple: number;

  constructor(input: DatasetNode, multiple: unknown) {
    super("standIn", input);
    this.multiple = checkInteger("standIn", "multiple", multiple, 1);
  }

  override get attributes(): Attributes {
    return { multiple: this.multiple };
  }

  override splitMultiple(multiple: number): number {
    return multiple * this.multiple;
  }
}

registerNode("standIn", { fromWire: (a, [input]) => new StandInNode(input!, a.multiple) });

/** `cutPoint`: marks a point where `offload` may divide the pipeline. */
import { invalidArgument } from "../check.ts";
import { type Attributes, type DatasetNode, inPreOrder, registerNode } from "../node.ts";
import { PassedNode } from "./unary.ts";

/** The names of candidates that need no cut point. */
const TAKEN = ["p'1", "p'2", "p'3"];

export class CutPointNode extends PassedNode {
  override readonly isSetting = true;
  readonly name: string;

  constructor(input: DatasetNode, name: unknown) {
    super("cutPoint", input);
    if (typeof name !== "string" || name === "") {
      throw invalidArgument("cutPoint", "name", "a non-empty string", name);
    }
    const others = inPreOrder(input).filter((node) => node instanceof CutPointNode);
    // A plan names its candidate.
    if (TAKEN.includes(name) || others.some((other) => other.name === name)) {
      const wanted = `a name other than ${TAKEN.join(", ")} and those of cut points before it`;
      throw invalidArgument("cutPoint", "name", wanted, name);
    }
    this.name = name;
  }

  override get attributes(): Attributes {
    return { name: this.name };
  }
}

registerNode("cutPoint", { fromWire: (a, [input]) => new CutPointNode(input!, a.name) });

/** `cutPoint`: marks a point where `offload` may divide the pipeline. */
import { invalidArgument } from "../check.ts";
import { type Attributes, type DatasetNode, registerNode } from "../node.ts";
import { PassedNode } from "./unary.ts";

export class CutPointNode extends PassedNode {
  override readonly isSetting = true;
  readonly name: string;

  constructor(input: DatasetNode, name: unknown) {
    super("cutPoint", input);
    if (typeof name !== "string" || name === "") {
      throw invalidArgument("cutPoint", "name", "a non-empty string", name);
    }
    this.name = name;
  }

  override get attributes(): Attributes {
    return { name: this.name };
  }
}

registerNode("cutPoint", { fromWire: (a, [input]) => new CutPointNode(input!, a.name) });

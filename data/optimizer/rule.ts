/** Rules of static optimisation: what each does with an operator, for `explain()`. */
import type { DatasetNode } from "../node.ts";
import type { RuleName } from "./options.ts";

export interface Site {
  readonly node: DatasetNode;
  readonly number: number;
  /** The operators whose iterators are its inputs: settings and operators left out do not count. */
  readonly inputs: readonly Site[];
  /** Whether the elements of this operator are those of the pipeline. */
  readonly isLast: boolean;
}

/** The name and description of one rule. Iterators apply it. */
export interface Rule {
  readonly name: RuleName;
  /** What the rule does with the operator, and why, as a sentence; undefined if it does nothing. */
  describe(site: Site): string | undefined;
}

/** An operator in a sentence: `map (operator 2)`. */
export function nameOf({ node, number }: Site): string {
  return `${node.kind} (operator ${number})`;
}

/** Whether an operator only configures others. `offload`, a setting too, has an iterator of its own. */
export function isTransparent({ isSetting, division }: DatasetNode): boolean {
  return isSetting && division !== "served";
}

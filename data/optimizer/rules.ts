/**
 * Static optimisation (section 3.3.1 of the tf.data paper): rules that make a pipeline faster and
 * do not change its stream.
 *
 * The graph is not rewritten: operators keep their numbers, on which random numbers, figures and
 * errors depend. A rule only makes other iterators for the graph. They save the states that the
 * operators' own iterators would have saved. So a checkpoint may be taken with a rule and restored
 * without it.
 */
import { invalidArgument } from "../check.ts";
import { isPlainObject } from "../../core/tree.ts";
import { type DatasetNode, inPreOrder } from "../node.ts";

/** The rules of static optimisation, by name. All are on by default. */
export interface OptimizationRules {
  /** Leaves out operators that change nothing: `skip(0)`, `take(-1)`. */
  readonly noOpElimination?: boolean | undefined;
  /** Calls the functions of two adjacent `map`s in one loop. */
  readonly mapFusion?: boolean | undefined;
}

/** Which rules are used: none (false), all (true, the default), or each by its name. */
export type OptimizationOptions = boolean | OptimizationRules;

/** The name of a rule. */
export type RuleName = keyof OptimizationRules;

/** The rules that a pipeline uses. */
export type Rules = ReadonlySet<RuleName>;

const NAMES: readonly RuleName[] = ["noOpElimination", "mapFusion"];

/** @throws {LeatError} `invalid_argument` for anything but a boolean or rules with booleans. */
export function checkOptimizations(value: unknown): OptimizationOptions | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const isValid = isPlainObject(value) &&
    Object.entries(value).every(([name, on]) =>
      NAMES.some((rule) => rule === name) && typeof on === "boolean"
    );
  if (!isValid) {
    const valid = `a boolean, or booleans by the names ${NAMES.join(", ")}`;
    throw invalidArgument("withOptions", "optimizations", valid, value);
  }
  return { ...value };
}

/** The rules that are on. */
export function rulesOf(options: OptimizationOptions | undefined): Rules {
  if (options === false) return new Set();
  if (options === undefined || options === true) return new Set(NAMES);
  return new Set(NAMES.filter((name) => options[name] !== false));
}

/** One use of a rule. */
export interface Rewrite {
  readonly rule: RuleName;
  /** The number of the operator that runs in another way. */
  readonly operator: number;
  /** What was done, as a sentence. */
  readonly text: string;
}

/** What the rules do with a graph. */
export function rewritesOf(root: DatasetNode, rules: Rules): Rewrite[] {
  const isLeftOut = ({ noOp }: DatasetNode) => noOp !== undefined && rules.has("noOpElimination");
  const nodes = inPreOrder(root);
  /** Operators whose functions are called in the loop of the operator above. */
  const called = new Set<number>();
  return nodes.flatMap((node, operator): Rewrite[] => {
    const name = `${node.kind} (operator ${operator})`;
    if (isLeftOut(node)) {
      const text = `${name} changes nothing and is left out.`;
      return [{ rule: "noOpElimination", operator, text }];
    }
    if (!node.fusesCalls || called.has(operator) || !rules.has("mapFusion")) return [];
    let below = operator + 1;
    while (nodes[below]!.isSetting || isLeftOut(nodes[below]!)) below++;
    const input = nodes[below]!;
    if (!input.fusesCalls) return [];
    called.add(below);
    const text =
      `${name} calls its function in one loop with that of ${input.kind} (operator ${below}).`;
    return [{ rule: "mapFusion", operator, text }];
  });
}

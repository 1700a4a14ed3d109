/**
 * Static optimisation (section 3.3.1 of the tf.data paper): rules that make a pipeline faster and
 * do not change its stream.
 *
 * The graph is not rewritten: operators keep their numbers, on which random numbers, figures and
 * errors depend. A rule only makes other iterators for the graph. They save the states that the
 * operators' own iterators would have saved. So a checkpoint may be taken with a rule and restored
 * without it.
 */
import type { DatasetNode } from "../node.ts";
import { leftOutBy } from "./no_op.ts";
import type { RuleName, Rules } from "./options.ts";
import { isTransparent, nameOf, type Rule, type Site } from "./rule.ts";
import { deadTransformationElimination } from "./rules/dead_transformation_elimination.ts";
import { fusionRules } from "./rules/fusion.ts";
import { groupAndBatchFusion } from "./rules/group_and_batch_fusion.ts";
import { shuffleAndRepeatFusion } from "./rules/shuffle_and_repeat_fusion.ts";
import { prefetchInjection } from "./rules/prefetch_injection.ts";

/** Operators that change nothing are left out. */
const noOpElimination: Rule = {
  name: "noOpElimination",
  describe(site) {
    if (site.node.noOp === undefined) return;
    return `${nameOf(site)} changes nothing and is left out.`;
  },
};

/** Elements that are numbers go from the function to the memory of the batch. */
const mapAndBatchFusion: Rule = {
  name: "mapAndBatchFusion",
  describe(site) {
    const [input] = site.inputs;
    if (site.node.kind !== "batch" || input?.node.loopKind === undefined) return;
    return `${nameOf(input)} writes elements that are numbers directly to the batches of ` +
      `${nameOf(site)}: so they need no memory of their own.`;
  },
};

/** Files are read without the columns that no operator above needs. */
const projectionPushdown: Rule = {
  name: "projectionPushdown",
  describe(site) {
    const fields = site.node.fieldsOfInput(undefined);
    if (fields === undefined) return;
    const source = sourceBelow(site.inputs[0]!, fields);
    if (source === undefined) return;
    return `${nameOf(source)} reads only the columns ${fields.join(", ")}, because ` +
      `${nameOf(site)} takes no others.`;
  },
};

/** The source that reads only these fields; undefined if an operator between needs all. */
function sourceBelow(site: Site, fields: readonly string[]): Site | undefined {
  if (site.node.readsFields) return site;
  const [input] = site.inputs;
  return input !== undefined && site.node.fieldsOfInput(fields) === fields
    ? sourceBelow(input, fields)
    : undefined;
}

/** Whether the user has declared that the function of a `map` also works on batches. */
function isBatchable({ loopKind, attributes }: DatasetNode): boolean {
  return loopKind === "map" && attributes.batchable === true;
}

/** A batchable function is called once for many elements. */
const mapVectorization: Rule = {
  name: "mapVectorization",
  describe(site) {
    const [input] = site.inputs;
    if (site.node.kind !== "batch" || input === undefined || !isBatchable(input.node)) return;
    return `${nameOf(input)} calls its function once for many elements of ${nameOf(site)}, ` +
      "because it is batchable.";
  },
};

/** Functions that wait are called for several elements at once. */
const mapParallelization: Rule = {
  name: "mapParallelization",
  describe(site) {
    if (site.node.loopKind === undefined) return;
    return `${nameOf(site)} makes several calls at once if its function waits, as with ` +
      "numParallelCalls: AUTOTUNE.";
  },
};

const RULES: readonly Rule[] = [
  noOpElimination,
  deadTransformationElimination,
  ...fusionRules,
  mapAndBatchFusion,
  shuffleAndRepeatFusion,
  projectionPushdown,
  groupAndBatchFusion,
  mapVectorization,
  mapParallelization,
  prefetchInjection,
];

export interface AppliedRule {
  readonly rule: RuleName;
  /** What was done, and why, as a sentence. */
  readonly text: string;
}

/** What the rules do with a graph, in the order of the operators. */
export function rewritesOf(root: DatasetNode, rules: Rules): AppliedRule[] {
  const used = RULES.filter(({ name }) => rules.has(name));
  return sitesOf(root, rules).flatMap((site) =>
    used.flatMap(({ name, describe }): AppliedRule[] => {
      const text = describe(site);
      return text === undefined ? [] : [{ rule: name, text }];
    })
  );
}

/** All operators, in the order of their numbers. */
function sitesOf(root: DatasetNode, rules: Rules): Site[] {
  const sites: Site[] = [];
  const isAbsent = (node: DatasetNode) =>
    isTransparent(node) || leftOutBy(node, rules) !== undefined;
  const visit = (node: DatasetNode, isLast: boolean): Site => {
    const number = sites.length;
    sites.push(undefined as unknown as Site);
    const isPassed = isAbsent(node);
    const inputs = node.inputs.map((input) => visit(input, isLast && isPassed))
      .map((input) => isAbsent(input.node) ? input.inputs[0]! : input);
    return sites[number] = { node, number, inputs, isLast };
  };
  visit(root, true);
  return sites;
}

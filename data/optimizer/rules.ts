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
import type { Rule, Site } from "./rule.ts";
import { deadTransformationElimination } from "./rules/dead_transformation_elimination.ts";
import { fusionRules } from "./rules/fusion.ts";
import { groupAndBatchFusion } from "./rules/group_and_batch_fusion.ts";
import { mapAndBatchFusion } from "./rules/map_and_batch_fusion.ts";
import { mapParallelization } from "./rules/map_parallelization.ts";
import { mapVectorization } from "./rules/map_vectorization.ts";
import { noOpElimination } from "./rules/no_op_elimination.ts";
import { shuffleAndRepeatFusion } from "./rules/shuffle_and_repeat_fusion.ts";
import { projectionPushdown } from "./rules/projection_pushdown.ts";
import { prefetchInjection } from "./rules/prefetch_injection.ts";

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
  const isAbsent = (node: DatasetNode) => node.isSetting || leftOutBy(node, rules) !== undefined;
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

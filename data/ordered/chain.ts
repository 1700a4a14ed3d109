/**
 * The analysis of a pipeline whose stream is to be the same whoever produces it: which part of it
 * can be produced split by split, and what has to be done where the splits are put together.
 */
import { rebuilt } from "../foreign.ts";
import type { DatasetNode, Division } from "../node.ts";
import { isSplittable } from "../splits.ts";

/** Operators that run on a split. */
const PER_SPLIT: readonly Division[] = ["element", "split", "shuffle"];

/** A pipeline with one source that is read split by split. */
export interface OrderedChain {
  /** What runs on a split, as a dataset of its own: to the batch if there is one, to the end otherwise. */
  readonly perSplit: DatasetNode;
  /** What gathers the rows of `perSplit`; its attributes have `size` and `dropRemainder`. */
  readonly batch: DatasetNode | undefined;
  /** The one-to-one operators after the batch, first first. */
  readonly after: readonly DatasetNode[];
  /** Whether splits come in an order drawn from the seed and the epoch. */
  readonly shuffled: boolean;
}

/** The chain that a graph is; `undefined` where it is more than one. */
export function chainOf(root: DatasetNode): OrderedChain | undefined {
  const after: DatasetNode[] = [];
  let at = root;
  while (at.division === "element") {
    after.unshift(at);
    at = at.inputs[0]!;
  }
  const batch = at.division === "rows" ? at : undefined;
  const perSplit = batch?.inputs[0] ?? root;
  let shuffled = false;
  for (at = perSplit; !isSplittable(at); at = at.inputs[0]!) {
    if (at.inputs.length !== 1 || !PER_SPLIT.includes(at.division)) return undefined;
    shuffled ||= at.division === "shuffle";
  }
  if (!PER_SPLIT.includes(at.division)) return undefined;
  shuffled ||= at.division === "shuffle";
  return { perSplit, batch, after: batch === undefined ? [] : after, shuffled };
}

/**
 * The graph that its reader runs: every part of `root` that is a chain is replaced by what
 * `distribute` makes of it, as high up as can be; all other operators stay.
 *
 * @param distribute is told a chain and its number among the graph's chains.
 */
export function distributeChains(
  root: DatasetNode,
  distribute: (chain: DatasetNode, number: number) => DatasetNode,
): DatasetNode {
  let chains = 0;
  const visit = (node: DatasetNode): DatasetNode => {
    if (node.division === "served") return node;
    if (chainOf(node) !== undefined) return distribute(node, chains++);
    if (node.inputs.length === 0) return node;
    return withInputs(node, node.inputs.map(visit));
  };
  return visit(inOrder(root));
}

/** The same operator over other inputs. */
export function withInputs(node: DatasetNode, inputs: readonly DatasetNode[]): DatasetNode {
  return rebuilt(node, node.attributes, inputs);
}

/** The graph with every operator that may give elements as they come told to keep their order. */
export function inOrder(node: DatasetNode): DatasetNode {
  const inputs = node.inputs.map(inOrder);
  const { attributes } = node;
  if (attributes["deterministic"] === false) {
    return rebuilt(node, { ...attributes, deterministic: true }, inputs);
  }
  return inputs.every((input, i) => input === node.inputs[i]) ? node : withInputs(node, inputs);
}

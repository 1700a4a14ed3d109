/**
 * Analysis for deterministic reading: which part of a pipeline can be produced split by split, and
 * what the reader has to do when it joins the splits.
 */
import { rebuilt } from "../foreign/foreign.ts";
import { type DatasetNode, type Division, inPreOrder } from "../node.ts";
import { ShardingPolicy } from "../sharding/sharding_policy.ts";
import { isSplittable } from "../sharding/splits.ts";

const PER_SPLIT: readonly Division[] = ["element", "split", "shuffle"];

/** A pipeline whose only source is read split by split. */
export interface OrderedChain {
  /**
   * The dataset that runs on a split: up to the batch if there is one, otherwise the whole chain.
   */
  readonly perSplit: DatasetNode;
  /**
   * The operator that gathers the rows of `perSplit`; has the attributes `size` and
   * `dropRemainder`.
   */
  readonly batch: DatasetNode | undefined;
  /** The one-to-one operators after the batch, in order. */
  readonly after: readonly DatasetNode[];
  /** Whether the order of splits is drawn from the seed and the epoch. */
  readonly shuffled: boolean;
}

/** The graph as one chain; `undefined` if it is not one. */
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
  // A source that divides its files itself stands above their listing, which may be shuffled.
  shuffled ||= [at, ...at.inputs].some(({ division }) => division === "shuffle");
  return { perSplit, batch, after: batch === undefined ? [] : after, shuffled };
}

/**
 * Whether a DETERMINISTIC job draws the order of splits from its seed, for some chain of `root`. It
 * does so also if the operator that shuffles has a seed of its own.
 */
export function drawsSplitOrder(root: DatasetNode): boolean {
  if (root.division === "served") return false;
  return chainOf(root)?.shuffled ?? root.inputs.some(drawsSplitOrder);
}

/**
 * The graph that the reader runs: `distribute()` replaces each chain in `root`, as long as
 * possible; all other operators stay.
 *
 * @param distribute receives a chain and its number among the graph's chains.
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

/** The first service in a graph from which each process may get other elements, or another order. */
export function unorderedService(root: DatasetNode): DatasetNode | undefined {
  return inPreOrder(root).find((node) => node.division === "served" && !givesOneStream(node));
}

/** An unnamed DETERMINISTIC job is one of each process: all of them read the whole stream. */
export function givesOneStream({ attributes: { processingMode, jobName } }: DatasetNode): boolean {
  return processingMode === ShardingPolicy.DETERMINISTIC && jobName === undefined;
}

/** The same operator over other inputs. */
export function withInputs(node: DatasetNode, inputs: readonly DatasetNode[]): DatasetNode {
  return rebuilt(node, node.attributes, inputs);
}

/**
 * The graph with every operator that may reorder elements set to keep their order. A service's node
 * stays as it is: its options decide the order, and a copy would lack its token.
 */
export function inOrder(node: DatasetNode): DatasetNode {
  if (node.division === "served") return node;
  const inputs = node.inputs.map(inOrder);
  const { attributes } = node;
  if (attributes["deterministic"] === false) {
    return rebuilt(node, { ...attributes, deterministic: true }, inputs);
  }
  return inputs.every((input, i) => input === node.inputs[i]) ? node : withInputs(node, inputs);
}

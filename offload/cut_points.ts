/**
 * Where a pipeline can be cut for offloading: the candidates of section 4.2 of the FastFlow paper,
 * and the user's own cut points.
 */
import { chainOf, inOrder, type OrderedChain, withInputs } from "../data/deterministic/chain.ts";
import { checkReproducible } from "../data/deterministic/reproducible.ts";
import { LeatError } from "../core/error.ts";
import { isForeign } from "../data/foreign/foreign.ts";
import { type DatasetNode, inPreOrder } from "../data/node.ts";
import { CutPointNode } from "../data/operators/cut_point.ts";
import { FromNode } from "../data/operators/sources/from.ts";
import { GivenNode } from "../data/operators/sources/given.ts";
import { StandInNode } from "../data/operators/stand_in.ts";
import { withFileGroups } from "../data/sources/file_groups.ts";
import { FileSourceNode } from "../data/sources/file_source.ts";
import { checkSerializable } from "../data/wire.ts";

/** One way to cut: `root` and all operators below it may run remotely, the rest runs here. */
export interface CutPoint {
  /** p'1: this host reads the source, and workers run what is above it. Left out: workers read. */
  readonly readHere?: DatasetNode;
  /** `"p'1"`, `"p'2"`, `"p'3"` or the user's name. With several parts `"p'2/0"`, `"p'2/1"`, … */
  readonly name: string;
  readonly root: DatasetNode;
  readonly chain: OrderedChain;
  /** The largest part that can run remotely: `root`, or a part that contains it. */
  readonly whole: DatasetNode;
  /** The node of the pipeline that corresponds to a node of `whole`. */
  readonly original: (node: DatasetNode) => DatasetNode;
  /** Whether an operator above (such as `zip` or `window`) depends on the order of elements. */
  readonly keepsOrder: boolean;
}

/** The cut points of a pipeline, and why others are not possible. */
export interface CutPoints {
  readonly candidates: readonly CutPoint[];
  /** What cannot be offloaded, as sentences. */
  readonly refused: readonly string[];
  /**
   * The operators above parts that give other elements if the order changes. They keep it, unless
   * `deterministic` is false.
   */
  readonly ordered: readonly string[];
}

/**
 * Finds the cut points of a pipeline.
 * @param deterministic The option of `offload()`. With true a part gives the stream of its
 * DETERMINISTIC job, so no split has several files. With false its order may change, whatever follows.
 */
export function cutPointsOf(pipeline: DatasetNode, deterministic?: boolean): CutPoints {
  const groupsFiles = deterministic !== true;
  const parts = remotableParts(pipeline, { keepsOrder: false, mayKeep: deterministic !== false });
  const candidates: CutPoint[] = [];
  const refused: string[] = [];
  if (parts.length === 0) {
    refused.push(
      "no part of the pipeline reads a source that can be divided into splits, below all caches " +
        "and other operators that need the whole dataset",
    );
  }
  for (const [number, { root, above, keepsOrder }] of parts.entries()) {
    const given = withoutSettings(root);
    // An element is known by its number within its split, so each run of a split must keep the order.
    const ordered = inOrder(given);
    // With other splits, elements come in another order.
    const whole = groupsFiles && !keepsOrder ? withFileGroups(ordered) : ordered;
    const original = (node: DatasetNode) => counterpart(whole, given, node)!;
    const candidateOf = (root: DatasetNode) => ({
      ...{ root, chain: chainOf(root)!, whole, original, keepsOrder },
    });
    const fullNameOf = (name: string) => parts.length === 1 ? name : `${name}/${number}`;
    for (const [name, at] of cutsOf(whole)) {
      const fullName = fullNameOf(name);
      const reason = whyNot(at, at);
      if (reason !== undefined) {
        refused.push(`${fullName}: ${reason}`);
        continue;
      }
      candidates.push({ ...candidateOf(at), name: fullName });
    }
    const batch = above.findLast(({ division }) => division === "rows");
    if (batch !== undefined && chainOf(whole)!.batch === undefined) {
      refused.push(
        `${fullNameOf("p'3")}: ${staysHere(above.at(-1)!, `comes before \`${batch.kind}\``)}`,
      );
    }
    const source = inPreOrder(whole).find(isReadHere);
    const reason = source === undefined || source === whole
      ? whyNothingToSend(source, above.at(-1))
      : whyNot(lowest(whole), withoutSource(lowest(whole), source, 1));
    const name = fullNameOf("p'1");
    if (reason !== undefined) refused.push(`${name}: ${reason}`);
    else candidates.push({ ...candidateOf(lowest(whole)), name, readHere: source! });
  }
  return { candidates, refused, ordered: orderedAbove(parts) };
}

/** Whether it needs its elements in order. Those of several inputs are always kept in order. */
function needsOrder(node: DatasetNode): boolean {
  return node.needsWholeInput && node.noOp === undefined && node.inputs.length === 1;
}

function orderedAbove(parts: readonly RemotablePart[]): string[] {
  const found = parts.flatMap(({ above }) => above.filter(needsOrder).reverse());
  return [...new Set(found.map(({ kind }) => kind))];
}

/**
 * The node of `others` at the position of `wanted` in `nodes`. The graphs differ only in file groups,
 * and in whether operators keep the order.
 */
function counterpart(
  nodes: DatasetNode,
  others: DatasetNode,
  wanted: DatasetNode,
): DatasetNode | undefined {
  if (nodes === wanted) return others;
  for (const [i, input] of nodes.inputs.entries()) {
    const other = others.inputs[i];
    const found = other && counterpart(input, other, wanted);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A part that workers can run split by split. */
interface RemotablePart {
  readonly root: DatasetNode;
  /** The operators above it, which stay here: the last one is next to `root`. */
  readonly above: readonly DatasetNode[];
  readonly keepsOrder: boolean;
}

/** The largest parts that workers can run. A cache, and all above it, stays local. */
function remotableParts(
  node: DatasetNode,
  { keepsOrder, mayKeep }: { readonly keepsOrder: boolean; readonly mayKeep: boolean },
  above: readonly DatasetNode[] = [],
): RemotablePart[] {
  if (node.division === "served") return [];
  const isWhole = chainOf(node) !== undefined &&
    !inPreOrder(node).some(({ kind }) => kind === "cache");
  if (isWhole) return [{ root: node, above, keepsOrder }];
  const order = {
    keepsOrder: keepsOrder || node.inputs.length > 1 || mayKeep && needsOrder(node),
    mayKeep,
  };
  return node.inputs.flatMap((input) => remotableParts(input, order, [...above, node]));
}

/** The candidates of one part: everything, everything below the batch, and the marked points. */
function cutsOf(whole: DatasetNode): [name: string, root: DatasetNode][] {
  const { batch } = chainOf(whole)!;
  const marked = inPreOrder(whole).filter((node) => node instanceof CutPointNode)
    .map((node): [string, DatasetNode] => [node.name, withoutSettings(node)]);
  return [
    ["p'2", lowest(whole)],
    ...(batch === undefined ? [] : [["p'3", whole] as [string, DatasetNode]]),
    ...marked,
  ];
}

/** The part below the batch; all if there is none. */
function lowest(whole: DatasetNode): DatasetNode {
  const { batch, perSplit } = chainOf(whole)!;
  return batch === undefined ? whole : withoutSettings(perSplit);
}

/** Whether this host can send the elements of this source to workers. */
function isReadHere(node: DatasetNode): boolean {
  return node instanceof FileSourceNode || node instanceof FromNode;
}

/** Why there is no p'1: workers would have nothing to do, or this host nothing to send. */
function whyNothingToSend(
  source: DatasetNode | undefined,
  above: DatasetNode | undefined,
): string {
  if (source === undefined) return "it needs a source of files, or of elements in memory";
  return above === undefined
    ? `no operator follows \`${source.kind}\``
    : staysHere(above, `follows \`${source.kind}\``);
}

/** Says that an operator keeps what follows it from the workers, and what helps. */
function staysHere({ kind }: DatasetNode, where: string): string {
  const remedy = kind === "repeat" ? "; call `repeat` last, or train with fit({ epochs })" : "";
  return `\`${kind}\` ${where}, and stays on this host with all that follows it${remedy}`;
}

/** The part that workers run if this host reads `source` and sends them its elements. */
export function withoutSource(node: DatasetNode, source: DatasetNode, splits: number): DatasetNode {
  if (node === source) return new GivenNode(splits);
  return withInputs(node, node.inputs.map((input) => withoutSource(input, source, splits)));
}

/** Candidates that can replace each other while an epoch runs. */
export interface Exchange {
  /** The part that contains all of them. */
  readonly root: DatasetNode;
  readonly original: CutPoint["original"];
  readonly chain: OrderedChain;
  readonly candidates: ReadonlyMap<string, CutPoint>;
}

/**
 * The candidates that can replace a candidate within an epoch: the paper's, of the same source. A
 * user's cut point cannot: it may be costly to run the operators above it split by split.
 */
export function exchangeOf(cut: CutPoint, { candidates }: CutPoints): Exchange | undefined {
  const { whole: root, original, keepsOrder } = cut;
  if (keepsOrder) return undefined;
  const chain = chainOf(root)!;
  const lower = withoutSettings(chain.perSplit);
  const found = candidates.filter((at) =>
    at.whole === root && (at.root === root || at.root === lower)
  );
  if (found.length < 2 || !found.some(({ name }) => name === cut.name)) return undefined;
  return { root, original, chain, candidates: new Map(found.map((at) => [at.name, at])) };
}

/** `part`, with stand-ins for the operators between it and `whole`. They do not change its elements. */
export function withStandIns(whole: DatasetNode, part: DatasetNode): DatasetNode {
  if (whole === part) return part;
  const below = withStandIns(whole.inputs[0]!, part);
  return whole.isSetting ? below : new StandInNode(below, whole.splitMultiple(1));
}

/** The node below `prefetch` and options, which stay on the side that reads the elements. */
function withoutSettings(node: DatasetNode): DatasetNode {
  const isOutermost = node.inputs.length === 1 && (node.kind === "prefetch" || node.isSetting);
  return isOutermost ? withoutSettings(node.inputs[0]!) : node;
}

/** Why a part cannot run remotely; undefined if it can. @param sent What workers get of it. */
function whyNot(root: DatasetNode, sent: DatasetNode): string | undefined {
  if (inPreOrder(root).some(isForeign)) return "the pipeline comes from outside this program";
  try {
    checkReproducible(root, "an element that a worker cannot give is made again here");
    checkSerializable(sent);
    return undefined;
  } catch (error) {
    return LeatError.from(error).message;
  }
}

/** Static sharding: rewrites a graph into the part that one of a fixed number of workers runs. */
import { LeatError } from "../../core/error.ts";
import { rebuilt } from "../foreign/foreign.ts";
import type { DatasetNode } from "../node.ts";
import { inOrder, unorderedService, withInputs } from "../deterministic/chain.ts";
import { AssertCardinalityNode } from "../operators/assert_cardinality.ts";
import { CacheNode } from "../operators/caching/cache.ts";
import { ShardNode } from "../operators/shard.ts";
import { ShuffleNode } from "../operators/shuffling/shuffle.ts";
import { type Shard, SHARD_HINT, type ShardingMode, ShardingPolicy } from "./sharding_policy.ts";
import { FileSourceNode } from "../sources/file_source.ts";
import { isFileListing } from "../sources/files.ts";
import { replicatedInputOf } from "./splits.ts";
import { FileShardNode } from "./file_shard.ts";

/**
 * The part of a graph that a worker runs. The parts of all workers together give every element
 * once, if they run with the same seed and `needsOrder`.
 *
 * @throws {LeatError} `not_found` under FILE for a source that reads no files;
 * `failed_precondition` if a worker would store its part as the whole dataset; `unimplemented` if
 * what another service gives would be divided by number (see {@linkcode sameOnAll}); `internal` for
 * a mode without shares. If there are fewer files than workers, the first element fails with
 * `invalid_argument`.
 */
export function shardGraph(root: DatasetNode, policy: ShardingMode, shard: Shard): DatasetNode {
  switch (policy) {
    case ShardingPolicy.FILE:
      return shardFiles(root, shard);
    case ShardingPolicy.DATA:
      return shardElements(root, shard);
    case ShardingPolicy.FILE_OR_DATA:
      try {
        return shardFiles(root, shard);
      } catch (error) {
        if (LeatError.from(error).code !== "not_found") throw error;
        return shardElements(root, shard);
      }
    case ShardingPolicy.HINT:
      return replaceHints(root, shard);
    default:
      throw new LeatError(
        "internal",
        `shardGraph does not know how to divide a graph under ${policy}; add a case to ` +
          "data/sharding/shard_graph.ts",
      );
  }
}

/** Divides the final elements by index, so all workers must produce them in the same order. */
function shardElements(root: DatasetNode, { index, count }: Shard): DatasetNode {
  return new ShardNode(sameOnAll(root), count, index);
}

/**
 * The graph, set to give all workers the same elements in the same order.
 *
 * @throws {LeatError} `unimplemented` if it reads from a service that does not do so.
 */
export function sameOnAll(root: DatasetNode): DatasetNode {
  const service = unorderedService(root);
  if (service === undefined) return inOrder(root);
  throw new LeatError(
    "unimplemented",
    `Workers cannot divide by number what ${service.kind} gives them: from another service each gets ` +
      'other elements, or another order. Distribute the pipeline with processingMode "OFF", and its ' +
      'input with "DYNAMIC" and a jobName: then the workers together get every element of the input ' +
      'once. Or distribute the input with "DETERMINISTIC" and no jobName: then each worker reads all ' +
      "of it, in one order",
  );
}

/** Makes every file source read only its share of the files. */
function shardFiles(node: DatasetNode, shard: Shard): DatasetNode {
  if (isFileListing(node)) return shardNames(node, shard);
  if (node instanceof FileSourceNode) {
    return withInputs(node, node.inputs.map((names) => shardNames(names, shard)));
  }
  if (node.inputs.length === 0 || node.division === "stored") {
    throw new LeatError(
      "not_found",
      `Found an unshardable source dataset: ${node.kind}. FILE sharding needs sources that read files; ` +
        `use FILE_OR_DATA, DATA or DYNAMIC`,
    );
  }
  // The cardinality is that of the whole dataset, not of a part.
  if (node instanceof AssertCardinalityNode) return shardFiles(node.inputs[0]!, shard);
  const whole = replicatedInputOf(node);
  const inputs = node.inputs.map((input, i) => i === whole ? input : shardFiles(input, shard));
  return refuseStoring(withInputs(node, inputs));
}

/**
 * A share of a dataset of file names. All workers must divide the names in the same order, so a
 * shuffle of names moves after the division.
 */
function shardNames(names: DatasetNode, { index, count }: Shard): DatasetNode {
  const shuffles: ShuffleNode[] = [];
  const sorted = unshuffled(sameOnAll(names), shuffles);
  const share = new FileShardNode(sorted, count, index);
  const [shuffle] = shuffles;
  return shuffle === undefined ? share : withInputs(shuffle, [share]);
}

/** The graph without its shuffles; appends them to `removed`, the last one first. */
function unshuffled(node: DatasetNode, removed: ShuffleNode[]): DatasetNode {
  if (node instanceof ShuffleNode) {
    removed.push(node);
    return unshuffled(node.inputs[0]!, removed);
  }
  if (isFileListing(node) && node.attributes["shuffle"] === true) {
    const sorted = rebuilt(node, { ...node.attributes, shuffle: false }, []);
    const seed = node.attributes["seed"] as bigint | undefined;
    removed.push(new ShuffleNode(sorted, Number.MAX_SAFE_INTEGER, { seed }));
    return sorted;
  }
  if (node.inputs.length === 0) return node;
  return withInputs(node, node.inputs.map((input) => unshuffled(input, removed)));
}

/** The input of a hint is divided by index, so all workers must produce it in the same order. */
function replaceHints(node: DatasetNode, shard: Shard): DatasetNode {
  if (node instanceof ShardNode && node.numShards === SHARD_HINT) {
    return new ShardNode(replaceHints(sameOnAll(node.inputs[0]!), shard), shard.count, shard.index);
  }
  const inputs = node.inputs.map((input) => replaceHints(input, shard));
  if (inputs.every((input, i) => input === node.inputs[i])) return node;
  return refuseStoring(withInputs(node, inputs));
}

/**
 * Refuses operators that store elements in files: they would store one worker's part, which readers
 * would take for the whole dataset.
 */
function refuseStoring(node: DatasetNode): DatasetNode {
  const keepsFiles = node.division === "stored" ||
    node instanceof CacheNode && node.path !== undefined;
  if (!keepsFiles) return node;
  throw new LeatError(
    "failed_precondition",
    `${node.kind} would store one worker's share in place of the whole dataset; put it before the ` +
      `sharded part, shard by DATA, or cache in memory`,
  );
}

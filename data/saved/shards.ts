/** Shards of stored datasets: the shard of each element, and the dataset of each shard. */
import { LeatError } from "../../core/error.ts";
import { then } from "../../core/then.ts";
import type { Call } from "../udf/call.ts";
import { show } from "../check.ts";
import { facade, type HasNode } from "../node.ts";
import { FromNode } from "../operators/sources/from.ts";
import type { Manifest } from "./manifest.ts";
import { storedNode } from "./stored_node.ts";

/** Maximum number of shards: each is an open file while the dataset is written. */
const SHARDS_MAX = 1024;

/** The shard that the user's function returns for an element; 0 without a function. */
export function shardBy(
  operator: string,
  call: Call | undefined,
  element: unknown,
): number | Promise<number> {
  if (call === undefined) return 0;
  return then(call.one(element), (shard) => checkShard(operator, shard));
}

function checkShard(operator: string, shard: unknown): number {
  const number = typeof shard === "bigint" ? Number(shard) : shard;
  if (Number.isSafeInteger(number) && number as number >= 0 && number as number < SHARDS_MAX) {
    return number as number;
  }
  throw new LeatError(
    "invalid_argument",
    `${operator}: shardFunc must return an integer from 0 to ${SHARDS_MAX - 1}, got ${show(shard)}`,
  );
}

/** A dataset of datasets: one for each shard that has chunks, in the order of their numbers. */
export function shardDatasets(folder: string, manifest: Manifest): HasNode {
  const numbers = new Set(manifest.chunks.map(({ shard }) => shard));
  const datasets = [...numbers].map((shard) =>
    facade().wrap(
      storedNode(folder, manifest, manifest.chunks.filter((chunk) => chunk.shard === shard)),
    )
  );
  return facade().wrap(new FromNode(datasets));
}

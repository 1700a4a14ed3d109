/** Sharding policies written by users. */
import { LeatError } from "../../core/error.ts";
import { fieldsOf } from "../../core/tree.ts";
import { invalidArgument, optionsOf } from "../check.ts";
import { NodeFunction } from "../udf/call.ts";
import type { Dataset } from "../dataset.ts";
import type { Host } from "../host.ts";
import { type DatasetNode, facade, nodeOf } from "../node.ts";
import type { Shard } from "./sharding_policy.ts";
import {
  type Captures,
  deserializeFunction,
  loadFunction,
  type UserFunction,
} from "../udf/user_function.ts";
import { ValueReader, ValueWriter } from "../wire.ts";

/** What a policy's function gets besides its captures. `GIVEN` lists it. */
export interface ShardExtra extends Shard {
  /** The `Dataset` class, for functions that make datasets. */
  readonly Dataset: typeof Dataset;
}

const GIVEN: readonly (keyof ShardExtra)[] = ["Dataset", "index", "count"];

function policyFunction(shard: unknown, captures: unknown): NodeFunction {
  return new NodeFunction("shardingPolicy", "shard", shard, captures, { given: GIVEN });
}

/** Options of {@linkcode shardingPolicy}. */
export interface ShardingPolicyOptions<C extends Captures> {
  /**
   * Returns the part of the dataset that worker `index` of `count` produces. Called once for each
   * task.
   */
  readonly shard: UserFunction<
    (
      dataset: Dataset<unknown>,
      worker: ShardExtra & C,
    ) => Dataset<unknown> | Promise<Dataset<unknown>>
  >;
  /** Values that the function gets by name in its last argument. */
  readonly captures?: C;
}

const policyOptions = optionsOf<ShardingPolicyOptions<Captures>>("shardingPolicy", {
  shard: true,
  captures: true,
});

/** A policy as plain data; equal for equal policies. */
export interface WirePolicy {
  /** See {@linkcode shardingPolicy}. */
  readonly name: string;
  /** The function, serialised. */
  readonly shard: string;
}

/** A user's sharding policy; made by {@linkcode shardingPolicy}. */
export class CustomShardingPolicy {
  /** Its name in messages and descriptions. */
  readonly name: string;
  /** @ignore */
  readonly shard: NodeFunction;
  readonly #wire: WirePolicy;

  /**
   * @throws {LeatError} `failed_precondition` if the function cannot be serialised.
   *
   * @ignore
   */
  constructor(name: unknown, shard: NodeFunction) {
    if (typeof name !== "string" || name === "") {
      throw invalidArgument("shardingPolicy", "name", "a non-empty text", name);
    }
    this.name = name;
    this.shard = shard;
    this.#wire = { name, shard: JSON.stringify(new ValueWriter().write(shard)) };
  }

  /** @ignore */
  static fromWire({ name, shard }: WirePolicy): CustomShardingPolicy {
    const { $function } = fieldsOf(JSON.parse(shard));
    const { fn, captures } = deserializeFunction(new ValueReader().read($function));
    return new CustomShardingPolicy(name, policyFunction(fn, captures));
  }

  /** @ignore */
  toWire(): WirePolicy {
    return this.#wire;
  }

  /**
   * The worker's part of a graph.
   *
   * @throws {LeatError} with the code of the function's error, naming the policy; `invalid_argument`
   * if the function returns no dataset.
   *
   * @ignore
   */
  async shardOf(root: DatasetNode, worker: Shard, host: Host): Promise<DatasetNode> {
    const { fn, captures } = await loadFunction(this.shard, host);
    let part: unknown;
    try {
      part = await fn(facade().wrap(root), { ...captures, Dataset: facade().Dataset, ...worker });
    } catch (cause) {
      const { code, message } = LeatError.from(cause);
      throw new LeatError(
        code,
        `The sharding policy "${this.name}" failed for worker ${worker.index} of ${worker.count}: ` +
          message,
        { cause },
      );
    }
    const node = nodeOf(part);
    if (node !== undefined) return node;
    throw new LeatError(
      "invalid_argument",
      `The sharding policy "${this.name}" must return a Dataset, got ${typeof part}`,
    );
  }
}

/**
 * A policy whose function divides a dataset among the workers of the dispatcher's list. The function
 * runs on every worker, so it must be serialisable: `udf(…)`, or without outer variables. Workers
 * share one seed, so unseeded shuffles give the same order on all of them, whatever operators the
 * function adds there. `deterministic: false` in the dataset has no effect, so it gives all of them
 * the same elements in the same order. If the function uses the dataset several times, unseeded
 * shuffles give another order each time.
 *
 * @throws {LeatError} `invalid_argument` for an empty name or a value that is no function;
 * `failed_precondition` naming the outer variables that the function uses.
 *
 * @example
 * ```ts
 * import { Dataset, LocalCluster, shardingPolicy } from "../../mod.ts";
 *
 * // The first worker takes the first half, and so on.
 * const contiguous = shardingPolicy("contiguous", {
 *   shard(dataset, { index, count, length }) {
 *     const share = Math.ceil(length / count);
 *     return dataset.skip(index * share).take(share);
 *   },
 *   captures: { length: 10 },
 * });
 * await using cluster = await LocalCluster.start({ workers: 2 });
 * const numbers = Dataset.range(10).distribute({ service: cluster, processingMode: contiguous });
 * let sum = 0;
 * for await (const x of numbers) sum += x;
 * console.log(sum); // 45
 * ```
 */
export function shardingPolicy<C extends Captures = Captures>(
  name: string,
  options: ShardingPolicyOptions<C>,
): CustomShardingPolicy {
  const { shard, captures } = policyOptions(options);
  return new CustomShardingPolicy(name, policyFunction(shard, captures));
}

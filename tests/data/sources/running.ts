/** Shared by tests of sources: running a node to its end, and splits to run it with. */

import { openIterator } from "../../../data/dataset_iterator.ts";
import type { IterationOptions } from "../../../data/iteration_options.ts";
import { END } from "../../../data/iterator.ts";
import type { DatasetNode } from "../../../data/node.ts";
import type { SplitSource } from "../../../data/sharding/splits.ts";
import { DenoHost } from "../../../platform/deno_host.ts";

/** Every element; errors in place of elements. */
export async function collect(
  node: DatasetNode,
  options: IterationOptions = {},
): Promise<unknown[]> {
  await using iterator = openIterator(node, { host: new DenoHost(), seed: 1n, ...options });
  const found: unknown[] = [];
  while (found.length < 100_000) {
    try {
      const { done, value } = await iterator.next();
      if (done) return found;
      found.push(value);
    } catch (error) {
      found.push(error);
    }
  }
  throw new Error("a dataset that never ends");
}

/** A split source that assigns `splits` in order to one task. */
export function splitsOf(...splits: [start: number, stop: number][]): SplitSource {
  const left = splits.map(([start, stop]) => ({ start, stop }));
  return {
    next: () => Promise.resolve(left.shift() ?? END),
    total: () => Promise.resolve(splits.length),
  };
}

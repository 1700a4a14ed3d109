/**
 * Iterators whose code is loaded where there is one of them.
 *
 * @module
 */
import { LateIterator } from "./late_iterator.ts";
import type { IteratorFactory } from "../node.ts";

/**
 * Loads a factory when its first iterator begins, for all of them. A failure is that iterator's alone:
 * whoever comes next tries again.
 */
export function lateFactory(load: () => Promise<IteratorFactory>): IteratorFactory {
  let loading: Promise<IteratorFactory> | undefined;
  const loaded = () =>
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
  return (node, context) => new LateIterator(context, async () => (await loaded())(node, context));
}

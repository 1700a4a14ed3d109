/**
 * Iterators whose code is loaded on demand.
 *
 * @module
 */
import { LateIterator } from "./late_iterator.ts";
import type { IteratorFactory } from "../node.ts";

/**
 * Loads a factory when its first iterator begins, for all iterators. If loading fails, only that
 * iterator fails: the next one tries again.
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

/**
 * Doing a thing for many, several at once.
 *
 * @module
 */

/**
 * What `fn` answers for each item, in the order of the items. At most `limit` calls are open at a
 * time; after one that fails no other is begun.
 *
 * @throws what the first call that fails does.
 *
 * @example
 * ```ts
 * import { mapAtOnce } from "./at_once.ts";
 *
 * console.log(await mapAtOnce([1, 2, 3], 2, (x) => Promise.resolve(x * x))); // [1, 4, 9]
 * ```
 */
export async function mapAtOnce<T, R>(
  items: readonly T[],
  limit: number,
  fn: (item: T) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  const run = async () => {
    while (next < items.length) {
      const index = next++;
      try {
        results[index] = await fn(items[index]!);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, run));
  return results;
}

/**
 * Maps `items` with `fn` and returns the results in the order of the items. At most `limit` calls
 * run at a time. After a failure no further call starts; those that run are not waited for.
 *
 * @throws The error of the first call that fails.
 *
 * @example
 * ```ts
 * import { mapConcurrent } from "./map_concurrent.ts";
 *
 * console.log(await mapConcurrent([1, 2, 3], 2, (x) => Promise.resolve(x * x))); // [1, 4, 9]
 * ```
 */
export async function mapConcurrent<T, R>(
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

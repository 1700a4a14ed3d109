/** A function that takes its time without using a core, so that workers on one host do not slow each other. */

/** Calls on this thread that have not returned yet. */
const underWay = new Set<Promise<unknown>>();

/** The element, five milliseconds later. */
export function slowly<T>(element: T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  underWay.add(promise);
  setTimeout(() => {
    underWay.delete(promise);
    resolve(element);
  }, 5);
  return promise;
}

/** Resolves when every call on this thread has returned: a cluster that is closed waits for none. */
export async function returned(): Promise<void> {
  await Promise.all(underWay);
}

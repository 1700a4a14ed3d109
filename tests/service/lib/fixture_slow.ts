/** A slow function that uses no core, so that workers on one host do not slow each other. */

/** Calls on this thread that have not returned. */
const underWay = new Set<Promise<unknown>>();

let delayMs = 5;

/** Calls on this thread take twice as long from now on, until this is disposed. */
export function slower(): Disposable {
  delayMs *= 2;
  return { [Symbol.dispose]: () => void (delayMs = 5) };
}

/** Calls on this thread take no time from now on, until this is disposed. */
export function hurry(): Disposable {
  delayMs = 0;
  return { [Symbol.dispose]: () => void (delayMs = 5) };
}

/**
 * Returns the element, after five milliseconds unless {@linkcode hurry} or {@linkcode slower} is
 * active.
 */
export function slowly<T>(element: T): Promise<T> {
  if (delayMs === 0) return Promise.resolve(element);
  const { promise, resolve } = Promise.withResolvers<T>();
  underWay.add(promise);
  setTimeout(() => {
    underWay.delete(promise);
    resolve(element);
  }, delayMs);
  return promise;
}

/** Resolves when every call on this thread has returned: closing a cluster waits for none. */
export async function returned(): Promise<void> {
  await Promise.all(underWay);
}

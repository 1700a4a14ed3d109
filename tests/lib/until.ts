/** Waits in tests for conditions. */

/**
 * Time limit of every wait, in ms: it turns a hang into a failure. A slow and busy machine can take
 * a hundred times as long as an idle one, so the limit is far beyond any expected time.
 */
export const PATIENCE_MS = 300_000;

/**
 * Waits until `look` returns a result, and returns that.
 *
 * @param look Returns false or undefined to be called again.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  everyMs = 1,
): Promise<Exclude<T, false | undefined>> {
  const endMs = performance.now() + PATIENCE_MS;
  while (performance.now() < endMs) {
    const found = await look();
    if (found !== false && found !== undefined) return found as Exclude<T, false | undefined>;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  throw new Error(`The condition never came true: ${look}`);
}

/**
 * Waiting in tests for what comes in its own time.
 *
 * @module
 */

/**
 * How long a test waits for anything, in ms: this turns a hang into a failure. Machines that are slow
 * and busy take a hundred times as long as an idle one, so it is far beyond what anything takes.
 */
export const PATIENCE_MS = 300_000;

/**
 * Waits until something is so, and gives what was found.
 *
 * @param look What is false or undefined is looked at again.
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
  throw new Error(`It never came to be so: ${look}`);
}

/**
 * A user's code that ends the thread it runs on: Deno ends it without a word to whoever has started it,
 * who would wait for ever.
 *
 * @module
 */
import { LeatError } from "../core/error.ts";

/**
 * From now on `Deno.exit()`, `process.exit()` and `close()` of this thread end nothing, but throw.
 *
 * @param says What the error says, of the call as it was written: `Deno.exit(3)`.
 * @param onExit Told of the error as well, for whoever called may catch it. Where it is given, an error that
 *   nobody catches does not end the thread.
 */
export function guardExits(
  says: (call: string) => string,
  onExit?: (error: LeatError) => void,
): void {
  const told = new Set<unknown>();
  const refuse = (name: string) => (code?: unknown): never => {
    const call = `${name}(${code === undefined ? "" : String(code)})`;
    const error = new LeatError("failed_precondition", says(call));
    told.add(error);
    onExit?.(error);
    throw error;
  };
  Object.assign(Deno, { exit: refuse("Deno.exit") });
  // `process.exit` calls it, also where it was imported by name. To import it here would load more.
  const { process } = globalThis as unknown as { process: object };
  Object.assign(process, { reallyExit: refuse("process.exit") });
  Object.assign(globalThis, { close: refuse("close") });
  if (onExit === undefined) return;
  // One that nobody catches would be told once more, as the end of the thread.
  addEventListener("error", (event) => {
    if (told.has(event.error)) event.preventDefault();
  });
  addEventListener("unhandledrejection", (event) => {
    if (told.has(event.reason)) event.preventDefault();
  });
}

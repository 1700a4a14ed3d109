/**
 * A user's code that ends the thread it runs on: Deno ends it without a word to whoever has started it,
 * who would wait for ever.
 *
 * @module
 */
import process from "node:process";
import { LeatError } from "../../mod.ts";

/**
 * From now on `Deno.exit()`, `process.exit()` and `close()` of this thread end nothing, but throw.
 *
 * @param module Named in the error.
 * @param onExit Told of the error as well, as the module may catch it.
 */
export function guardExits(module: string, onExit: (error: LeatError) => void): void {
  const told = new Set<unknown>();
  const refuse = (name: string) => (code?: unknown): never => {
    const call = `${name}(${code === undefined ? "" : String(code)})`;
    const error = new LeatError(
      "failed_precondition",
      `'${module}' called ${call}, and a module that ends its thread cannot be a pipeline: have it ` +
        "throw an error instead, or leave the end to the program that imports it",
    );
    told.add(error);
    onExit(error);
    throw error;
  };
  Object.assign(Deno, { exit: refuse("Deno.exit") });
  // `process.exit` calls it, also where it was imported by name.
  Object.assign(process, { reallyExit: refuse("process.exit") });
  Object.assign(globalThis, { close: refuse("close") });
  // One that nobody catches would be told once more, as the end of the thread.
  addEventListener("error", (event) => {
    if (told.has(event.error)) event.preventDefault();
  });
  addEventListener("unhandledrejection", (event) => {
    if (told.has(event.reason)) event.preventDefault();
  });
}

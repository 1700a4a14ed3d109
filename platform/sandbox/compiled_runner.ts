/** Keeps the compiled code of runners' program in Deno's cache. */
import { runAlone } from "../process/child_process.ts";

let storing: Promise<void> | undefined;

/**
 * Has Deno store the compiled code of runners' program, once for this process: on Linux a confined
 * process may only read Deno's cache, and compiling takes longer than all else that it does before
 * its first element. The program ends at once, as it has no parent to talk to.
 */
export function storeCompiledRunner(): Promise<void> {
  if (Deno.build.os !== "linux") return Promise.resolve();
  return storing ??= runAlone(import.meta.resolve("./runner_program.ts")).catch(() => {});
}

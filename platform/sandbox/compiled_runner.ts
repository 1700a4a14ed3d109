/** Keeps the compiled code of the runners' program in Deno's cache. */
import { runAlone } from "../process/child_process.ts";

/** Time limit for storing, in ms: a worker that closes waits for it. */
const STORE_TIMEOUT_MS = 30_000;

let storing: Promise<void> | undefined;

/**
 * Runs the runners' program once, so that Deno stores its compiled code. On Linux a confined process
 * may not write Deno's cache, and compiling is the longest step before its first element. The program
 * ends at once, because it has no parent.
 */
export function storeCompiledRunner(): Promise<void> {
  if (Deno.build.os !== "linux") return Promise.resolve();
  return storing ??= runAlone(import.meta.resolve("./runner_program.ts"), STORE_TIMEOUT_MS)
    .catch(() => {});
}

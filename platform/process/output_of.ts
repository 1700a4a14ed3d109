/** Runs a program to its end. It does not outlive this program. */

import { startDespiteLoader } from "./loader_variables.ts";

/** Returns the output of a program, which is ended if this program exits before it. */
export async function outputOf(
  command: string,
  options: Deno.CommandOptions,
): Promise<Deno.CommandOutput> {
  const exit = new AbortController();
  const end = () => exit.abort();
  addEventListener("unload", end);
  try {
    return await startDespiteLoader((added) =>
      new Deno.Command(command, {
        ...options,
        env: { ...options.env, ...added },
        signal: exit.signal,
      }).output()
    );
  } finally {
    removeEventListener("unload", end);
  }
}
